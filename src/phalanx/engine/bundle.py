"""The agent as one file, and as the folder it is unpacked into: all pure Python, so a host needs only an interpreter.

The folder lies in a private cache, one for each version of its contents, and is made whole or not at all.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import shutil
import stat
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import phalanx
from phalanx.errors import PlaceError

#: Everything the agent and the lead import, all pure Python. Checked by a test that runs the zip under `-S -E`.
LIBRARIES = ("starlette", "uvicorn", "anyio", "h11", "click", "typing_extensions", "h2", "hpack", "hyperframe")

#: The parts of phalanx that ride along; the rest stays on the user's machine.
_PARTS = (
    "agent",
    "decide",
    "lead",
    "plan",
    "protocol",
    "records",
    "runtime",
    # Of tfconfig only what a plan is made of: the rules stay on the user's machine.
    "tfconfig/bodies.py",
    "tfconfig/model.py",
    "__init__.py",
    "apart.py",
    "apiwatch.py",
    "errors.py",
    "event.py",
    "events.py",
    "hostevents.py",
    "hoststate.py",
    "names.py",
    "noise.py",
    "rates.py",
    "sample.py",
    "slowevents.py",
    "spans.py",
    "speed.py",
    "patient.py",
    "redact.py",
    "states.py",
    "taskstate.py",
)

#: What the libraries bring for tests, terminals, other event loops and other protocols: nothing here imports it. Nor
#: idna, which anyio wants for host names that are not ASCII.
_LEFT_OUT = frozenset(
    {
        "anyio/_backends/_trio.py",
        "anyio/_core/_fileio.py",
        "anyio/_core/_tempfile.py",
        "anyio/functools.py",
        "anyio/itertools.py",
        "anyio/pytest_plugin.py",
        "anyio/streams/buffered.py",
        "anyio/streams/file.py",
        "anyio/streams/text.py",
        "anyio/to_interpreter.py",
        "anyio/to_process.py",
        "click/_termui_impl.py",
        "click/_textwrap.py",
        "click/_winconsole.py",
        "click/shell_completion.py",
        "click/testing.py",
        "starlette/authentication.py",
        "starlette/config.py",
        "starlette/endpoints.py",
        "starlette/middleware/authentication.py",
        "starlette/middleware/cors.py",
        "starlette/middleware/gzip.py",
        "starlette/middleware/httpsredirect.py",
        "starlette/middleware/opentelemetry.py",
        "starlette/middleware/sessions.py",
        "starlette/middleware/trustedhost.py",
        "starlette/middleware/wsgi.py",
        "starlette/schemas.py",
        "starlette/templating.py",
        "starlette/testclient.py",
        "uvicorn/protocols/http/auto_zttp_impl.py",
        "uvicorn/protocols/http/httptools_impl.py",
        "uvicorn/protocols/http/zttp_h2_impl.py",
        "uvicorn/protocols/http/zttp_impl.py",
        "uvicorn/protocols/websockets/websockets_impl.py",
        "uvicorn/protocols/websockets/websockets_sansio_impl.py",
        "uvicorn/protocols/websockets/wsproto_impl.py",
        "uvicorn/supervisors/watchfilesreload.py",
        "uvicorn/workers.py",
    }
)

_MAIN = """import sys
if sys.argv[1:2] == ["agent"]:
    from phalanx.agent.main import main
    sys.exit(main())
if sys.argv[1:2] == ["pod"]:
    from phalanx.agent.pod import main
    sys.exit(main(sys.argv[2:]))
from phalanx.lead.main import main
sys.exit(main(int(sys.argv[2]), int(sys.argv[3])))
"""


def contents() -> Iterator[tuple[str, Path]]:
    """Each file of the bundle: its name inside, and where it is now. Sorted: equal versions give equal bundles."""
    home = Path(phalanx.__file__).parent
    for part in _PARTS:
        yield from _files(home / part, f"phalanx/{part}")
    for library in LIBRARIES:
        spec = importlib.util.find_spec(library)
        if spec is None or spec.origin is None:
            raise PlaceError(f"the library {library} is not installed", hint="pip install --force-reinstall phalanx")
        origin = Path(spec.origin)
        if origin.name == "__init__.py":
            yield from (each for each in _files(origin.parent, library) if each[0] not in _LEFT_OUT)
        else:
            yield origin.name, origin


def _files(path: Path, name: str) -> Iterator[tuple[str, Path]]:
    if path.is_file():
        yield name, path
    elif path.is_dir():
        for child in sorted(path.rglob("*")):
            if child.is_file() and child.suffix not in (".pyc", ".pyi") and "__pycache__" not in child.parts:
                yield f"{name}/{child.relative_to(path)}", child


def write_zip(target: Path) -> None:
    """The bundle as one runnable file (`python3 -S -E phalanx-agent.pyz agent`), equal for equal contents."""
    with target.open("wb") as out, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as bundle:
        for name, path in contents():
            bundle.writestr(zipfile.ZipInfo(name), path.read_bytes(), zipfile.ZIP_DEFLATED, compresslevel=9)
        # Without an __init__ it is a namespace, and zipimport knows those by their folder's own entry.
        bundle.writestr(zipfile.ZipInfo("phalanx/tfconfig/"), b"")
        bundle.writestr(zipfile.ZipInfo("__main__.py"), _MAIN, zipfile.ZIP_DEFLATED)


def agent_zip() -> bytes:
    """The same as bytes, for what carries it in parts."""
    with tempfile.TemporaryDirectory(prefix="phalanx-") as folder:
        path = Path(folder) / "agent.pyz"
        write_zip(path)
        return path.read_bytes()


def fingerprint() -> str:
    """Names one version of the contents by names, sizes and times of its files: cheap enough for every start."""
    digest = hashlib.sha256(_MAIN.encode())
    for name, path in contents():
        facts = path.stat()
        digest.update(f"{name}\0{facts.st_size}\0{facts.st_mtime_ns}\0".encode())
    return digest.hexdigest()[:16]


def cache_root(environ: os._Environ[str] | dict[str, str] = os.environ) -> Path:
    """`$XDG_CACHE_HOME/phalanx`, private to this user. Raises PlaceError where somebody else could write into it."""
    base = environ.get("XDG_CACHE_HOME") or str(Path(environ.get("HOME") or "~").expanduser() / ".cache")
    root = Path(base) / "phalanx"
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        facts = root.stat()
    except OSError as wrong:
        raise PlaceError(f"the cache {root} cannot be used: {wrong.strerror}", hint="set XDG_CACHE_HOME") from wrong
    if facts.st_uid != os.getuid() or facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PlaceError(f"the cache {root} can be written by others", hint=f"chmod 700 {root}, or set XDG_CACHE_HOME")
    return root


def unpacked(root: Path | None = None) -> Path:
    """The folder of this version, made if it is not there. Two at once are fine: the first rename wins."""
    root = cache_root() if root is None else root
    target = root / f"agent-{fingerprint()}"
    if (target / "__main__.py").is_file():
        return target
    scratch = Path(tempfile.mkdtemp(prefix=".agent-", dir=root))
    try:
        for name, path in contents():
            place = scratch / name
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, place)
        (scratch / "__main__.py").write_text(_MAIN)
        try:
            scratch.rename(target)
        except OSError:
            if not (target / "__main__.py").is_file():
                raise
    except OSError as wrong:
        raise PlaceError(f"the agent cannot be unpacked into {root}: {wrong.strerror}") from wrong
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    _forget_old(root, keep=target)
    return target


def _forget_old(root: Path, *, keep: Path) -> None:
    """Only the newest few versions stay, and those in use: their agents start tasks and leads from them."""
    versions = sorted(root.glob("agent-*"), key=lambda path: path.stat().st_mtime, reverse=True)
    for old in versions[4:]:
        if old != keep and not _in_use(old):
            shutil.rmtree(old, ignore_errors=True)


def _in_use(version: Path) -> bool:
    """Whether an agent holds it (`phalanx.agent.main`)."""
    try:
        with (version / "phalanx" / "agent" / "main.py").open("rb") as held:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
