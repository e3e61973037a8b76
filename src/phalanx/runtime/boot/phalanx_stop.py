"""A graceful stop: all workers of a MultiWorkerMirroredStrategy leave before the same step, and nothing is lost.

SIGTERM to any of them is enough, from us or from whoever takes a host away. TensorFlow itself swallows it (facts §5); a
handler holds only when it is installed after the strategy was made, so this one comes with the first step, and only
where the program has none of its own: a PreemptionCheckpointHandler keeps its signal.

The agreement goes through the key-value store of TensorFlow's coordination service. Each worker has a thread that waits
there. When somebody wants to stop, each publishes the number of the last step it has begun and begins no other; the
first worker collects the numbers and publishes the highest. Nobody waits inside a step, so all can still reach it.
"""

import os
import sys

TYPE_CHECKING = False  # as in phalanx_standby
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

    from phalanx.runtime.boot.phalanx_life import Line
    from phalanx.runtime.boot.phalanx_steps import Steps

_WANTED, _AT = "phalanx/stop", "phalanx/stop/at"
_GO, _OFF = "go", "off"

#: Seconds for all to say how far they are, and at the end of a program to let go of the thread that waits.
_AGREEMENT, _FAREWELL = 5.0, 0.5

#: Place of the word that counts steps, as in phalanx_life.
_STEPS = 1

_FITS = ("keras.src.backend.tensorflow.trainer", "tf_keras.src.engine.training")


class Stop:
    """One process's part in it."""

    def __init__(self, line: "Line", steps: "Steps", absolute: "Callable[[Any], str]") -> None:
        """Nothing happens before the first step. `absolute`: makes of a program's path one for everybody."""
        import _signal  # type: ignore[import-not-found]  # `signal` would load enum
        import _thread

        self._signal, self._thread = _signal, _thread
        self._line, self._steps, self._absolute = line, steps, absolute
        self._context: "Any" = None
        self._me, self._all = "", [""]
        self._at: "int | None" = None
        self._agreed, self._waits = _thread.allocate_lock(), _thread.allocate_lock()

    def arm(self) -> None:
        """After the first step, in the main thread: take SIGTERM where nobody else has."""
        if self._signal.getsignal(self._signal.SIGTERM) != self._signal.SIG_DFL:
            return
        context = sys.modules["tensorflow.python.eager.context"].context()
        service, server = context.coordination_service, context._collective_ops_server_def  # noqa: SLF001 - TF's
        if service is None or server is None:
            self._signal.signal(self._signal.SIGTERM, self._on_term_alone)
            os.register_at_fork(after_in_child=self._let_go)
            return
        jobs = [(job.name, job.num_tasks) for job in service.coordinated_job_list]
        self._all = [f"{name}:{number}" for name, count in jobs for number in range(count)]
        self._me = f"{server.job_name}:{server.task_index}"
        if self._me not in self._all:
            return
        self._context = context
        self._agreed.acquire()
        self._waits.acquire()
        self._signal.signal(self._signal.SIGTERM, self._on_term)
        os.register_at_fork(after_in_child=self._let_go)
        self._thread.start_new_thread(self._wait, ())

    def _let_go(self) -> None:
        """A fork has no part in it."""
        if self._signal.getsignal(self._signal.SIGTERM) in (self._on_term, self._on_term_alone):
            self._signal.signal(self._signal.SIGTERM, self._signal.SIG_DFL)
        self._steps.gate, self._context = None, None

    def _on_term_alone(self, number: int, frame: "FrameType | None") -> None:
        """Nobody to agree with: a `fit` leaves before its next step; anything else ends as it always did."""
        if _fit(frame) is None or self._at is not None:
            self._signal.signal(number, self._signal.SIG_DFL)
            os.kill(os.getpid(), number)
        else:
            self._at = self._steps.begun
            self._steps.gate = self._gate
            self._thread.start_new_thread(self._line.say, ("asked",))

    def _on_term(self, _number: int, _frame: "FrameType | None") -> None:
        self._thread.start_new_thread(self._ask, ())

    def _ask(self) -> None:
        """Who was asked is told first: whoever else leaves now does it for this one's sake."""
        self._line.say("asked")
        self._put(_WANTED, _GO)

    def _put(self, key: str, value: str) -> None:
        try:
            self._context.set_config_key_value(key, value)
        except Exception:  # noqa: BLE001 - somebody was first, or nobody is left to agree with
            return

    def _wait(self) -> None:
        """In a thread of its own: until somebody wants to stop, or this program is over."""
        try:
            if self._context.get_config_key_value(_WANTED) == _GO:
                self._steps.gate = self._gate  # before `begun` is read: who begins a step after that has to ask
                self._agree(self._steps.begun)
        except Exception:  # noqa: BLE001 - the service has ended: TensorFlow says so itself
            return
        finally:
            self._waits.release()

    def _agree(self, begun: int) -> None:
        try:
            self._put(f"{_WANTED}/{self._me}", str(begun))
            if self._me == self._all[0]:
                limit = int(_AGREEMENT * 1000)
                said = [int(self._context.get_config_key_value(f"{_WANTED}/{one}", limit)) for one in self._all]
                self._put(_AT, str(max(said)))
            self._at = int(self._context.get_config_key_value(_AT, int(_AGREEMENT * 1000)))
        finally:
            self._agreed.release()

    def _gate(self) -> bool:
        """Before a step, once somebody wants to stop: whether it is one too many. Saves, if it is."""
        if self._at is None and self._agreed.acquire(True, 2 * _AGREEMENT):  # noqa: FBT003 - to wait
            self._agreed.release()
        if self._at is not None and self._steps.begun <= self._at:
            return False
        about = {"step": self._line.words[_STEPS], "peers": len(self._all)}
        try:
            saved = _save()
            saved = saved and self._absolute(saved)
            self._line.say("stopping", saved=saved, agreed=int(self._at is not None), **about)
        except Exception as wrong:  # noqa: BLE001 - it leaves all the same
            self._line.say("stopping", saved="", agreed=int(self._at is not None), wrong=repr(wrong)[:500], **about)
        return True

    def finish(self) -> None:
        """The program is over: its thread must not come back into an interpreter that is being taken down."""
        if self._context is None or not self._line.ours:
            return
        self._thread.start_new_thread(self._put, (_WANTED, _OFF))
        self._waits.acquire(True, _FAREWELL)  # noqa: FBT003 - to wait


def _save() -> str:
    """Save what `fit` trains, and say where; empty where no `fit` of Keras runs (a loop saves at its own points).

    A callback that saves within epochs saves once more. One that saves at their ends keeps what it has, since that is
    what a new start goes on from exactly; the state of this moment then goes into the task's folder.
    """
    frame = _fit(sys._getframe())  # noqa: SLF001 - `inspect` is not to be loaded here
    if frame is None:
        return ""
    fit = dict(frame.f_locals)
    model, callbacks = fit["self"], getattr(fit.get("callbacks"), "callbacks", [])
    for callback in callbacks:
        if type(callback).__name__ == "BackupAndRestore" and isinstance(getattr(callback, "save_freq", None), int):
            saved = _back_up(callback, fit)
            if saved:
                return saved
    folder = os.environ.get("PHALANX_TASK_DIR")
    if not folder:
        return ""
    folder = os.path.join(folder, "stop")
    os.makedirs(folder, exist_ok=True)
    if frame.f_globals["__name__"] == _FITS[0]:
        path = os.path.join(folder, "model.weights.h5")
        model.save_weights(path)  # with the optimizer's
        return path
    checkpoint = sys.modules["tensorflow.python.checkpoint.checkpoint"].Checkpoint
    return str(checkpoint(model=model, optimizer=model.optimizer).write(os.path.join(folder, "model")))


def _fit(frame: "FrameType | None") -> "FrameType | None":
    """The call of Keras' `fit` that this frame is within."""
    while frame is not None and not (frame.f_code.co_name == "fit" and frame.f_globals.get("__name__") in _FITS):
        frame = frame.f_back
    return frame


def _back_up(callback: "Any", fit: "dict[str, Any]") -> str:
    """One more backup by the user's own callback; it must say that the batch which was about to begin is not done."""
    state = getattr(callback, "_training_state", None)
    if state is None:  # Keras 3
        callback._save_model()  # noqa: SLF001 - there is no public way
        return str(callback.backup_dir)
    done, of = fit["step"] - 1, fit.get("steps_per_epoch_inferred")
    if done < 0:
        if of is None:
            return ""
        state._ckpt_saved_epoch.assign(fit["epoch"] - 1)  # noqa: SLF001 - as above
        done = of - 1
    state._ckpt_saved_batch.assign(done)  # noqa: SLF001 - as above
    callback._backup(epoch=fit["epoch"], batch=done)  # noqa: SLF001 - as above
    return str(callback.backup_dir)
