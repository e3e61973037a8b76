"""What a run gets so that it can be stalled and its clock be set: a shared folder, and two files in front of ours."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from phalanx.chaos import inside
from phalanx.chaos.inside.sitecustomize import FOLDER
from phalanx.errors import PlaceError

_INSIDE = Path(inside.__file__).parent


def environ_for(folder: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """The tasks' environment: PYTHONPATH leads to our sitecustomize first, which hands on to the user's."""
    inside_ = folder / "inside"
    inside_.mkdir(exist_ok=True)
    shutil.copyfile(_INSIDE / "sitecustomize.py", inside_ / "sitecustomize.py")
    path = os.pathsep.join(filter(None, [str(inside_), environ.get("PYTHONPATH", "")]))
    return {**environ, "PYTHONPATH": path, FOLDER: str(folder)}


def agent_home(folder: Path, real: Path) -> Path:
    """A folder that the agent may be started from in the place of `real`: the same files behind another `__main__`."""
    home = folder / "home"
    try:
        home.mkdir()
        for entry in real.iterdir():
            name = "real_main.py" if entry.name == "__main__.py" else entry.name
            (home / name).symlink_to(entry)
        shutil.copyfile(_INSIDE / "agent_main.py", home / "__main__.py")
    except OSError as wrong:
        raise PlaceError(f"{folder} cannot be prepared: {wrong.strerror}") from wrong
    return home
