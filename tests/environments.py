"""Virtual environments as their files show them, in which nothing could be started."""

from __future__ import annotations

from pathlib import Path

import pytest


def environment(place: Path, *, version: str = "3.11.7", has: tuple[str, ...] = (), system: bool = False) -> Path:
    """A virtual environment as its files show it; its `python` is no program that could be started."""
    minor = ".".join(version.split(".")[:2])
    packages = place / "lib" / f"python{minor}" / "site-packages"
    packages.mkdir(parents=True)
    for name in has:
        (packages / f"{name}.dist-info").mkdir()
    (place / "pyvenv.cfg").write_text(
        f"home = /usr/bin\ninclude-system-site-packages = {str(system).lower()}\nversion = {version}\n"
    )
    python = place / "bin" / "python"
    python.parent.mkdir()
    python.write_text("#!/bin/sh\nexit 99\n")
    python.chmod(0o755)
    return place


def switch_on(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Be in `folder`, with an environment in it that has TensorFlow 2.21 and Keras 3.15, and without a proxy."""
    active = environment(folder / "venv", has=("tensorflow-2.21.0", "keras-3.15.1"))
    monkeypatch.chdir(folder)
    monkeypatch.setenv("VIRTUAL_ENV", str(active))
    for name in ("http_proxy", "https_proxy", "grpc_proxy", "all_proxy", "TF_CONFIG", "TF_USE_LEGACY_KERAS"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
