"""Nothing is skipped in silence: `make test` loads this with `-p`. With BEDS=require a skip is a failure.

A *bed* is what a test needs of the machine beyond Python (real TensorFlow, several cores, a Kubernetes cluster).
Without the variable the skipped tests are listed with their reasons above pytest's closing line.

Side by side, the files of tests/cluster run in one process, one after the other: they share their clusters.
"""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

_CLUSTER: Final = "tests/cluster/"
_REQUIRED = pytest.StashKey[bool]()


def pytest_configure(config: pytest.Config) -> None:
    value = os.environ.get("BEDS", "")
    if value not in {"", "require"}:
        raise pytest.UsageError(f"BEDS={value}: the only value is `require`, which makes a skip a failure")
    config.stash[_REQUIRED] = value == "require"
    if value == "require":
        config.option.continue_on_collection_errors = True  # a module that skips itself must not hide the other tests


def refuse(report: pytest.TestReport | pytest.CollectReport, config: pytest.Config) -> None:
    """Turn a skip into a failure where beds are required. An expected failure is no skip."""
    if not config.stash[_REQUIRED] or not report.skipped or hasattr(report, "wasxfail"):
        return
    report.outcome = "failed"
    report.longrepr = f"{report.nodeid} was skipped, and BEDS=require: {_reason(report)}"


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    reason = str(report.longrepr[2]) if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return reason.removeprefix("Skipped: ")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes long comes first: side by side, no process is left alone with it at the end.

    That is tests/cluster, then the files that start TensorFlow. A cluster that is still being built comes last.
    """
    slow = {item.path for item in items if item.get_closest_marker("tensorflow")}
    clusters = -1 if os.environ.get("BEDS_BUILT") else 1
    items.sort(key=lambda item: (clusters if _CLUSTER in item.nodeid else 0, item.path not in slow))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling  # noqa: PLC0415 - only where tests run side by side

    class Scheduling(LoadFileScheduling):  # type: ignore[misc] # it has no types
        def _split_scope(self, nodeid: str) -> str:
            return _CLUSTER if _CLUSTER in nodeid else str(super()._split_scope(nodeid))

    return Scheduling(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    refuse(report, item.config)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    refuse(report, collector.config)
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """By place: where tests run side by side, each process has seen a module that skips itself."""
    skipped = {report.nodeid: _reason(report) for report in terminalreporter.stats.get("skipped", [])}
    if skipped:
        terminalreporter.section("not run on this machine (a failure with BEDS=require)")
        for reason, count in sorted(Counter(skipped.values()).items()):
            terminalreporter.write_line(f"{count} skipped: {reason}")
