"""A run in a cluster, as the verbs meet it: started from here, found again by its label, brought up to date, ended."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from phalanx.decide.podfields import created_at
from phalanx.engine.base import Submission
from phalanx.errors import PhalanxError, PlaceError, RunNotFoundError
from phalanx.protocol.signing import RunKey
from phalanx.records.folder import RunFolder
from phalanx.records.index import LAST, Entry, Index, state_root
from phalanx.records.reader import read_end

if TYPE_CHECKING:
    from phalanx.engine.kubernetes.client import Client
    from phalanx.engine.kubernetes.mirror import Mirror
    from phalanx.engine.kubernetes.place import Place
    from phalanx.job.incluster import InCluster
    from phalanx.launch import Launched

ENGINE = "kubernetes"
#: Seconds for which a verb tries one request to a cluster that does not answer.
_PATIENCE = 10.0
#: How many runs are named.
_NAMED = 6


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Where:
    """Which cluster and namespace, as flags say; None: as the kubeconfig does."""

    context: str | None = None
    namespace: str | None = None


def launch(
    declared: InCluster,
    where: Where,
    *,
    runs: Path,
    environ: Mapping[str, str] = os.environ,
    attached: bool,
) -> Launched:
    """Make the run's folder here and its objects there, and enter it into this user's index. Raises PhalanxError.

    A run that is refused leaves nothing, neither here nor there.
    """
    client = _client(
        Where(
            context=where.context or declared.cluster.context, namespace=where.namespace or declared.cluster.namespace
        ),
        environ,
        patience=60.0,
    )
    from phalanx.engine.kubernetes.engine import KubernetesEngine  # noqa: PLC0415 - lightkube is an extra
    from phalanx.launch import Launched  # noqa: PLC0415 - pydantic and YAML, not for every verb

    there = runs.exists()
    folder = RunFolder.create(runs, declared.outline.name, time.time())
    key = RunKey.new()
    try:
        folder.job.write_text(declared.text, encoding="utf-8")
        started = KubernetesEngine(client, declared.cluster).start(
            Submission(
                run=folder.run,
                folder=folder.path,
                key=key,
                outline=declared.outline,
                environ={},
                secrets={},
                imports=declared.imports,
                attached=attached,
                shared=declared.cluster.pvc is not None,
            )
        )
        entry = _entry(folder, started.lead, key, detached=not attached)
        try:
            Index().add(entry)
        except PhalanxError:
            started.kill()
            raise
    except BaseException:
        client.close()
        shutil.rmtree(folder.path, ignore_errors=True)
        if not there:
            with contextlib.suppress(OSError):
                runs.rmdir()
        raise
    return Launched(entry=entry, folder=folder, started=started, grace=declared.outline.policies.grace.stop)


def _entry(folder: RunFolder, address: str, key: RunKey | None, *, detached: bool, created: float = 0.0) -> Entry:
    return Entry(
        run=folder.run,
        folder=str(folder.path),
        engine=ENGINE,
        lead=address,
        token=key.people_token() if key else "",
        created=created or time.time(),
        launcher=os.getpid() if not created else 0,
        detached=detached,
        key=key.hex() if key else "",
    )


# Found again ------------------------------------------------------------------------------------------------------


def adopt(run: str, where: Where, environ: Mapping[str, str] = os.environ) -> Entry:
    """A run of that namespace by its name, the beginning of it, or `last`, entered into the index. Raises PhalanxError.

    Its records go into a folder of this user's own state.
    """
    with _client(where, environ) as client:
        return _adopted(_called(run, client), client, environ)


def _adopted(name: str, client: Client, environ: Mapping[str, str]) -> Entry:
    from phalanx.engine.kubernetes.place import Place, address_of  # noqa: PLC0415 - lightkube is an extra

    address = address_of(client, name)
    index = Index(environ=environ)
    known = next((one for one in index.all() if one.lead == address and one.files.path.is_dir()), None)
    if known is not None:
        return known
    place = Place(client, name)
    place.facts()
    folder = RunFolder(state_root(environ) / "clusters" / _slug(client.access.context) / client.namespace / name)
    folder.path.mkdir(parents=True, exist_ok=True)
    created = min(_created(job) for job in _runs(client)[name])
    entry = _entry(folder, address, place.key(), detached=True, created=created)
    index.add(entry)
    return entry


def listed(where: Where, environ: Mapping[str, str] = os.environ) -> list[Entry]:
    """Every run of the namespace, entered into the index. Raises PhalanxError."""
    found = []
    with _client(where, environ) as client:
        for name in sorted(_runs(client)):
            with contextlib.suppress(PlaceError):  # its last objects go at this moment
                found.append(_adopted(name, client, environ))
    return found


def _called(run: str, client: Client) -> str:
    there = _runs(client)
    if not there:
        raise RunNotFoundError(
            f"no run is in namespace {client.namespace} of {client.access.context}",
            hint="--namespace and --context choose another; phalanx run job.yaml --on kubernetes starts one",
        )
    if run == LAST:
        return max(there, key=lambda name: min(map(_created, there[name])))
    matches = [run] if run in there else [name for name in there if name.startswith(run)]
    if len(matches) == 1:
        return matches[0]
    names = ", ".join(sorted(matches or there)[:_NAMED])
    what = f"{run!r} begins the name of {len(matches)} runs" if matches else f"no run is called {run!r}"
    raise RunNotFoundError(f"{what} in namespace {client.namespace}", hint=f"there are {names}")


def _runs(client: Client) -> dict[str, list[dict[str, Any]]]:
    from phalanx.engine.kubernetes.engine import runs_there  # noqa: PLC0415 - lightkube is an extra

    return runs_there(client)


def _created(job: Mapping[str, Any]) -> float:
    when = created_at(job)
    return time.time() if when is None else when


def _slug(context: str) -> str:
    return "".join(c if c.isalnum() or c in "-._" else "-" for c in context)[:80]


def _client(where: Where, environ: Mapping[str, str], *, patience: float = _PATIENCE) -> Client:
    from phalanx.engine.kubernetes.access_to import access  # noqa: PLC0415 - lightkube is an extra

    found = access(where.context, where.namespace, environ=environ)
    from phalanx.engine.kubernetes.client import Client  # noqa: PLC0415 - as above

    return Client(found, patience=patience)


# Kept up to date --------------------------------------------------------------------------------------------------


def is_remote(entry: Entry) -> bool:
    """Whether the run's records are in a cluster, and here only as far as somebody has followed it."""
    return entry.engine == ENGINE


@contextlib.contextmanager
def _place(entry: Entry) -> Iterator[Place]:
    """Where it is. Raises PhalanxError."""
    from phalanx.engine.kubernetes.access_to import access  # noqa: PLC0415 - lightkube is an extra

    access()  # says what is missing, before what needs it is imported
    from phalanx.engine.kubernetes.place import Place, parts_of  # noqa: PLC0415 - as above

    context, namespace, run = parts_of(entry.lead)
    where = Where(context=None if context == "in-cluster" else context, namespace=namespace)
    with _client(where, os.environ) as client:
        yield Place(client, run)


def caught_up(entry: Entry) -> Entry:
    """The same run, its folder as new as its pods' logs are. What cannot be asked is said, and no error."""
    if not is_remote(entry) or read_end(entry.files) is not None:
        return entry
    try:
        with _place(entry) as place:
            _mirror(entry, place).catch_up()
    except PlaceError as wrong:
        sys.stderr.write(f"phalanx: {entry.run} as it was known here last: {wrong}\n")
    return entry


@contextlib.contextmanager
def followed(entry: Entry) -> Iterator[None]:
    """Its folder grows while the block runs; nothing is done for a run of this machine."""
    if not is_remote(entry) or read_end(entry.files) is not None:
        yield
        return
    with _place(entry) as place:
        mirror = _mirror(entry, place)
        mirror.start()
        try:
            yield
        finally:
            mirror.close()


def _mirror(entry: Entry, place: Place) -> Mirror:
    from phalanx.engine.kubernetes.mirror import Mirror  # noqa: PLC0415 - lightkube is an extra

    return Mirror(place, entry.files)


# Ended ------------------------------------------------------------------------------------------------------------


def interrupt(entry: Entry, *, by: str) -> None:
    """Stop it where its lead cannot be asked: its pods are told to end. Raises PhalanxError."""
    with _place(entry) as place:
        from phalanx.engine.kubernetes.engine import suspend  # noqa: PLC0415 - lightkube is an extra

        suspend(place, by=by)


def cleared(entry: Entry, *, hard: bool = False) -> None:
    """Nothing of it is left in its cluster; idempotent. Raises PhalanxError."""
    with _place(entry) as place:
        from phalanx.engine.kubernetes.engine import delete  # noqa: PLC0415 - lightkube is an extra

        delete(place, grace=0 if hard else None)
