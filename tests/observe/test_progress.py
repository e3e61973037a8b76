"""The words for how far, how fast and how good; and the live table, ps and the report that have them."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest

from builders import DAWN, running
from observe.test_live import Screen
from phalanx.names import TaskId
from phalanx.observe.progress import chosen, loss_words, rate_words, sparkline
from phalanx.observe.report import render
from phalanx.records.folder import RunFolder
from phalanx.records.report import build_report
from phalanx.records.samples import head, to_line
from phalanx.sample import TaskSample

Golden = Callable[[str, str], None]


def measured(folder: RunFolder, *, upto: int = 7, fit: bool = True) -> None:
    """Two workers that do four steps a second, of which the second waits for nobody."""
    lines = [head(TaskSample)]
    for n in range(1, upto):
        for index, share in enumerate((0.7, 0.1)):
            steps = 12 * n
            of_fit = {"epoch": steps // 20 + 1, "epochs": 6, "steps_per_epoch": 20, "epoch_step": steps % 20}
            sample = TaskSample(
                task=TaskId("worker", index),
                generation=1,
                attempt=1,
                at=DAWN + 3 + 3 * n,
                steps=steps,
                loss=1.5 / n,
                collective=3 * n * share,
                **(of_fit if fit else {}),
            )
            lines.append(to_line(sample))
    folder.task_samples.parent.mkdir()
    folder.task_samples.write_text("".join(line + "\n" for line in lines))


def test_the_live_table_tells_step_speed_loss_and_share_and_how_long_still(tmp_path: Path, golden: Golden):
    told = running()
    folder = told.write(tmp_path)
    measured(folder)
    golden("observe/live_fit.txt", Screen(folder, width=110, seconds=22).text(told))


def test_in_a_narrow_table_speed_and_step_come_first(tmp_path: Path, golden: Golden):
    told = running()
    folder = told.write(tmp_path)
    measured(folder, fit=False)
    golden("observe/live_loop_narrow.txt", Screen(folder, width=80, seconds=22).text(told))


def test_the_report_has_the_curves_of_the_run(tmp_path: Path, golden: Golden):
    told = running().at(30).exited("worker:0", code=0).exited("worker:1", code=0).ended("succeeded", 0, "done")
    folder = told.write(tmp_path)
    measured(folder)
    report = build_report(told.state, None, folder)
    golden("observe/report_training.txt", render(report, width=110).replace(str(tmp_path), "RUNS"))
    [curve, other] = report.to_json()["curves"]
    assert (curve["task"], other["task"]) == ("worker:0", "worker:1")
    assert curve["steps_per_second"] == (4.0,) * 5
    assert curve["collective_share"] == (0.7,) * 5
    assert curve["loss"][-1] == 0.25
    assert len(curve["at"]) == 5
    assert report.tasks[0].training is not None
    assert (report.tasks[0].training.first_loss, report.tasks[0].training.last_loss) == (1.5, 0.25)


def test_a_run_without_samples_is_told_as_ever(tmp_path: Path):
    told = running().at(30).exited("worker:0", code=0).ended("succeeded", 0, "done")
    report = build_report(told.state, None, told.write(tmp_path))
    assert report.curves == ()
    assert "step/s" not in render(report)


@pytest.mark.parametrize(
    ("rate", "words"), [(None, ""), (0.0, "0"), (0.1234, "0.123"), (4.3129, "4.31"), (58.04, "58"), (1234.5, "1234")]
)
def test_a_rate_has_three_digits(rate: float | None, words: str):
    assert rate_words(rate) == words


def test_a_loss_that_is_no_number_is_seen():
    assert (loss_words(math.nan), loss_words("NaN"), loss_words("Infinity")) == ("nan", "nan", "inf")


def test_a_curve_is_as_wide_as_wanted_and_has_gaps_where_nothing_is_known():
    assert sparkline([1.0, None, math.nan, 2.0], 10) == "▁  █"
    assert sparkline([float(n) for n in range(800)], 8) == "▁▂▃▄▅▆▇█"
    assert sparkline([3.0, 3.0], 8) == "▅▅"
    assert sparkline([None], 8) == ""


def test_columns_are_left_out_that_say_nothing_or_find_no_room():
    rows = [("120/938", "58", "0.4", "10%"), ("120/938", "58", "", "")]
    assert chosen(rows, 100) == (0, 1, 2, 3)
    assert chosen(rows, 20) == (0, 1)
    assert chosen(rows, 0) == ()
    assert chosen([("7", "", "", "")], 100) == (0,)
