"""Installed packages that notice, or need, something of the program that imports them."""

# ruff: noqa: E501 - a program a line reads better than one that is cut

from __future__ import annotations

from collections.abc import Iterator

from runtime.programs import FACTS, PYTHON, Case


def packages() -> Iterator[Case]:
    """Programs that import a package with a habit."""
    packages = {
        "that asks for the identity": "import os\nprint(os.environ.get('TF_CONFIG'), os.getenv('PHALANX_TASK'), 'TF_CONFIG' in os.environ)",
        "that asks for the binary identity": "import os\nprint(os.environb[b'TF_CONFIG'])",
        "that copies the environment": "import os\nprint(sorted(os.environ.copy().items()))",
        "that asks in a thread": "import os, threading\nt = threading.Thread(target=lambda: print(os.environ.get('TF_CONFIG')))\nt.start()\nt.join()",
        "that sets a variable": "import os\nos.environ.setdefault('TF_CONFIG', 'mine')\nos.environ['ADDED'] = '1'\nos.environ.pop('NONE', None)",
        "that fails": "import os, sys\nsys.modules['fakeflow.part'] = os\nraise AttributeError('no such version')",
        "that fails the second time in another way": "import fakelib\nif hasattr(fakelib, 'seen'): raise RuntimeError('registered twice')\nfakelib.seen = 1\nraise TypeError('the true error')",
        "that exits": "import sys\nsys.exit('no licence')",
        "that swallows every error": "try:\n    import own\nexcept BaseException:\n    own = None\nprint(own)",
        "that warns its importer": "import warnings\nwarnings.warn('old', DeprecationWarning, stacklevel=2)\nwarnings.warn('older', UserWarning, stacklevel=1)",
        "that puts a folder on the path": "import sys\nsys.path.insert(0, '/first')\nsys.path.append('/last')",
        "that puts a folder at the path's end": "import sys\nsys.path.append('/last')",
        "that looks at the program": "import __main__, sys\nprint(__main__.__file__, __main__.__name__, sys.argv, sys.path[0])",
        "that replaces signal handlers": "import signal\nsignal.signal(signal.SIGTERM, lambda *_: None)\nsignal.signal(signal.SIGINT, signal.SIG_IGN)",
        "that keeps a file open": "file = open(__file__)\nprint(file.fileno())",
        "that registers an exit": "import atexit\natexit.register(print, 'bye')",
        "that leaves a thread": "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True, name='left').start()",
        "that needs a module of the script's folder": "import random\nprint(random.__file__)",
        "that has a sitecustomize of its own": "import sys\nprint('sitecustomize' in sys.modules)",
        "that starts a program": "import subprocess\nsubprocess.run(['/bin/echo', 'from the import'])",
        "that hides names": "def __getattr__(name):\n    if name.startswith('__'): raise AttributeError(name)\n    print('asked for', name)\n    return 5",
    }  # fmt: skip
    own = {"own.py": "print('own')", "random.py": "print('my random')"}
    train = f'"""Doc."""\nfrom __future__ import annotations\nimport fakeflow\nfrom fakeflow import *\n{FACTS}'
    for name, text in packages.items():
        yield Case(
            name=f"a package {name}",
            argv=(PYTHON, "train.py"),
            files={"train.py": train, "lib/fakeflow/__init__.py": text, "lib/fakelib.py": "", **own},
            env={"PYTHONPATH": "lib"},
        )
    shadows = {
        "a module": {"fakeflow.py": "print('the local one')"},
        "a package": {"fakeflow/__init__.py": "print('the local one')"},
        "a folder that only has its name": {"fakeflow/data.txt": ""},
    }
    for name, files in shadows.items():
        yield Case(
            name=f"{name} of the script's folder in the way of an installed one",
            argv=(PYTHON, "train.py"),
            files={
                "train.py": "import os\nimport fakeflow\nimport sys\nprint(fakeflow.__file__)",
                "lib/fakeflow/__init__.py": "",
                **files,
            },
            env={"PYTHONPATH": "lib"},
        )
    yield Case(
        name="a namespace in two places",
        argv=(PYTHON, "train.py"),
        files={
            "train.py": "import os\nimport space.b\nprint(list(space.__path__))",
            "lib/space/b.py": "",
            "space/a.py": "",
        },
        env={"PYTHONPATH": "lib"},
    )
