"""A Kubernetes cluster for the tests that ask for one: `cluster` and `namespace`, or `control_plane` and `quarter`.

    cluster        three real nodes in three zones; whatever a test did to it is undone after the test
    namespace      a restricted namespace of it
    control_plane  the API server, controllers and scheduler with six nodes that are records: no pod ever runs
    quarter        a restricted namespace of that

Whoever asks for one carries the marker `real`, has 300 s instead of 120, and waits for a build that is going on. Put
such tests into tests/cluster: `make test` runs that folder in one process, so that it has one cluster of each kind.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import pytest

from beds.kubernetes import programs
from beds.kubernetes.cluster import Cluster

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

_ASKED = "kubernetes_programs"


@pytest.fixture(scope="session")
def kubernetes_programs() -> programs.Programs:
    reason = programs.absent()
    if reason is not None:
        pytest.skip(reason)
    return programs.programs()


@pytest.fixture(scope="session")
def _real_cluster(kubernetes_programs: programs.Programs) -> Iterator[Cluster]:
    with Cluster(nodes=3, zones=3) as started:
        yield started


@pytest.fixture
def cluster(_real_cluster: Cluster) -> Iterator[Cluster]:
    yield _real_cluster
    _real_cluster.heal()


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[str]:
    with cluster.namespace() as name:
        yield name


@pytest.fixture(scope="session")
def _records(kubernetes_programs: programs.Programs) -> Iterator[Cluster]:
    with Cluster(nodes=6, zones=3, real=False) as started:
        yield started


@pytest.fixture
def control_plane(_records: Cluster) -> Iterator[Cluster]:
    yield _records
    _records.heal()


@pytest.fixture
def quarter(control_plane: Cluster) -> Iterator[str]:
    with control_plane.namespace() as name:
        yield name


def pytest_configure(config: pytest.Config) -> None:
    """Asked once, so that all processes put their tests into the same order."""
    if not hasattr(config, "workerinput"):
        os.environ["BEDS_BUILT"] = "1" if programs.absent() is None else ""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _asks(item):
            item.add_marker(pytest.mark.real)
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(300))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """Before the test's time begins to count."""
    if _asks(item) and programs.being_built():
        capture = item.config.pluginmanager.getplugin("capturemanager")
        with capture.global_and_fixture_disabled():
            programs.wait(lambda line: print(line, file=sys.stderr, flush=True))
    return (yield)


def _asks(item: pytest.Item) -> bool:
    return _ASKED in getattr(item, "fixturenames", ())
