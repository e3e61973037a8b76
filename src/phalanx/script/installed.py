"""What an interpreter's packages offer, read from their files: TensorFlow and Keras list every public name in them."""

from __future__ import annotations

import dataclasses
import functools
import os
import re
from pathlib import Path

_WORD = re.compile(r"[A-Za-z_]\w*")
#: Where a package keeps the list of a module's public names.
_LISTS = {
    "tensorflow": ("tensorflow/__init__.py", "tensorflow/_api/v2/{}/__init__.py"),
    "tensorflow.keras": ("keras/_tf_keras/keras/__init__.py", "keras/_tf_keras/keras/{}/__init__.py"),
    "keras": ("keras/__init__.py", "keras/{}/__init__.py"),
}
_MARK = "DO NOT EDIT"


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Installed:
    """The folders an interpreter looks for packages in."""

    folders: tuple[str, ...]

    @functools.lru_cache(maxsize=64)  # noqa: B019 - as below
    def has(self, package: str) -> bool | None:
        """Whether a top-level package is there; None where that cannot be said, as beside an editable install."""
        hooks = False
        for folder in self.folders:
            names = _names_in(folder)
            if any(name.partition(".")[0] == package and not name.endswith((".dist-info", ".pth")) for name in names):
                return True
            hooks = hooks or any(name.startswith("__editable__") or name == "easy-install.pth" for name in names)
        return None if hooks or not self.folders else False

    def lacks(self, dotted: str) -> str | None:
        """The shortest part of `tensorflow.keras.callbacks.experimental.X` that is not there, or None.

        A name counts as there as soon as its module's list holds the word.
        """
        root = next(
            (root for root in ("tensorflow.keras", "tensorflow", "keras") if f"{dotted}.".startswith(f"{root}.")), None
        )
        if root is None:
            return None
        first, below = _LISTS[root]
        at = root
        listing = self._words(first)
        parts = [part for part in dotted[len(root) :].split(".") if part]
        for number, part in enumerate(parts):
            if listing is None:
                return None
            if part not in listing and not part.startswith("_"):
                return f"{at}.{part}"
            if part == "keras" and root == "tensorflow":
                return None
            at = f"{at}.{part}"
            listing = self._words(below.format("/".join(parts[: number + 1])))
        return None

    @functools.lru_cache(maxsize=256)  # noqa: B019 - an interpreter is looked at once in a process
    def _words(self, listing: str) -> frozenset[str] | None:
        """Every word of a generated list of names; None where there is no such file, or it is written by hand."""
        for folder in self.folders:
            try:
                text = (Path(folder) / listing).read_text(encoding="utf-8", errors="replace")
            except OSError:
                continue
            generated = _MARK in text[:400] or "This file is MACHINE GENERATED" in text[:400]
            if not generated and not listing.startswith("tensorflow/"):
                return None
            beside = {name.partition(".")[0] for name in _names_in(str((Path(folder) / listing).parent))}
            return frozenset(_WORD.findall(text)) | beside
        return None


def _names_in(folder: str) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208 - names only; a site-packages has hundreds
    except OSError:
        return []
