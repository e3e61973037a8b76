"""However a task's interpreter is started, the program in it cannot tell."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable

import pytest

from runtime.packages import packages
from runtime.programs import Case, cases
from runtime.starts import Outcome, cold, plain, standby

pytestmark = pytest.mark.real

CASES = {case.name: case for case in (*cases(), *packages())}
STARTS: dict[str, Callable[..., Outcome]] = {"cold": cold, "standby": standby}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Case], Outcome]:
    """`run(start, case)`, each time in a new folder of the same name. The plain start of a case is made once."""
    root = tmp_path_factory.mktemp("indistinguishable")
    known: dict[str, Outcome] = {}

    def run_one(start: str, case: Case) -> Outcome:
        if start == "exec" and case.name in known:
            return known[case.name]
        folder, home = root / "folder", root / "home"
        for place in (folder, home):
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir()
        case.lay_out(folder)
        env = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8", **case.env}
        outcome = {"exec": plain, **STARTS}[start](case.argv, env=env, identity=case.identity, cwd=folder)
        if start == "exec":
            known[case.name] = outcome
        return outcome

    return run_one


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("name", CASES)
def test_a_start_is_indistinguishable_from_plain_python(
    name: str, start: str, run: Callable[[str, Case], Outcome]
) -> None:
    case = CASES[name]
    assert run(start, case) == run("exec", case)
