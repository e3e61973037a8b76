"""Small programs that would notice a difference: each prints what it sees of its start, or ends in its own way."""

# ruff: noqa: E501 - a program a line reads better than one that is cut

from __future__ import annotations

import dataclasses
import io
import sys
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

PYTHON = sys.executable
#: The interpreter without its virtual environment, where user site-packages and usercustomize are allowed.
BARE = str(Path(sys.executable).resolve())


def _worker_1() -> Mapping[str, str]:
    return {"TF_CONFIG": '{"task": {"type": "worker", "index": 1}}', "PHALANX_TASK": "worker:1"}


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """A folder with files, a command line run in it, and what the environment and the identity add."""

    name: str
    argv: tuple[str, ...]
    files: Mapping[str, str | bytes]
    env: Mapping[str, str] = dataclasses.field(default_factory=dict)
    identity: Mapping[str, str] = dataclasses.field(default_factory=_worker_1)

    def lay_out(self, folder: Path) -> None:
        """Write the files. A value `-> NAME` makes a symbolic link."""
        for name, content in self.files.items():
            place = folder / name
            place.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, bytes):
                place.write_bytes(content)
            elif content.startswith("-> "):
                place.symlink_to(content[3:])
            else:
                place.write_text(content, encoding="utf-8", newline="")


# Prints whatever the interpreter knows of how it was started.
FACTS = """
import atexit, gc, json, locale, os, signal, subprocess, sys, threading, warnings

STACKS = 1 << (signal.SIGRTMIN + 7 - 1)  # the one signal that the runtime takes for itself

def status(*wanted):
    with open("/proc/self/status") as file:
        lines = [line.split() for line in file if line.startswith(wanted)]
    return [(name, hex(int(value, 16) & ~STACKS) if name == "SigCgt:" else value) for name, value in lines]

def files():
    found = {}
    for number in os.listdir("/proc/self/fd"):
        if int(number) >= 190:
            continue  # where the runtime keeps its own
        try:
            found[number] = os.readlink("/proc/self/fd/" + number).split(":")[0]
        except OSError:
            pass
    return found

CHILD = "import json, os, sys; print(json.dumps([sorted(os.environ.items()), sys.path, sorted(os.listdir('/proc/self/fd'))]))"
main = sys.modules["__main__"]
facts = {
    "argv": sys.argv,
    "orig_argv": getattr(sys, "orig_argv", None),
    "flags": repr(sys.flags),
    "path": sys.path,
    "file": globals().get("__file__"),
    "name": __name__,
    "spec": __spec__ and [__spec__.name, type(__spec__.loader).__name__, __spec__.origin, __spec__.parent],
    "package": __package__,
    "loader": type(__loader__).__name__,
    "main": sorted(vars(main)),
    "is main": vars(main) is globals(),
    "warnoptions": sys.warnoptions,
    "filters": repr(warnings.filters),
    "xoptions": repr(sys._xoptions),
    "environment": sorted(os.environ.items()),
    "environment's type": type(os.environ._data).__name__,
    "binary environment": len(os.environb),
    "child": subprocess.run([sys.executable, "-c", CHILD], capture_output=True, text=True).stdout,
    "program": sorted(subprocess.run(["/usr/bin/env"], capture_output=True, text=True).stdout.splitlines()),
    "files": files(),
    "signals": {number: repr(signal.getsignal(number)).split(" at ")[0] for number in sorted(signal.valid_signals())},
    "masks": status("SigBlk", "SigIgn", "SigCgt", "ShdPnd", "Threads"),
    "stdout": [sys.stdout.line_buffering, sys.stdout.write_through, type(sys.stdout.buffer).__name__, sys.stdout.encoding],
    "stderr": [sys.stderr.line_buffering, sys.stderr.write_through, sys.stderr.errors],
    "locale": [locale.setlocale(locale.LC_ALL), sys.getfilesystemencoding()],
    "modules": sorted(sys.modules),
    "finders": [repr(finder).split(" at ")[0] for finder in sys.meta_path],
    "importers": sorted(sys.path_importer_cache),
    "executable": [sys.executable, sys.prefix, sys.exec_prefix],
    "hooks": [sys.excepthook is sys.__excepthook__, sys.displayhook is sys.__displayhook__, len(sys.path_hooks)],
    "atexit": atexit._ncallbacks(),
    "threads": [thread.name for thread in threading.enumerate()],
    "collector": [gc.isenabled(), gc.get_threshold(), gc.get_freeze_count()],
    "depth": len(sys._current_frames()),
    "recursion": sys.getrecursionlimit(),
    "folder": os.getcwd(),
    "site": [sys.modules["site"].execusercustomize.__module__, sys.modules["site"].ENABLE_USER_SITE],
    "dont_write_bytecode": sys.dont_write_bytecode,
    "exception": repr(sys.exc_info()),
}
print(json.dumps(facts, indent=1))
"""

_NO_HEAD = "first = 'a statement that is no import'\n" + FACTS

_MULTIPROCESSING = """
import multiprocessing
import os
import sys

class Thing:
    def __init__(self, value):
        self.value = value

def double(thing):
    return Thing(thing.value * 2), __name__, os.environ["TF_CONFIG"], "PHALANX_BOOT_FDS" in os.environ, sys.path[0]

if __name__ == "__main__":
    for method in ("fork", "spawn", "forkserver"):
        with multiprocessing.get_context(method).Pool(1) as pool:
            for thing, *rest in pool.map(double, [Thing(4), Thing(5)]):
                print(method, thing.value, type(thing) is Thing, *rest)
"""

_PICKLING = """
import atexit, pickle, threading

class Thing:
    pass

def through(where):
    print(where, type(pickle.loads(pickle.dumps(Thing()))) is Thing, pickle.dumps(Thing))

main_is_over = threading.Event()
atexit.register(through, "at exit, first registered")
atexit.register(lambda: print("at exit, last registered"))
threading._register_atexit(main_is_over.set)
thread = threading.Thread(target=lambda: (main_is_over.wait(10), through("thread that outlives main")))
thread.start()
daemon = threading.Thread(target=threading.Event().wait, daemon=True)
daemon.start()
through("main")
"""

_EXECS_ITSELF = """
import os, sys
print(sys.argv, os.environ["TF_CONFIG"], sorted(os.environ), sys.path, flush=True)
if "again" not in sys.argv:
    os.execv(sys.executable, [sys.executable, *sys.argv, "again"])
"""

_LATE_SWITCH = """
import os
os.environ["FAKEFLOW_LEGACY"] = "1"
import fakeflow
print(fakeflow.legacy)
"""

_FAKEFLOW = """
import os
legacy = os.environ.get("FAKEFLOW_LEGACY")
print("fakeflow is imported as", __name__, "from", __file__)
"""


def _zipped() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("__main__.py", FACTS)
    return out.getvalue()


def cases() -> Iterator[Case]:
    """All but those of `packages`."""
    yield from _lines()
    yield from _ends()
    yield from _environments()


def _lines() -> Iterator[Case]:
    script = {"train.py": FACTS}
    yield Case(name="a script", argv=(PYTHON, "train.py", "--epochs", "3"), files=script)
    yield Case(name="a script without a head", argv=(PYTHON, "./train.py"), files={"train.py": _NO_HEAD})
    yield Case(
        name="a script in a folder below", argv=(PYTHON, "-u", "jobs/../jobs/train.py"), files={"jobs/train.py": FACTS}
    )
    yield Case(
        name="every option",
        argv=(
            PYTHON,
            "-uBOOq",
            "-W",
            "error::ImportWarning",
            "-Wdefault",
            "-X",
            "dev",
            "-Xutf8",
            "-s",
            "--",
            "train.py",
            "-u",
        ),
        files=script,
    )
    yield Case(name="warnings are errors", argv=(PYTHON, "-bb", "-W", "error", "train.py"), files=script)
    yield Case(
        name="a safe path", argv=(PYTHON, "-P", "train.py"), files={**script, "json.py": "raise SystemExit('mine')"}
    )
    yield Case(
        name="a symbolic link", argv=(PYTHON, "link.py"), files={"real/train.py": FACTS, "link.py": "-> real/train.py"}
    )
    yield Case(name="a module", argv=(PYTHON, "-m", "pkg.mod", "x"), files={"pkg/__init__.py": "", "pkg/mod.py": FACTS})
    yield Case(
        name="a package", argv=(PYTHON, "-mpkg"), files={"pkg/__init__.py": "print('pkg')", "pkg/__main__.py": FACTS}
    )
    yield Case(name="a command", argv=(PYTHON, "-W", "ignore", "-c", FACTS, "-c", "x"), files={})
    yield Case(name="a command joined to its option", argv=(PYTHON, "-uc" + FACTS.strip(), "x"), files={})
    yield Case(name="a folder", argv=(PYTHON, "app"), files={"app/__main__.py": FACTS})
    yield Case(name="a zip", argv=(PYTHON, "app.zip"), files={"app.zip": _zipped()})
    yield Case(name="a byte order mark", argv=(PYTHON, "train.py"), files={"train.py": "\ufeff" + FACTS.lstrip()})
    yield Case(name="lines of Windows", argv=(PYTHON, "train.py"), files={"train.py": FACTS.replace("\n", "\r\n")})
    yield Case(
        name="another encoding",
        argv=(PYTHON, "train.py"),
        files={"train.py": "# coding: latin-1\nimport os\nprint(len('é'))".encode("latin-1")},
    )
    yield Case(name="multiprocessing", argv=(PYTHON, "train.py"), files={"train.py": _MULTIPROCESSING})
    yield Case(name="pickling, threads, atexit", argv=(PYTHON, "train.py"), files={"train.py": _PICKLING})
    yield Case(name="a script that execs itself", argv=(PYTHON, "train.py"), files={"train.py": _EXECS_ITSELF})
    yield Case(
        name="prints held in a buffer",
        argv=(PYTHON, "train.py"),
        files={"train.py": "import os, sys\nprint('held')\nsys.stderr.write('first')\nos.write(1, b'second ')"},
    )


def _ends() -> Iterator[Case]:
    programs = {
        "an exception": "import json\nimport os\n\ndef f():\n    json.loads('{')\n\ntry:\n    f()\nexcept ValueError as e:\n    raise RuntimeError(os.sep) from e\n",
        "a syntax error": "import os\nimport json\nx = = 1\n",
        "a name that is not there": "import os\nprint(nothing)\n",
        "an exit code": "import sys\nsys.exit(3)",
        "an exit with words": "import sys\nsys.exit('enough')",
        "an exit without Python": "import os, atexit\natexit.register(print, 'never')\nprint('lost')\nos._exit(7)",
        "an interrupt": "import os, signal\nprint('before', flush=True)\nos.kill(os.getpid(), signal.SIGINT)\nsignal.pause()",
        "a termination": "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)\nsignal.pause()",
        "a broken pipe is an exception": "import os, signal\nr, w = os.pipe()\nos.close(r)\nos.write(w, b'x')",
        "an exception in a thread": "import threading\nt = threading.Thread(target=lambda: 1 / 0, name='t')\nt.start()\nt.join()",
        "an exception at exit": "import atexit\natexit.register(divmod, 1, 0)",
        "an escape that warns": '"""A pattern \\d."""\nimport os\nprint(__doc__)',
        "a deep recursion": "import sys\n\ndef f(n):\n    return n if n == 0 else f(n - 1)\n\nprint(f(900))\nf(100000)",
        "a relative import": "import os\nfrom . import x",
        "an unknown module": "import os\nimport nowhere_to_be_found\n",
        "an unknown submodule": "import os\nimport json.nowhere\n",
        "an unknown name": "import os\nfrom json import nowhere\n",
        "a null byte": "import os\n\0",
    }  # fmt: skip
    for name, text in programs.items():
        yield Case(name=name, argv=(PYTHON, "train.py"), files={"train.py": text})
    yield Case(
        name="developers' mode",
        argv=(PYTHON, "-X", "dev", "train.py"),
        files={"train.py": "import os\nopen('train.py')\n1 / 0"},
    )
    yield Case(name="a script that is not there", argv=(PYTHON, "none.py"), files={})
    yield Case(name="a module that is not there", argv=(PYTHON, "-m", "none.such"), files={})
    yield Case(name="an option that is not there", argv=(PYTHON, "-Z", "train.py"), files={"train.py": FACTS})
    yield Case(name="an exception in a command", argv=(PYTHON, "-c", "import os\n1 / 0"), files={})


def _environments() -> Iterator[Case]:
    script = {"train.py": FACTS}
    argv = (PYTHON, "train.py")
    for value in ("lib", "", ":", "lib::./lib:", "/nowhere:lib"):
        yield Case(name=f"PYTHONPATH={value!r}", argv=argv, files={**script, "lib/a.py": ""}, env={"PYTHONPATH": value})
    for name, value in {
        "PYTHONSAFEPATH": "1",
        "PYTHONUNBUFFERED": "1",
        "PYTHONOPTIMIZE": "2",
        "PYTHONWARNINGS": "error",
        "PYTHONDEVMODE": "1",
        "PYTHONNOUSERSITE": "1",
        "PYTHONHASHSEED": "7",
        "PYTHONFAULTHANDLER": "1",
        "PYTHONINSPECT": "1",
        "LC_ALL": "C",
        "MINE": "\udcff",
    }.items():
        yield Case(name=f"{name}={value!a}", argv=argv, files=script, env={name: value})
    yield Case(
        name="an identity of many bytes",
        argv=argv,
        files=script,
        identity={"TF_CONFIG": "é" * 60_000, "PHALANX_RUN": "\udcff="},
    )
    yield Case(
        name="an identity that an interpreter reads at its start",
        argv=argv,
        files={
            "train.py": "import os, sys\nprint(hash('x'), sys.flags, os.environ['PYTHONHASHSEED'], os.environ['TF_CONFIG'])"
        },
        identity={"PYTHONHASHSEED": "5", "PYTHONUTF8": "1", "TF_CONFIG": "x"},
    )
    yield Case(
        name="a switch that is set before an import",
        argv=argv,
        files={"train.py": _LATE_SWITCH, "lib/fakeflow.py": _FAKEFLOW},
        env={"PYTHONPATH": "lib"},
    )
    yield Case(
        name="a sitecustomize and a usercustomize",
        argv=(BARE, "train.py"),
        files={
            **script,
            "lib/sitecustomize.py": "import sys; print('site', 'usercustomize' in sys.modules, sys.path, __file__, sys.argv)",
            "lib/usercustomize.py": "import os, sys; print('user', 'json' in sys.modules); os.environ['FAKE'] = '1'",
        },
        env={"PYTHONPATH": "lib"},
    )
    yield Case(
        name="a sitecustomize that asks for the identity",
        argv=(BARE, "train.py"),
        files={
            **script,
            "lib/sitecustomize.py": "import os; print('site', os.environ.get('TF_CONFIG'), 'PHALANX_TASK' in os.environ)",
            "lib/usercustomize.py": "import os; print('user', sorted(os.environ))",
        },
        env={"PYTHONPATH": "lib"},
    )
    for name, text in {"fails": "1 / 0", "is missing a module": "import nowhere_to_be_found"}.items():
        for module in ("sitecustomize", "usercustomize"):
            yield Case(
                name=f"a {module} that {name}",
                argv=(BARE, "train.py"),
                files={**script, f"lib/{module}.py": text},
                env={"PYTHONPATH": "lib"},
            )
