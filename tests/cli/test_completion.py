"""Completion, asked as a shell asks it."""

from __future__ import annotations

import contextlib
import os
import pty
import shlex
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from phalanx.cli import shells
from phalanx.cli.completion import verbs

SCRIPTS = {"bash": shells.bash, "zsh": shells.zsh, "fish": shells.fish}


@pytest.fixture(scope="module")
def known():
    return verbs()


@pytest.fixture
def state(tmp_path):
    """A state folder that knows two runs, one of them in two folders."""
    runs = tmp_path / "state" / "phalanx" / "runs"
    runs.mkdir(parents=True)
    for name in ("digits-1130-070000", "ps-1130-080000", "ps-1130-080000.2"):
        (runs / f"{name}.json").touch()
    return runs.parents[1]


@pytest.fixture
def asked(tmp_path, state, known):
    """What bash offers for the last of some words; nothing means that it completes files."""

    def ask(*words: str) -> list[str]:
        script = f"""{shells.bash(known)}
            COMP_WORDS=({shlex.join(words)}) COMP_CWORD={len(words) - 1}
            _phalanx
            printf '%s\\n' "${{COMPREPLY[@]}}"
        """
        done = subprocess.run(
            ["bash", "--norc"],
            input=script,
            text=True,
            capture_output=True,
            check=True,
            cwd=tmp_path,
            env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "XDG_STATE_HOME": str(state)},
        )
        assert done.stderr == ""
        return done.stdout.split()

    return ask


RUNS = ["last", "digits-1130-070000", "ps-1130-080000"]


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["phalanx", "expl"], ["explain"]),
        (["phalanx", "run", "--strategy", ""], ["mwms", "ps", "estimator", "none", "auto"]),
        (["phalanx", "run", "--strategy", "=", "m"], ["mwms"]),
        (["phalanx", "run", "--workers", "2", "--str"], ["--strategy"]),
        (["phalanx", "check", "--format", "s"], ["sarif"]),
        (["phalanx", "run", ""], []),
        (["phalanx", "run", "--python", ""], []),
        (["phalanx", "run", "train.py", "--str"], []),
        (["phalanx", "run", "--detach", "train.py", ""], []),
        (["phalanx", "run", "--", "--str"], []),
        (["phalanx", "run", "job.yaml", "--str"], ["--strategy"]),
        (["phalanx", "check", ""], []),
        (["phalanx", "completion", ""], ["bash", "zsh", "fish"]),
        (["phalanx", "logs", "-f", ""], RUNS),
        (["phalanx", "logs", "ps-1130-080000", "di"], ["digits-1130-070000"]),
        (["phalanx", "report", "di"], ["digits-1130-070000"]),
        (["phalanx", "report", "last", ""], []),
        *((["phalanx", verb, ""], RUNS) for verb in ("ps", "events", "report", "attach", "stop")),
    ],
)
def test_bash_offers_what_may_stand_there(asked, words, offered):
    assert asked(*words) == offered


def test_bash_completes_files_by_itself_where_nothing_is_offered(tmp_path, asked, known):
    done = subprocess.run(
        ["bash", "--norc", "-c", f"{shells.bash(known)}\ncomplete -p phalanx"],
        text=True,
        capture_output=True,
        check=True,
        cwd=tmp_path,
    )
    assert done.stdout.strip() == "complete -o bashdefault -o default -F _phalanx phalanx"
    assert asked("phalanx", "plan", "tr") == []


@pytest.mark.real
def test_a_tab_after_run_completes_the_script_in_a_real_bash(tmp_path, known):
    (tmp_path / "training-script.py").touch()
    (tmp_path / "rc").write_text(shells.bash(known) + "PS1='$ '\nbind 'set enable-bracketed-paste off'\n")
    lead, follow = pty.openpty()
    shell = subprocess.Popen(
        ["bash", "--rcfile", "rc", "-i"],
        stdin=follow,
        stdout=follow,
        stderr=follow,
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TERM": "dumb"},
        start_new_session=True,
    )
    os.close(follow)
    seen = ""
    try:
        os.write(lead, b"phalanx run --workers 2 traini\t")
        deadline = time.monotonic() + 30
        while "training-script.py" not in seen and time.monotonic() < deadline:
            seen += os.read(lead, 4096).decode()
        assert "training-script.py" in seen
    finally:
        shell.kill()
        shell.wait()
        with contextlib.suppress(OSError):
            os.close(lead)


@pytest.mark.parametrize("shell", SCRIPTS)
def test_the_script_of_a_shell_is_what_it_was_and_the_shell_can_read_it(golden, tmp_path, known, shell):
    """The syntax is the shell's to judge, where it is installed; the golden files were read by all three."""
    text = SCRIPTS[shell](known)
    golden(f"cli/completion.{shell}", text)
    path = tmp_path / "script"
    path.write_text(text)
    if found := shutil.which(shell):
        subprocess.run([found, "-n", str(path)], check=True)
    assert "@" not in text.replace('"$@"', "").replace("[@]", "").replace("[@]:1", "")


def test_every_flag_of_every_verb_is_in_every_script(known):
    texts = [write(known) for write in SCRIPTS.values()]
    for name in {name for verb in known for option in verb.options for name in option.names}:
        assert all(name.lstrip("-") in text for text in texts)


def test_a_script_of_completion_starts_no_process_of_phalanx(known):
    for write in SCRIPTS.values():
        code = "\n".join(line for line in write(known).splitlines() if not line.startswith("#"))
        assert "$(phalanx" not in code
        assert "(phalanx " not in code


def test_the_start_page_says_how_to_switch_it_on():
    page = Path(__file__).parents[2] / "docs" / "start.md"
    assert "source <(phalanx completion bash)" in page.read_text(encoding="utf-8")
