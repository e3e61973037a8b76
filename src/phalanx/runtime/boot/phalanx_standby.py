"""A standby: an interpreter that has run the head of its script (the imports it begins with) and awaits its identity.

That is a set of environment variables. Whoever asks `os.environ` for it earlier (the user's sitecustomize, a
package while it is imported) waits there for it; so nobody can tell that it came late. Where that cannot be had (the
head fails, needs a module of the script's own folder, or has read a variable that then changes), the interpreter
starts itself afresh, cold: slower, and never wrong.

As in sitecustomize, nothing is imported that is not loaded already.
"""

import _signal  # type: ignore[import-not-found]  # `signal` would load enum
import _thread
import os
import sys

TYPE_CHECKING = False  # as type checkers spell it; `typing` is not to be loaded here
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: Exit code of a standby that was never given an identity: its agent has discarded it, or is gone.
ABANDONED = 79

#: Variables that may change once the head has run, if nobody has asked for them: TensorFlow reads these when it makes
#: a server or a context. Any other could have been read by C code, whose getenv() nobody sees.
_MAY_COME_LATE = (b"TF_CONFIG", b"PHALANX_", b"TF_GRPC_", b"TF_NUM_")


def mark(source: bytes) -> int:
    """Tells whether the script still begins as it did when it was read. No digest is loaded at this time."""
    return int.from_bytes(source, "big") % ((1 << 61) - 1)


def may_come_late(name: bytes) -> bool:
    """Whether a variable may change once the head has run, if nobody has asked for it."""
    return name.startswith(_MAY_COME_LATE)


def is_identity(name: bytes) -> bool:
    """Whether a variable says which task this is, so that no answer can be given before it is known."""
    return name == b"TF_CONFIG" or name.startswith(b"PHALANX_")


class Standby:
    """One interpreter's wait, from its first import to its identity."""

    def __init__(self, environ: "dict[bytes, bytes]") -> None:
        """`environ`: the environment it was started with. Ends the process where its two pipes are not there."""
        self._started_with = environ
        self._receive_from, self._tell = (int(number) for number in environ[b"PHALANX_BOOT_FDS"].split(b","))
        self._head = environ.get(b"PHALANX_BOOT_HEAD")
        self._lock = _thread.RLock()
        self._main_thread = _thread.get_ident()
        self._waiting = True
        self.asked: "set[bytes]" = set()
        try:
            self._pass_pipes_on(False)  # noqa: FBT003 - yes or no
        except OSError:
            os.write(2, b"phalanx: this interpreter was started as a standby, but its pipes were closed on the way\n")
            os._exit(ABANDONED)

    # The environment, watched --------------------------------------------------------------------------------------

    def watch(self) -> None:
        """From now on `os.environ` notes what it is asked for."""
        self._environ = _Watched(os.environ._data, self)  # type: ignore[attr-defined]  # noqa: SLF001 - as below
        self._put_under_environ(self._environ)

    def unwatch(self) -> None:
        """`os.environ` is a plain one again."""
        self._put_under_environ(dict.copy(self._environ))

    def _put_under_environ(self, data: "dict[bytes, bytes]") -> None:
        # One dict under both, in every Python 3. Replacing the two objects would miss whoever holds them already.
        os.environ._data = os.environb._data = data  # type: ignore[attr-defined]  # noqa: SLF001 - as above

    # The head of the script ----------------------------------------------------------------------------------------

    def run_head(self) -> None:
        """Run the first bytes of the script, which are imports only, in the real `__main__`; then empty that again.

        The script will run them once more and find every module loaded. Nothing is run when the file has changed.
        """
        found = self._find_head() if self._waiting else None
        if found is None:
            return
        source, filename, folder, own = found
        guard = _Guard(own, self._start_afresh)
        main = sys.modules["__main__"].__dict__
        before = dict(main)
        if sys.argv[0] != "-c":
            main["__file__"], main["__cached__"] = filename, None
        if folder is not None:
            sys.path.insert(0, folder)
        sys.meta_path.insert(_place_of_path_finder(), guard)
        try:
            exec(compile(source, filename, "exec", dont_inherit=True), main)  # noqa: S102 - the user's own program
        except KeyboardInterrupt:
            _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
            os.kill(os.getpid(), _signal.SIGINT)
        except BaseException:  # noqa: BLE001 - whatever it is, the script must meet it, and for the first time
            self._start_afresh()
        sys.meta_path.remove(guard)
        if folder is not None:
            if sys.path[:1] != [folder]:  # an import has changed the path; it would be another one under the script
                self._start_afresh()
            del sys.path[0]
            # What it remembers of the folder may be old when the script begins.
            forget = getattr(sys.path_importer_cache.get(folder or os.getcwd()), "invalidate_caches", None)
            if forget is not None:
                forget()
        for name in set(main).difference(before, ("__warningregistry__",)):
            del main[name]
        main.update(before)

    def _find_head(self) -> "tuple[bytes, str, str | None, set[str]] | None":
        """The head's text, the file name in its tracebacks, what will be sys.path[0], and the names of its modules.

        None where the text is not what it was. A folder counts, whatever is in it: it may be part of a namespace.
        """
        if self._head is None:
            return None
        size, expected = map(int, self._head.split(b":"))
        filename, folder = "<string>", ""
        try:
            if sys.argv[0] == "-c":
                texts = [text for word in _words() for text in (word, word.partition(b"c")[2])]
            else:
                script = sys.argv[0]
                with open(script, "rb") as file:
                    texts = [file.read(size)]
                filename = script if script.startswith("/") else os.getcwd() + "/" + script
                folder = os.path.dirname(os.path.realpath(script))
            own = {name.partition(".")[0] for name in os.listdir(folder or ".")}
        except OSError:
            return None
        for text in texts:
            if len(text) >= size and mark(text[:size]) == expected:
                if getattr(sys.flags, "safe_path", False):
                    return text[:size], filename, None, set()
                return text[:size], filename, folder, own
        return None

    # The identity --------------------------------------------------------------------------------------------------

    def identify(self) -> None:
        """Say that it is ready, wait for the identity and take it. Idempotent; a second thread waits for the first."""
        with self._lock:
            if not self._waiting:
                return
            changes = self._wait()
            changes = {name: value for name, value in changes.items() if dict.get(self._environ, name) != value}
            if any(name in self.asked or not may_come_late(name) for name in changes):
                self._start_afresh(changes)
            for name, value in changes.items():
                if value is None:
                    del os.environb[name]
                else:
                    os.environb[name] = value
            os.close(self._receive_from)
            os.close(self._tell)
            self._waiting = False

    def _wait(self) -> "dict[bytes, bytes | None]":
        """The variables to set (or, None, to remove). A signal meanwhile has its default effect."""
        handlers = {}
        for number in (_signal.SIGINT, _signal.SIGTERM):
            handler = _signal.getsignal(number)
            if callable(handler) and _thread.get_ident() == self._main_thread:
                handlers[number] = handler
                _signal.signal(number, _signal.SIG_DFL)
        try:
            os.write(self._tell, b"R")
        except OSError:
            os._exit(ABANDONED)
        text = self._read(int.from_bytes(self._read(8), "big"))
        for number, handler in handlers.items():
            _signal.signal(number, handler)
        changes: "dict[bytes, bytes | None]" = {}
        for entry in text.split(b"\0")[:-1]:
            name, equals, value = entry.partition(b"=")
            changes[name] = value if equals else None
        return changes

    def _read(self, size: int) -> bytes:
        found = b""
        while len(found) < size:
            chunk = os.read(self._receive_from, size - len(found))
            if not chunk:
                os._exit(ABANDONED)
            found += chunk
        return found

    # Starting over -------------------------------------------------------------------------------------------------

    def _start_afresh(self, changes: "dict[bytes, bytes | None] | None" = None) -> None:
        """Become the same interpreter anew, without a head; with the identity where that is known."""
        environ = dict(self._started_with)
        environ.pop(b"PHALANX_BOOT_HEAD", None)
        if changes is None:
            self._pass_pipes_on(True)  # noqa: FBT003 - yes or no
        else:
            del environ[b"PHALANX_BOOT_FDS"]
            for name, value in changes.items():
                environ.pop(name, None)
                if value is not None:
                    environ[name] = value
        try:
            for number in environ.get(b"PHALANX_BOOT_LIFE", b"").split(b",")[:2]:
                if number:
                    os.set_inheritable(int(number), True)  # noqa: FBT003 - yes or no
            os.execve(sys.executable, _words(), environ)  # noqa: S606 - no shell: these very words
        except OSError as wrong:
            os.write(2, b"phalanx: this interpreter cannot start itself afresh: %s\n" % os.fsencode(str(wrong)))
            os._exit(ABANDONED)

    def _pass_pipes_on(self, yes: bool) -> None:  # noqa: FBT001 - yes or no
        for number in (self._receive_from, self._tell):
            os.set_inheritable(number, yes)


class _Watched(dict):  # type: ignore[type-arg]  # Python 3.9 would run dict[bytes, bytes] at import
    """What `os.environ` holds, while a standby waits."""

    def __init__(self, data: "dict[bytes, bytes]", standby: Standby) -> None:
        dict.__init__(self, data)
        self._standby = standby

    def __getitem__(self, name: bytes) -> bytes:
        if is_identity(name) and name not in self:
            self._standby.identify()
        self._standby.asked.add(name)
        return dict.__getitem__(self, name)  # type: ignore[no-any-return]  # a plain dict, see above

    def __iter__(self) -> "Iterator[bytes]":
        self._standby.identify()  # whoever takes all of it wants the identity as well
        return dict.__iter__(self)


class _Guard:
    """A finder that stands before the one for sys.path: nothing of the script's own folder is run before its time."""

    def __init__(self, own: "set[str]", refuse: "Callable[[], None]") -> None:
        self._own = own
        self._refuse = refuse

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:  # noqa: ARG002 - its place
        """Never finds anything."""
        if path is None and name in self._own:
            self._refuse()


def _place_of_path_finder() -> int:
    return sys.meta_path.index(sys.modules["_frozen_importlib_external"].PathFinder)


def _words() -> "list[bytes]":
    """The command line as it was typed."""
    if hasattr(sys, "orig_argv"):
        return [os.fsencode(word) for word in sys.orig_argv]
    with open("/proc/self/cmdline", "rb") as file:  # Python 3.9
        return file.read().split(b"\0")[:-1]
