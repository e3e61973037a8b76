"""How the pages are built: `make docs`. Warnings are errors; nothing is fetched."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent / "src")]

import phalanx  # noqa: E402 - the path above is what makes it this tree's

project = "phalanx"
author = "the phalanx authors"
copyright = author  # noqa: A001 - Sphinx's name for it
release = version = phalanx.__version__

extensions = ["myst_parser", "from_code"]
exclude_patterns = ["_build"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
nitpicky = True
highlight_language = "text"
smartquotes = False  # `--debug` must stay two dashes where a docstring says it without backticks

html_theme = "furo"
html_title = "phalanx"
html_copy_source = False
html_show_sphinx = False
