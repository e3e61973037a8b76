"""Runs inside `import site` of a task's interpreter, then leaves no trace: not in sys.path, sys.modules or environment.

Everything it imports is loaded in every Python before the first line of a program. Anything else (json, `__future__`)
would be found in the standard library now, where the script's own folder has the right to shadow it later.
"""

import os
import site
import sys

#: What rides along beside this file.
_PARTS = (
    "phalanx_apart",
    "phalanx_collectives",
    "phalanx_error",
    "phalanx_files",
    "phalanx_fit",
    "phalanx_hooks",
    "phalanx_keras3",
    "phalanx_life",
    "phalanx_steps",
    "phalanx_stop",
)


def _boot(here: str) -> None:
    environ = os.environb
    _attach(environ.get(b"PHALANX_BOOT_LIFE"))
    standby = None
    if b"PHALANX_BOOT_FDS" in environ:
        import phalanx_standby  # type: ignore[import-not-found]  # it lies beside this file, whose folder is on the path

        del sys.modules["phalanx_standby"]
        standby = phalanx_standby.Standby(dict(environ))
    sys.path.remove(here)
    sys.path_importer_cache.pop(here, None)
    _restore(environ)

    # From here on as if this file did not exist: the user's own sitecustomize, if any, by site's own code, which also
    # words its errors. A second import of one name from within the first is lawful: its lock is held by thread.
    del sys.modules["sitecustomize"]
    if standby is not None:
        standby.watch()
    site.execsitecustomize()
    if site.ENABLE_USER_SITE:
        _usercustomize_now()
    if standby is not None:
        standby.run_head()
        standby.identify()
        standby.unwatch()
    if "sitecustomize" not in sys.modules:
        # What site hears where there is no such module, and passes over.
        raise ImportError("the user has none", name="sitecustomize")


def _attach(files: "bytes | None") -> None:
    """Take up the life line and hook what it counts. Whatever goes wrong here, the program starts as it would."""
    if files is None:
        return
    try:
        parts = {name: __import__(name) for name in _PARTS}
        for name in _PARTS:
            del sys.modules[name]
        line = parts["phalanx_life"].attach(files)
        if line is not None:
            parts["phalanx_hooks"].ride(line, parts)
    except Exception:  # noqa: BLE001 - see above
        return


def _restore(environ: "os._Environ[bytes]") -> None:
    """The environment as the user made it: PYTHONPATH's old value (or none), and no word of ours."""
    before = environ.get(b"PHALANX_BOOT_PYTHONPATH")
    if before is None:
        environ.pop(b"PYTHONPATH", None)
    else:
        environ[b"PYTHONPATH"] = before
    for name in [name for name in environ if name.startswith(b"PHALANX_BOOT")]:
        del environ[name]


def _usercustomize_now() -> None:
    """Run usercustomize, as it comes before the script's imports; and not once more when site gets there."""
    usual = site.execusercustomize

    def not_again() -> None:
        site.execusercustomize = usual

    usual()
    site.execusercustomize = not_again


if __name__ == "sitecustomize":  # as PYTHONPATH finds it, and not when a tool imports it as a part of phalanx
    _boot(os.path.dirname(__file__))
