"""Which cluster, which namespace, and as whom: a context of the kubeconfig, or the service account of a pod."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from phalanx.errors import InputError

if TYPE_CHECKING:
    import httpx2

_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_HINT = "name a kubeconfig with KUBECONFIG, and a context with --context"


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Access:
    """A way to a namespace. What it says of keys and tokens stays in `single`, which is read anew for each use."""

    #: Its name in the kubeconfig; `in-cluster` in a pod.
    context: str
    namespace: str
    server: str
    #: The files that were read; none in a pod.
    files: tuple[str, ...] = ()


def access(
    context: str | None = None, namespace: str | None = None, *, environ: Mapping[str, str] = os.environ
) -> Access:
    """By `--context` and `--namespace`, else as the kubeconfig says. Raises InputError."""
    files = _files(environ)
    single = _single(context, files, environ)
    return Access(
        context=single.context_name,
        namespace=namespace or single.namespace,
        server=single.cluster.server,
        files=tuple(files),
    )


def connect(where: Access, *, environ: Mapping[str, str] = os.environ) -> httpx2.Client:
    """A connection with what the kubeconfig says now. Raises InputError."""
    kubeconfig = _library()
    single = _single(None if where.context == _IN_CLUSTER else where.context, list(where.files), environ)
    from lightkube.config.client_adapter import Client, ConnectionParams  # noqa: PLC0415 - an extra

    try:
        return Client(single, ConnectionParams())
    except (OSError, ValueError, kubeconfig.exceptions.ConfigError) as wrong:
        raise InputError(
            f"the context {where.context} of the kubeconfig cannot be used: {wrong}", hint=_HINT
        ) from wrong


_IN_CLUSTER = "in-cluster"


def _library() -> Any:
    try:
        from lightkube.config import kubeconfig  # noqa: PLC0415 - an extra
    except ImportError as wrong:
        raise InputError(
            "--on kubernetes needs a library that is not installed: lightkube",
            hint='pip install "phalanx[kubernetes]"',
        ) from wrong
    return kubeconfig


def _files(environ: Mapping[str, str]) -> list[str]:
    """As kubectl has it: all of KUBECONFIG that are there, else the one at home."""
    named = [one for one in environ.get("KUBECONFIG", "").split(os.pathsep) if one]
    if named:
        there = [one for one in named if Path(one).expanduser().is_file()]
        if not there:
            raise InputError(f"KUBECONFIG names no file that is there: {environ['KUBECONFIG']}", hint=_HINT)
        return there
    home = Path(environ.get("HOME") or "~").expanduser() / ".kube" / "config"
    return [str(home)] if home.is_file() else []


def _single(context: str | None, files: list[str], environ: Mapping[str, str]) -> Any:
    kubeconfig = _library()
    if not files:
        return _in_pod(kubeconfig, environ)
    found = [_read(kubeconfig, file) for file in files]
    wanted = context or next((one.current_context for one in found if one.current_context), None)
    if wanted is None:
        names = ", ".join(sorted({name for one in found for name in one.contexts}))
        raise InputError(f"the kubeconfig {files[0]} has no current context", hint=f"--context: one of {names}")
    home = next((one for one in found if wanted in one.contexts), None)
    if home is None:
        names = ", ".join(sorted({name for one in found for name in one.contexts})) or "none"
        raise InputError(f"the kubeconfig has no context {wanted!r}", hint=f"it has {names}")
    # The first file that has a cluster or a user is asked for it, as kubectl does.
    of = home.contexts[wanted]
    holder = next((one for one in found if of.cluster in one.clusters), home)
    user = next((one.users[of.user] for one in found if of.user in one.users), None)
    if of.cluster not in holder.clusters or (of.user and user is None):
        raise InputError(
            f"the context {wanted!r} names a cluster or a user that the kubeconfig does not have", hint=_HINT
        )
    return kubeconfig.SingleConfig(
        context_name=wanted,
        context=of,
        cluster=holder.clusters[of.cluster],
        user=user or _nobody(),
        fname=holder.fname,
    )


def _nobody() -> Any:
    """A context without a user: the server asks for none."""
    from lightkube.config.models import User  # noqa: PLC0415 - an extra

    return User()


def _read(kubeconfig: Any, file: str) -> Any:
    try:
        return kubeconfig.KubeConfig.from_file(file)
    except Exception as wrong:  # YAML's, msgspec's and lightkube's own errors have no common ancestor
        raise InputError(f"the kubeconfig {file} cannot be read: {wrong}", hint=_HINT) from wrong


def _in_pod(kubeconfig: Any, environ: Mapping[str, str]) -> Any:
    if not environ.get("KUBERNETES_SERVICE_HOST") or not (_ACCOUNT / "token").is_file():
        raise InputError("no kubeconfig: neither KUBECONFIG nor ~/.kube/config names one", hint=_HINT)
    return kubeconfig.KubeConfig.from_service_account().get()._replace(context_name=_IN_CLUSTER)
