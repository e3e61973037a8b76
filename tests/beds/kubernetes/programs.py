"""The programs of the Kubernetes bed: what they are built from, where they are kept, and why a machine has none.

`python programs.py build` builds them once into a folder named by the hash of all that goes in, so that any checkout
with the same sources finds them. It needs root, Linux, Debian's packages and Go, and about 20 minutes of two cores.
Standard library only, since `make test` begins the build before anything else.
"""

from __future__ import annotations

import argparse
import fcntl
import functools
import hashlib
import os
import re
import select
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from beds.kubernetes import debian, images

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

GO: Final = Path(__file__).with_name("go")
#: Read once: tests give themselves another home.
CACHE: Final = Path(
    os.environ.get("PHALANX_BED_CACHE")
    or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "phalanx" / "beds"
)
GIVEN: Final = os.environ.get("PHALANX_BED_KUBERNETES", "")
#: What the one program of go/main.go is called by.
PARTS: Final = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kubectl")
#: Of Debian, unpacked and never installed.
TOOLS: Final = ("containerd", "runc", "containernetworking-plugins", "libseccomp2")
#: What the machine itself must have, and the package that brings it.
COMMANDS: Final = {
    "bash": "bash",
    "unshare": "util-linux",
    "nsenter": "util-linux",
    "ip": "iproute2",
    "openssl": "openssl",
    "awk": "mawk",
}
PAUSE: Final = "localhost/pause:1"


class CannotBuildError(Exception):
    """Why there are no programs, in words that end a line."""


@dataclass(frozen=True, kw_only=True)
class Programs:
    """Where everything lies that a cluster runs: what takes minutes to build, and what takes seconds to fetch."""

    built: Path
    fetched: Path

    @property
    def bin(self) -> Path:
        return self.built / "bin"

    @property
    def tools(self) -> Path:
        return self.fetched / "tools"

    @property
    def pause(self) -> Path:
        return self.built / "pause.tar"

    @property
    def base(self) -> Path:
        """A Debian root file system with Python and libstdc++, as the image `phalanx-bed:1`."""
        return self.fetched / "base.tar"

    @property
    def whole(self) -> bool:
        return _whole(self.built) and _whole(self.fetched)


def programs() -> Programs:
    """Where they are, or will be once they are built."""
    if GIVEN:
        return Programs(built=Path(GIVEN), fetched=Path(GIVEN))
    here = Path(__file__)
    return Programs(
        built=CACHE / f"kubernetes-{_key(_go_version(), [path for path in GO.rglob('*') if path.is_file()])}",
        fetched=CACHE / f"debian-{_key(_release(), [here.with_name('debian.py'), here.with_name('images.py')])}",
    )


def _key(more: str, sources: list[Path]) -> str:
    summed = hashlib.sha256(more.encode())
    for path in sorted(sources):
        summed.update(path.relative_to(Path(__file__).parent).as_posix().encode() + b"\0" + path.read_bytes())
    return summed.hexdigest()[:12]


def _release() -> str:
    try:
        return Path("/etc/debian_version").read_text(encoding="utf-8")
    except OSError:
        return "no Debian"


def _whole(folder: Path) -> bool:
    return (folder / "whole").exists()


@functools.cache
def _go_version() -> str:
    try:
        return subprocess.run(["go", "version"], capture_output=True, text=True, check=True, timeout=60).stdout
    except (OSError, subprocess.SubprocessError):
        return "no Go"


def obstacle() -> str | None:
    """Why this machine can run no cluster at all, or None."""
    lacking: dict[str, bool] = {
        "a Kubernetes cluster needs Linux": sys.platform != "linux",
        "a Kubernetes cluster of the tests needs root, for its namespaces": os.geteuid() != 0,
    }
    if GIVEN:
        lacking[f"PHALANX_BED_KUBERNETES={GIVEN} holds no built programs (no file `whole`)"] = not programs().whole
    elif not programs().whole:
        lacking |= {
            "building Kubernetes needs Go (or PHALANX_BED_KUBERNETES, a folder of programs built elsewhere)": (
                shutil.which("go") is None
            ),
            "the container tools of the bed come from Debian's packages, and there is no apt-get here": (
                shutil.which("apt-get") is None
            ),
        }
    return next((reason for reason, true in lacking.items() if true), None)


def absent() -> str | None:
    """Why there are no programs now, or None when there are."""
    reason = obstacle()
    if reason is not None or programs().whole:
        return reason
    failed = _beside("failed")
    if failed.exists():
        return f"the build of Kubernetes failed: {failed.read_text(encoding='utf-8').strip()} (see {_beside('log')})"
    return "Kubernetes is not built here yet: `make bed` does it (about 20 minutes of two cores, once)"


def being_built() -> bool:
    """Whether somebody builds them at this moment."""
    try:
        with _beside("lock").open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def wait(say: Callable[[str], None], *, every: float = 60) -> None:
    """Wait for a build that is going on; says so now and then."""
    begun = time.monotonic()
    said = begun - every
    while being_built() and not programs().whole:
        now = time.monotonic()
        if now - said >= every:
            said = now
            say(f"waiting for the build of Kubernetes, {now - begun:.0f} s by now (see {_beside('log')})")
        time.sleep(0.5)


def _beside(what: str) -> Path:
    folder = programs().built
    return folder.with_name(f"{folder.name}.{what}")


def build() -> None:
    """Build what is not there yet. Whoever else is building is waited for."""
    reason = obstacle()
    if reason is not None:
        raise CannotBuildError(reason)
    CACHE.mkdir(parents=True, exist_ok=True)
    with _beside("lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if programs().whole:
            return
        _beside("failed").unlink(missing_ok=True)
        try:
            with _beside("log").open("w", encoding="utf-8") as log:
                _build(programs(), log.fileno())
        except (OSError, subprocess.SubprocessError, CannotBuildError) as error:
            _beside("failed").write_text(f"{error}\n", encoding="utf-8")
            raise CannotBuildError(f"{error} (see {_beside('log')})") from error


def _build(to: Programs, log: int) -> None:
    """What is small and may fail comes before what is long."""
    if not _whole(to.fetched):
        _fetch(to, log)
    if not _whole(to.built):
        _compile(to, log)


def _fetch(to: Programs, log: int) -> None:
    shutil.rmtree(to.fetched, ignore_errors=True)
    to.fetched.mkdir()
    lacking = sorted({package for command, package in COMMANDS.items() if shutil.which(command) is None})
    if lacking:
        debian.install(lacking, log)
    debian.unpack(TOOLS, to.tools, log)
    with tempfile.TemporaryDirectory(dir=to.fetched) as root:
        Path(root).chmod(0o755)
        debian.root(Path(root), log)
        images.pack("phalanx-bed:1", Path(root), to.base)
    (to.fetched / "whole").touch()


def _compile(to: Programs, log: int) -> None:
    shutil.rmtree(to.built, ignore_errors=True)
    to.bin.mkdir(parents=True)
    env = os.environ | {"CGO_ENABLED": "0", "GOFLAGS": "-trimpath -buildvcs=false"}
    for name, source, package in _binaries():
        argv = ["go", "build", "-ldflags", _flags(), "-o", str(to.bin / name), package]
        subprocess.run(argv, cwd=source, env=env, stdout=log, stderr=log, check=True)
    for part in PARTS:
        (to.bin / part).symlink_to("kubernetes")
    with tempfile.TemporaryDirectory(dir=to.built) as root:
        Path(root).chmod(0o755)
        shutil.copy(to.bin / "pause", Path(root, "pause"))
        images.pack(PAUSE, Path(root), to.pause, entrypoint="/pause")
    (to.built / "whole").touch()


def _binaries() -> Iterator[tuple[str, Path, str]]:
    """Name, module, package; CoreDNS is a module of its own, so that Kubernetes keeps the versions of its release."""
    yield "pause", GO, "./pause"
    yield "coredns", GO / "coredns", "."
    yield "kubernetes", GO, "."


def _flags() -> str:
    """Without the version it would call itself v0.0.0-master."""
    found = re.search(r"k8s\.io/kubernetes v1\.(\d+)\.(\d+)", (GO / "go.mod").read_text(encoding="utf-8"))
    if found is None:
        raise CannotBuildError(f"{GO / 'go.mod'} requires no k8s.io/kubernetes")
    stamp = "-X k8s.io/component-base/version.git"
    minor = found[1]
    return f"-s -w {stamp}Version=v1.{minor}.{found[2]} {stamp}Major=1 {stamp}Minor={minor}"


def _end_with(pid: int) -> None:
    """What was begun beside a `make` that is gone is for nobody."""

    def watch() -> None:
        try:
            gone = os.pidfd_open(pid)
        except ProcessLookupError:
            os.killpg(0, 15)
            return
        select.select([gone], [], [])
        os.killpg(0, 15)

    os.setpgid(0, 0)
    threading.Thread(target=watch, daemon=True).start()


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="The programs of the Kubernetes bed.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("where", help="print the folder they are, or will be, in")
    building = verbs.add_parser("build", help="build them, when they are not there")
    building.add_argument("--beside", type=int, metavar="PID", help="end with this process, and give way to others")
    given = parser.parse_args(arguments)
    if given.verb == "where":
        print(programs().built)
        return 0
    if given.beside:
        _end_with(given.beside)
        os.nice(15)
    try:
        build()
    except CannotBuildError as error:
        print(f"no Kubernetes bed: {error}", file=sys.stderr)
        return 1
    print(programs().built)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
