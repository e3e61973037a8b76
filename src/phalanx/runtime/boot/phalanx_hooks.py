"""Where the runtime listens: a few functions of TensorFlow and Keras, wrapped as soon as their modules are loaded.

Nothing is imported for it: PathFinder looks twice at a dozen names. The wrappers bear the names and files of what they
wrap, so that tracebacks read as ever and TensorFlow filters them like its own. What goes wrong in them stays in them.
"""

import os
import sys

TYPE_CHECKING = False  # as in phalanx_standby
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from phalanx.runtime.boot.phalanx_apart import Apart
    from phalanx.runtime.boot.phalanx_collectives import Collectives
    from phalanx.runtime.boot.phalanx_fit import Fit
    from phalanx.runtime.boot.phalanx_life import Line
    from phalanx.runtime.boot.phalanx_steps import Deeds, Steps

_IMPORTLIB = "<frozen importlib._bootstrap_external>"  # Python leaves its frames out of tracebacks
_EAGERLY = object()  # stands for a loop that takes gradients outside any tf.function
_SCHEDULED = object()  # for the closures that a ParameterServer coordinator hands out

#: Arguments of `configure_coordination_service` after the service's type, and before the limit of its heartbeats.
_BEFORE_HEARTBEAT = 4

#: The exit code of a program that was asked to end and has saved (128 + SIGTERM).
LEFT = 143


def ride(line: "Line", parts: "dict[str, Any]") -> None:
    """Put the parts together: the modules beside this one, by name, which nothing can import later."""
    steps = parts["phalanx_steps"].Steps(line)
    stop = parts["phalanx_stop"].Stop(line, steps, absolute)
    fit = parts["phalanx_fit"].Fit(line)
    notes = parts["phalanx_keras3"].Notes(line)
    apart = parts["phalanx_apart"].Apart(notes)
    collectives = parts["phalanx_collectives"].Collectives(line)
    steps.on_first = stop.arm
    steps.looks, steps.keep = [fit.look, collectives.look], fit.keep

    def on_end() -> None:
        fit.at_end()
        parts["phalanx_error"].tell(line, parts["phalanx_life"].quoted)
        line.finish()
        stop.finish()

    deeds = parts["phalanx_steps"].Deeds(steps, absolute)
    hooks: "dict[str, Callable[[Any], None]]" = {
        "tensorflow.python.eager.context": _heartbeats,
        "threading": lambda module: _end(module, on_end),
        "tensorflow.python.eager.polymorphic_function.polymorphic_function": lambda module: _calls(module, steps),
        "tensorflow.python.eager.polymorphic_function.tracing_compilation": lambda module: _traces(module, steps),
        "tensorflow.python.eager.backprop": lambda module: _gradients(module, steps),
        "tensorflow.python.distribute.coordinator.cluster_coordinator": lambda module: _schedules(module, steps),
        "tensorflow.python.checkpoint.checkpoint": lambda module: _checkpoints(module, deeds),
        "tensorflow.python.checkpoint.checkpoint_management": lambda module: _deed(
            module.CheckpointManager, "save", deeds, "saved", _result
        ),
        "keras.src.models.model": lambda module: _models(module, deeds),
        "tf_keras.src.engine.training": lambda module: _models(module, deeds),
        "keras.src.callbacks.backup_and_restore": lambda module: _backups(module, deeds),
        "keras.src.callbacks.callback_list": lambda module: _epochs(module.CallbackList, fit, apart),
        "tf_keras.src.callbacks": lambda module: _epochs(module.CallbackList, fit, apart),
        "tensorflow.python.ops.collective_ops": lambda module: _collectives(
            module, collectives, parts["phalanx_collectives"].NAMES
        ),
    }
    for name, mend in _mends(notes, parts).items():
        hooks[name] = _both(hooks[name], mend) if name in hooks else mend
    install(hooks)


def _mends(notes: "Any", parts: "dict[str, Any]") -> "dict[str, Callable[[Any], None]]":
    """What is made to work in Keras 3, by the module it is done to."""
    keras3 = parts["phalanx_keras3"]
    files = parts["phalanx_files"].Files(notes, keras3, disguise)
    return {
        "keras.src.backend.tensorflow.trainer": keras3.Mend(notes, disguise).take,
        "keras.src.callbacks.callback_list": files.callbacks,
        "keras.src.saving.saving_api": files.saving,
    }


def _both(one: "Callable[[Any], None]", other: "Callable[[Any], None]") -> "Callable[[Any], None]":
    """Two hooks for one module; a version that is strange to one may be known to the other."""

    def both(module: "Any") -> None:
        try:
            one(module)
        finally:
            other(module)

    return both


def install(hooks: "dict[str, Callable[[Any], None]]") -> None:
    """Call each hook with its module: now where that is loaded, else as soon as it is."""

    def take(name: str, module: "Any") -> None:
        hook = hooks.pop(name, None)
        try:
            if hook is not None:
                hook(module)
        except Exception:  # noqa: BLE001 - another version: not counted, and never the program's trouble
            return

    for name in [name for name in hooks if name in sys.modules]:
        take(name, sys.modules[name])
    watch_imports(hooks, take)


def watch_imports(hooks: "dict[str, Callable[[Any], None]]", take: "Callable[[str, Any], None]") -> None:
    """Call `take` with the name and the module of each of `hooks` that is loaded from now on, and is still there."""
    finder = sys.modules["_frozen_importlib_external"].PathFinder
    original = finder.__dict__["find_spec"]
    usual = original.__func__

    def find_spec(cls: "Any", fullname: str, path: "Any" = None, target: "Any" = None) -> "Any":
        spec = usual(cls, fullname, path, target)
        if fullname in hooks and spec is not None and spec.loader is not None:
            _once_loaded(spec.loader, lambda module: take(fullname, module))
        return spec

    disguise(find_spec, usual)
    finder.find_spec = classmethod(find_spec)


def _once_loaded(loader: "Any", then: "Callable[[Any], None]") -> None:
    """Call `then` after the loader's next module is there. Nothing is left on the loader."""

    def exec_module(module: "Any") -> None:
        del loader.exec_module
        loader.exec_module(module)
        then(module)

    exec_module.__code__ = exec_module.__code__.replace(co_filename=_IMPORTLIB)
    try:
        loader.exec_module = exec_module
    except AttributeError:  # a loader without a dictionary of its own
        return


def disguise(wrapper: "Any", original: "Any") -> None:
    """Name, file and line of what it wraps: for tracebacks, their filters, AutoGraph and `inspect`."""
    for name in ("__module__", "__name__", "__qualname__", "__doc__"):
        setattr(wrapper, name, getattr(original, name))
    wrapper.__dict__.update(original.__dict__)
    wrapper.__wrapped__ = original
    code = original.__code__
    wrapper.__code__ = wrapper.__code__.replace(
        co_filename=code.co_filename, co_firstlineno=code.co_firstlineno, co_name=code.co_name
    )


# Steps ---------------------------------------------------------------------------------------------------------------


def _calls(module: "Any", steps: "Steps") -> None:
    original, ident, main = module.Function._call, steps.ident, steps.main_thread  # noqa: SLF001 - TensorFlow's

    def _call(self: "Any", *args: "Any", **kwds: "Any") -> "Any":
        if steps.current is not None or ident() != main:
            return original(self, *args, **kwds)
        if steps.before(self):
            raise SystemExit(LEFT)
        done, result = False, None
        try:
            result = original(self, *args, **kwds)
            done = True
        finally:
            steps.after(self, done, result)
        return result

    disguise(_call, original)
    module.Function._call = _call  # noqa: SLF001 - as above


def _traces(module: "Any", steps: "Steps") -> None:
    original = module._create_concrete_function  # noqa: SLF001 - as above

    def _create_concrete_function(*args: "Any", **kwargs: "Any") -> "Any":
        steps.traces(1)
        try:
            return original(*args, **kwargs)
        finally:
            steps.traces(-1)

    disguise(_create_concrete_function, original)
    module._create_concrete_function = _create_concrete_function  # noqa: SLF001 - as above


def _gradients(module: "Any", steps: "Steps") -> None:
    original, ident, main = module.GradientTape.gradient, steps.ident, steps.main_thread

    def gradient(self: "Any", *args: "Any", **kwargs: "Any") -> "Any":
        if steps.tracing or steps.current is not None or ident() != main:
            if steps.tracing and steps.current is not None:
                steps.trains(steps.current)
            return original(self, *args, **kwargs)
        steps.trains(_EAGERLY)
        if steps.before(_EAGERLY):
            raise SystemExit(LEFT)
        done = False
        try:
            result = original(self, *args, **kwargs)
            done = True
        finally:
            steps.after(_EAGERLY, done, args[0] if args else kwargs.get("target"))
        return result

    disguise(gradient, original)
    module.GradientTape.gradient = gradient


def _schedules(module: "Any", steps: "Steps") -> None:
    original, ident, main = module.ClusterCoordinator.schedule, steps.ident, steps.main_thread

    def schedule(self: "Any", *args: "Any", **kwargs: "Any") -> "Any":
        if steps.current is not None or ident() != main:
            return original(self, *args, **kwargs)
        steps.trains(_SCHEDULED)
        steps.before(_SCHEDULED)
        done = False
        try:
            result = original(self, *args, **kwargs)
            done = True
        finally:
            steps.after(_SCHEDULED, done)
        return result

    disguise(schedule, original)
    module.ClusterCoordinator.schedule = schedule


# Heartbeats ----------------------------------------------------------------------------------------------------------


def _heartbeats(module: "Any") -> None:
    """TensorFlow gives a silent peer ten seconds; only an argument shortens them, and nobody passes it (facts §3)."""
    original = module.Context.configure_coordination_service

    def configure_coordination_service(self: "Any", service_type: "Any", *args: "Any", **kwargs: "Any") -> "Any":
        limit = os.environ.get("PHALANX_HEARTBEAT", "")
        if limit.isdigit() and len(args) < _BEFORE_HEARTBEAT:
            kwargs.setdefault("heartbeat_timeout_in_ms", int(limit))
        return original(self, service_type, *args, **kwargs)

    disguise(configure_coordination_service, original)
    module.Context.configure_coordination_service = configure_coordination_service


# Checkpoints ---------------------------------------------------------------------------------------------------------


def _deed(owner: "Any", name: str, deeds: "Deeds", kind: str, path_of: "Callable[..., Any]") -> None:
    """Wrap one method that saves or restores. `path_of(result, inner path, *args)` tells what; None: nothing was."""
    original = owner.__dict__[name]

    def wrapper(*args: "Any", **kwargs: "Any") -> "Any":
        deeds.begin(kind)
        done, result = False, None
        try:
            result = original(*args, **kwargs)
            done = True
        finally:
            deeds.end(kind, done, lambda inner: path_of(result, inner, *args, **kwargs))
        return result

    disguise(wrapper, original)
    setattr(owner, name, wrapper)


def _result(result: "Any", _inner: "Any", *args: "Any", **kwargs: "Any") -> "Any":
    """The path that it returned. One that is still being written does not count."""
    options = kwargs.get("options", args[-1] if args else None)
    return None if getattr(options, "experimental_enable_async_checkpoint", False) else result


def _argument(_result: "Any", _inner: "Any", _self: "Any", *args: "Any", **kwargs: "Any") -> "Any":
    """The path that it was given."""
    return args[0] if args else kwargs.get("save_path", kwargs.get("filepath"))


def _checkpoints(module: "Any", deeds: "Deeds") -> None:
    for name in ("save", "write"):
        _deed(module.Checkpoint, name, deeds, "saved", _result)
    for name in ("restore", "read"):
        _deed(module.Checkpoint, name, deeds, "restored", _argument)


def _models(module: "Any", deeds: "Deeds") -> None:
    for name in ("save", "save_weights"):
        _deed(module.Model, name, deeds, "saved", _argument)
    _deed(module.Model, "load_weights", deeds, "restored", _argument)


def _backups(module: "Any", deeds: "Deeds") -> None:
    """Whole only with its metadata, which is written after the weights."""

    def folder(_result: "Any", inner: "Any", self: "Any") -> "Any":
        return inner and self.backup_dir

    _deed(module.BackupAndRestore, "_save_model", deeds, "saved", folder)
    _deed(module.BackupAndRestore, "_load_model", deeds, "restored", folder)


# How far, how good, and what it waits for --------------------------------------------------------------------------


def _epochs(owner: "Any", fit: "Fit", apart: "Apart") -> None:
    """Hear `owner`, a list of callbacks, where a training and its epochs begin and end."""

    def begins(callbacks: "Any", *_args: "Any", **_kwargs: "Any") -> None:
        fit.begins(callbacks)
        apart.begins(callbacks)

    _heard(owner, "on_train_begin", begins, None)
    _heard(owner, "on_train_end", None, lambda *_args, **_kwargs: fit.ends())
    _heard(owner, "on_epoch_begin", lambda _self, epoch, *_args, **_kwargs: fit.epoch_begins(epoch), None)
    _heard(owner, "on_epoch_end", None, lambda _self, _epoch, logs=None: fit.epoch_ends(logs))


def _heard(owner: "Any", name: str, before: "Callable[..., None] | None", after: "Callable[..., None] | None") -> None:
    """Have one method call `before` and `after` with its own arguments."""
    original = owner.__dict__[name]

    def wrapper(*args: "Any", **kwargs: "Any") -> "Any":
        if before is not None:
            before(*args, **kwargs)
        result = original(*args, **kwargs)
        if after is not None:
            after(*args, **kwargs)
        return result

    disguise(wrapper, original)
    setattr(owner, name, wrapper)


def _collectives(module: "Any", collectives: "Collectives", names: "tuple[str, ...]") -> None:
    for name in names:
        _collective(module, collectives, name)


def _collective(module: "Any", collectives: "Collectives", name: str) -> None:
    original = getattr(module, name)

    def wrapper(t: "Any", *args: "Any", **kwargs: "Any") -> "Any":
        mark, t = collectives.begin(t)
        result = original(t, *args, **kwargs)
        collectives.end(mark, result)
        return result

    disguise(wrapper, original)
    setattr(module, name, wrapper)


# The end -------------------------------------------------------------------------------------------------------------


def _end(module: "Any", on_end: "Callable[[], None]") -> None:
    """When the main thread is done, Python goes through this list before it joins the other threads."""

    class AtExits(list):  # type: ignore[type-arg]  # Python 3.9 would run list[...] at import
        def __reversed__(self) -> "Iterator[Any]":
            on_end()
            return list.__reversed__(self)

    module._threading_atexits = AtExits(module._threading_atexits)  # noqa: SLF001 - there is no public way to be first


def absolute(path: "Any") -> str:
    """As the program meant it, whatever becomes its current folder."""
    text = os.fsdecode(path)
    return text if "://" in text else os.path.abspath(text)
