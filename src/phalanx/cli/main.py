"""The `phalanx` command: finds the verb, runs it, and turns errors into one line and an exit code.

What takes long to import comes within `_call`, where a Ctrl-C is one line as well.
"""

from __future__ import annotations

import keyword
import sys
from typing import TYPE_CHECKING

import phalanx
from phalanx.cli.streams import flushed, is_refusal, settle, unprinted
from phalanx.errors import InputError, PhalanxError

if TYPE_CHECKING:
    import cyclopts

#: Verb → its one line in `phalanx --help`. The function of that name in `phalanx.cli.<verb>` is imported when called;
#: a verb that is a keyword of Python has a `_` after it there.
VERBS = {
    "Run": {
        "run": "Train: start one program as a cluster on this machine and follow it to its end.",
        "chaos": "Hurt a run on purpose, and say how it took that.",
        "plan": "Show what `run` would start: cluster, tasks, addresses, interpreter, environment.",
        "preflight": "Look at everything that would stop a run, and start nothing.",
        "advise": "Say which strategy fits a training, what it needs and how fast it goes.",
        "bench": "Run a script for some steps at several sizes, beside what was reckoned.",
        "init": "Write a commented job.yaml for a script.",
        "import": "Write the job.yaml of a TFJob, a Volcano Job, or pods with a hand-written TF_CONFIG.",
        "schema": "Print the JSON Schema of job.yaml, for editors.",
    },
    "Watch": {
        "ps": "List runs and their tasks.",
        "logs": "Print what tasks have written.",
        "events": "Print what has happened in a run.",
        "report": "Say how a run ended, why, and what to do next.",
        "attach": "Follow a run that goes on elsewhere.",
        "stacks": "Print where each task is: what its threads do now.",
        "diagnose": "Say where the time of a run goes, and who makes it slow.",
        "stop": "End a run: TERM, a grace, KILL.",
    },
    "Change": {
        "scale": "Give a run another number of workers.",
        "join": "Bring one more host to a run.",
    },
    "Kubernetes": {
        "render": "Write a job as manifests, for Git and `kubectl apply`.",
        "kubernetes": "Print the Role that a client needs.",
    },
    "TF_CONFIG": {
        "check": "Find what is wrong with a script or a TF_CONFIG before TensorFlow hangs on it.",
        "explain": "Say in plain words what a TF_CONFIG means.",
        "fix": "Print a TF_CONFIG without the faults that have one right answer.",
        "agree": "Compare the TF_CONFIGs of several nodes.",
        "generate": "Write the TF_CONFIG of one task or of all.",
    },
    "Shell": {
        "completion": "Print the completion script for bash, zsh or fish.",
    },
}

#: 128 + SIGINT, as a shell says it; and that of a run that was stopped.
_INTERRUPTED, _STOPPED = 130, 4

_EXAMPLES = """
Examples:
  phalanx run --workers 2 train.py --epochs 3
  phalanx plan --workers 4 --ps 2 train.py
  phalanx logs -f worker:1
  phalanx check train.py
"""


def app(*, brief: bool = False) -> cyclopts.App:
    """The command line as data, for `main`, the completion and the reference pages.

    `brief` shows each verb by its line above, so that `phalanx --help` imports none of them.
    """
    import cyclopts  # noqa: PLC0415 - see the top of this page

    from phalanx.cli.arguments import usage  # noqa: PLC0415 - as above

    made = cyclopts.App(
        name="phalanx",
        help="The launcher for distributed TensorFlow: unchanged train.py, one command, any size.",
        help_epilogue=_EXAMPLES,
        version=phalanx.__version__,
        help_format="plaintext",
        result_action="return_value",
        suppress_keyboard_interrupt=False,  # `_call` says it
        default_parameter=cyclopts.Parameter(show_default=False),
    )
    for number, (title, verbs) in enumerate(VERBS.items()):
        group = cyclopts.Group(title, sort_key=number)
        for verb, summary in verbs.items():
            own = {"help": summary} if brief else {}
            word = f"{verb}_" if keyword.iskeyword(verb) else verb
            made.command(
                f"phalanx.cli.{word}:{word}", name=verb, group=group, help_epilogue="", usage=usage(verb), **own
            )
    return made


def main() -> None:
    """Entry point. Exits with the verb's code; an error prints one line, its next step, and exits with its kind.

    `--debug` before the verb adds the traceback.
    """
    settle()
    sys.exit(flushed(_call(sys.argv[1:])))


def _call(words: list[str]) -> int:
    debug = "--debug" in words[:1]
    if debug:
        words = words[1:]
    try:
        return _obey(words, debug=debug)
    except KeyboardInterrupt:
        sys.stderr.write("phalanx: interrupted\n")
        exec("")  # noqa: S102 - where a Ctrl-C met an exec(), as of dataclasses, Python would end itself by SIGINT else
        return _STOPPED if words[:1] in (["run"], ["bench"]) else _INTERRUPTED


def _obey(words: list[str], *, debug: bool) -> int:
    import cyclopts  # noqa: PLC0415 - see the top of this page

    from phalanx.cli.jobflags import delimit  # noqa: PLC0415 - as above

    known = words[:1] in ([verb] for verbs in VERBS.values() for verb in verbs)
    try:
        made = app(brief=not known)
        result = made(delimit(made, words), exit_on_error=False, print_error=False)
    except PhalanxError as wrong:
        if debug:
            import traceback  # noqa: PLC0415 - for this form only

            traceback.print_exc()
        return _complain(wrong)
    except cyclopts.CycloptsError as wrong:
        return _complain(_misread(str(wrong), words[0] if known else ""))
    except OSError as wrong:
        if not is_refusal(wrong):
            raise
        return unprinted(wrong, 0)
    except SystemExit as left:  # rich prints --help, and leaves so where its reader has gone
        if not isinstance(left.__context__, BrokenPipeError):
            raise
        return 0
    return result if isinstance(result, int) else 0


def _misread(message: str, verb: str) -> InputError:
    """Cyclopts' own words, without its list of some verbs, and with a hint only where they have none."""
    message, *_ = message.partition(" Available commands:")
    if verb:
        return InputError(message, hint=f"phalanx {verb} --help shows what it takes")
    return InputError(message, hint=None if "Did you mean" in message else "phalanx --help lists the verbs")


def _complain(wrong: PhalanxError) -> int:
    sys.stderr.write(_harmless(f"phalanx: {wrong}\n"))
    if wrong.hint:
        sys.stderr.write(_harmless(f"  {wrong.hint}\n"))
    return wrong.exit_code


def _harmless(text: str) -> str:
    """What an error quotes may be anything: no control character of it reaches the terminal."""
    return "".join(c if c.isprintable() or c == "\n" else "?" for c in text)
