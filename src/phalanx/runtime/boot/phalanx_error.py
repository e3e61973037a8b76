"""The exception that ended the program, as Python keeps it when it has printed it: told to the agent.

Looking at `sys.last_value` touches no hook: a program's own `sys.excepthook` stays as it is, and where it prints, and
what follows a traceback on stderr, make no difference.
"""

import os
import sys

TYPE_CHECKING = False  # as in phalanx_life
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from phalanx.runtime.boot.phalanx_life import Line

#: Letters of a message that are kept, and of what is told of it; a fact must go into one piece of pipe.
_KEPT, _TOLD = 100_000, 600
#: How many exceptions behind the first are kept, and how many frames of each.
_CHAIN, _FRAMES = 8, 200


def tell(line: "Line", quoted: "Callable[[str], str]") -> None:
    """At the end of the main thread: say "raised", with the whole of it as JSON behind the words. Never raises.

    Says nothing where no exception ended the program. `quoted` makes a JSON string.
    """
    try:
        wrong = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
        if wrong is None or not line.ours:
            return
        text = _text(wrong, quoted).encode("ascii")
        said = f"{_name(wrong)}: {_message(wrong)}"
        line.say("raised", said=said[:_TOLD], where=_where(wrong)[-_TOLD // 2 :], bytes=line.leave_text(text))
    except Exception:  # noqa: BLE001 - the traceback on stderr tells it as well
        return


def _text(wrong: BaseException, quoted: "Callable[[str], str]") -> str:
    chain = [_described(one, quoted) for one in _chain(wrong)]
    return f'{{"where":{quoted(_where(wrong))},"raised":[{",".join(chain)}]}}\n'


def _described(wrong: BaseException, quoted: "Callable[[str], str]") -> str:
    frames = ",".join(
        f'{{"file":{quoted(file)},"line":{number},"in":{quoted(name)}}}' for file, number, name in _frames(wrong)
    )
    message = quoted(_message(wrong)[:_KEPT])
    return f'{{"type":{quoted(_name(wrong))},"message":{message},"frames":[{frames}]}}'


def _chain(wrong: BaseException) -> "Iterator[BaseException]":
    """The exception, and what it came from: the first to be raised comes last."""
    seen: "list[BaseException]" = []
    one: "BaseException | None" = wrong
    while one is not None and one not in seen and len(seen) < _CHAIN:
        seen.append(one)
        yield one
        one = one.__cause__ or (None if one.__suppress_context__ else one.__context__)


def _name(wrong: BaseException) -> str:
    """As a traceback names it."""
    kind = type(wrong)
    return (
        kind.__qualname__ if kind.__module__ in ("builtins", "__main__") else f"{kind.__module__}.{kind.__qualname__}"
    )


def _message(wrong: BaseException) -> str:
    try:
        return str(wrong)
    except Exception:  # noqa: BLE001 - the program's own class
        return "<no message: its __str__ fails>"


def _frames(wrong: BaseException) -> "list[tuple[str, int, str]]":
    found: "list[tuple[str, int, str]]" = []
    trace: "Any" = wrong.__traceback__
    while trace is not None and len(found) < _FRAMES:
        code = trace.tb_frame.f_code
        found.append((code.co_filename, trace.tb_lineno or 0, code.co_name))
        trace = trace.tb_next
    return found


def _where(wrong: BaseException) -> str:
    """The last line of the program's own that it passed: `/srv/train.py:37 in step`; empty where there is none."""
    if isinstance(wrong, SyntaxError) and wrong.filename:
        return f"{wrong.filename}:{wrong.lineno}"
    frames = _frames(wrong)
    own = [frame for frame in frames if not _installed(frame[0])] or frames
    if not own:
        return ""
    file, number, name = own[-1]
    return f"{file}:{number}" + ("" if name == "<module>" else f" in {name}")


def _installed(file: str) -> bool:
    library = os.path.dirname(os.__file__)
    if os.path.dirname(file) == os.path.dirname(_installed.__code__.co_filename):
        return True  # a function of ours, through which the program calls Keras or TensorFlow
    return file.startswith(("<", library + os.sep)) or "site-packages" in file or "dist-packages" in file
