"""Runs in a task's interpreter before its program, where `phalanx chaos` has put this folder on PYTHONPATH.

Gives the main thread a handler that sleeps while a file is there, then leaves no trace and hands on to the user's own
sitecustomize. A handler runs between two bytecodes: a thread that waits in C++ falls asleep when it comes back.
"""

import os
import sys

#: The variable that names the folder shared with `phalanx chaos`.
FOLDER = "PHALANX_CHAOS"

#: The signal that makes it sleep: a real-time one, which neither Python nor TensorFlow nor phalanx uses.
STALL = 61


#: How often it waits until the program's own lines run, and the seconds in between. A pause in the middle of a trace, a
#: validation or a save is none that a hang detector may take for a hang.
_TRIES, _PAUSE = 200, 0.01


def _arm(folder: str) -> None:
    import signal

    tries = 0

    def sleep(number: int, frame: object) -> None:
        import time

        nonlocal tries
        code = getattr(frame, "f_code", None)
        own = getattr(sys.modules["__main__"], "__file__", None)
        if code is not None and code.co_filename != own and tries < _TRIES:
            tries += 1
            _again(number)
            return
        while os.path.exists(os.path.join(folder, "stall-%d" % os.getpid())):
            time.sleep(0.02)

    signal.signal(STALL, sleep)


def _again(number: int) -> None:
    import _thread
    import time

    def send() -> None:
        time.sleep(_PAUSE)
        os.kill(os.getpid(), number)

    _thread.start_new_thread(send, ())


def _boot(here: str) -> None:
    import site

    if FOLDER in os.environ:
        _arm(os.environ[FOLDER])
    if here in sys.path:
        sys.path.remove(here)
        sys.path_importer_cache.pop(here, None)
    del sys.modules["sitecustomize"]
    site.execsitecustomize()
    if "sitecustomize" not in sys.modules:
        # What site hears where there is no such module, and passes over.
        raise ImportError("the user has none", name="sitecustomize")


if __name__ == "sitecustomize":  # as PYTHONPATH finds it, and not when it is imported as a part of phalanx
    _boot(os.path.dirname(__file__))
