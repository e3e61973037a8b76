"""Packages of the Debian that this machine is, fetched by its own apt and unpacked where nobody else looks."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

#: What a container needs to run Python and TensorFlow, with all that these need.
ROOT: Final = ("bash", "dash", "coreutils", "grep", "sed", "procps", "python3", "libpython3-stdlib", "libstdc++6")
_USR: Final = ("bin", "lib", "lib64", "sbin")


def unpack(packages: Sequence[str], folder: Path, log: int) -> None:
    """These packages alone, into `folder`."""
    with tempfile.TemporaryDirectory(prefix="phalanx-bed-") as fetched:
        for archive in _fetch(packages, Path(fetched), log):
            if archive.name.partition("_")[0] in packages:
                subprocess.run(["dpkg", "-x", archive, folder], stdout=log, stderr=log, check=True)


def root(folder: Path, log: int) -> None:
    """A root file system: ROOT and what it depends on, unpacked; no script of any package runs."""
    for name in _USR:
        (folder / "usr" / name).mkdir(parents=True)
        (folder / name).symlink_to(f"usr/{name}")
    with tempfile.TemporaryDirectory(prefix="phalanx-bed-") as fetched:
        for archive in _fetch(ROOT, Path(fetched), log):
            # `tar` follows our links from /bin to /usr/bin, where dpkg would put a folder in their place.
            packed = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", archive], stdout=subprocess.PIPE, stderr=log)
            subprocess.run(
                ["tar", "-C", folder, "--keep-directory-symlink", "-x"], stdin=packed.stdout, stderr=log, check=True
            )
            if packed.wait() != 0:
                raise subprocess.CalledProcessError(packed.returncode, packed.args)
    for waste in ("doc", "man", "locale", "info", "lintian"):
        shutil.rmtree(folder / "usr/share" / waste, ignore_errors=True)
    sh = folder / "usr/bin/sh"
    if not os.path.lexists(sh):
        sh.symlink_to("dash")
    for name in ("dev", "proc", "sys", "run", "tmp", "root", "var/tmp", "etc", "opt/venv", "examples", "share"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for name in ("tmp", "var/tmp"):
        (folder / name).chmod(0o1777)
    people = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n"
    (folder / "etc/passwd").write_text(people, encoding="utf-8")
    (folder / "etc/group").write_text("root:x:0:\nnogroup:x:65534:\n", encoding="utf-8")
    # The tests' own environment, which each container of a node finds at this place.
    for packages in folder.glob("usr/lib/python3/dist-packages"):
        version = next(folder.glob("usr/lib/python3.*/os.py")).parent.name
        lines = f"/opt/venv/lib/{version}/site-packages\n/opt/venv/movielens\n"
        (packages / "phalanx-bed.pth").write_text(lines, encoding="utf-8")


def install(packages: Sequence[str], log: int) -> None:
    """What the machine itself lacks."""
    env = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    _lists(log)
    argv = ["apt-get", "-q", "install", "-y", "--no-install-recommends", *packages]
    subprocess.run(argv, env=env, stdout=log, stderr=log, check=True)


def _fetch(packages: Sequence[str], folder: Path, log: int) -> list[Path]:
    """Them and all that they depend on, as if nothing were installed."""
    _lists(log)
    (folder / "partial").mkdir()
    (folder / "status").touch()
    settings = {
        "Dir::State::status": folder / "status",
        "Dir::Cache::archives": folder,
        "APT::Sandbox::User": "root",
        "Debug::NoLocking": "1",
    }
    options = [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]
    argv = ["apt-get", "-q", *options, "--download-only", "-y", "--no-install-recommends", "install", *packages]
    subprocess.run(argv, stdout=log, stderr=log, check=True)
    return sorted(folder.glob("*.deb"))


def _lists(log: int) -> None:
    if not any(Path("/var/lib/apt/lists").glob("*_Packages*")):
        subprocess.run(["apt-get", "-q", "update"], stdout=log, stderr=log, check=True)
