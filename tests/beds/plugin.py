"""Nothing is skipped in silence: `make test` loads this with `-p`. With BEDS=require a skip is a failure.

A *bed* is what a test needs of the machine beyond Python (real TensorFlow, several cores, later Slurm or a cluster).
Without the variable the skipped tests are listed with their reasons above pytest's closing line.
"""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

_SKIPPED = pytest.StashKey["Counter[str]"]()


_REQUIRED = pytest.StashKey[bool]()


def pytest_configure(config: pytest.Config) -> None:
    value = os.environ.get("BEDS", "")
    if value not in {"", "require"}:
        raise pytest.UsageError(f"BEDS={value}: the only value is `require`, which makes a skip a failure")
    config.stash[_REQUIRED] = value == "require"
    config.stash[_SKIPPED] = Counter()
    if value == "require":
        config.option.continue_on_collection_errors = True  # a module that skips itself must not hide the other tests


def refuse_or_note(report: pytest.TestReport | pytest.CollectReport, config: pytest.Config) -> None:
    """Turn a skip into a failure where beds are required, else remember its reason. An expected failure is no skip."""
    if not report.skipped or hasattr(report, "wasxfail"):
        return
    reason = str(report.longrepr[2]) if isinstance(report.longrepr, tuple) else str(report.longrepr)
    reason = reason.removeprefix("Skipped: ")
    if config.stash[_REQUIRED]:
        report.outcome = "failed"
        report.longrepr = f"{report.nodeid} was skipped, and BEDS=require: {reason}"
    else:
        config.stash[_SKIPPED][reason] += 1


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    refuse_or_note(report, item.config)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    refuse_or_note(report, collector.config)
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    skipped = config.stash[_SKIPPED]
    if skipped:
        terminalreporter.section("not run on this machine (a failure with BEDS=require)")
        for reason, count in sorted(skipped.items()):
            terminalreporter.write_line(f"{count} skipped: {reason}")
