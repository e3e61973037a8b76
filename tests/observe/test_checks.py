"""`phalanx preflight` as people read it: every check of the table."""

from __future__ import annotations

from builders import DAWN, history
from phalanx import events as ev
from phalanx.decide.preflight import ROWS, verdict
from phalanx.observe.checks import render
from phalanx.plan.checklist import Fault
from phalanx.plan.policies import Preflight
from phalanx.states import fold_all


def looked(*faults: Fault, ignore: tuple[str, ...] = ()) -> str:
    """Two hosts look at everything; the second finds these faults."""
    told = history(workers=2, hosts=2).at(0.1)
    for host in range(2):
        told.joined(host)
    told.bound().at(0.3)
    everything = tuple(row.id for row in ROWS if row.id not in ("cudnn-skew", "time-left"))
    for host in range(2):
        told.say(
            ev.HostChecked(
                time=told.now,
                host=host,
                generation=1,
                seconds=0.2,
                looked=everything,
                facts=(),
                faults=faults if host else (),
            )
        )
    for event in verdict(told.state, Preflight(only=True, ignore=ignore), now=DAWN + 0.4):
        told.say(event)
    return render(fold_all(told.records), ignore)


def test_the_table_of_a_preflight_that_passes_and_of_one_that_does_not(golden):
    broken = Fault(
        check="script-parses",
        words="train.py:12:9: '(' was never closed, says /venv/bin/python (Python 3.11.7): print('epoch', number",
    )
    warned = Fault(check="memory", words="1.1 GB are free for 4 tasks")
    golden("observe/preflight-passed.txt", looked(warned))
    golden("observe/preflight-failed.txt", looked(broken, warned, ignore=("clock",)))
