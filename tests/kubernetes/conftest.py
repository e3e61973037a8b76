from __future__ import annotations

from collections.abc import Iterator

import pytest

from kubernetes_api import FakeCluster, kubeconfig, served


@pytest.fixture
def cluster(tmp_path, monkeypatch) -> Iterator[FakeCluster]:
    """A small API server, and a kubeconfig that leads to it."""
    pytest.importorskip("lightkube")
    from phalanx.engine.kubernetes.place import BY_API_SERVER  # noqa: PLC0415 - not without the extra

    found = FakeCluster()
    with served(found) as address:
        monkeypatch.setenv("KUBECONFIG", str(kubeconfig(tmp_path / "kubeconfig", address)))
        monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
        yield found
        BY_API_SERVER.forget()
