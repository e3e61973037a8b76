"""The flags by which a verb finds a run in a cluster."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import cyclopts

from phalanx.errors import InputError
from phalanx.remote import Where

_PLACE = cyclopts.Group("Place", sort_key=2)


def _flag(text: str) -> cyclopts.Parameter:
    return cyclopts.Parameter(help=text, group=_PLACE, negative=(), show_default=False)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Namespace:
    """Use as `there: Annotated[Namespace, cyclopts.Parameter(name="*")] = Namespace()` beside `--on`."""

    context: Annotated[str | None, _flag("The context of the kubeconfig (its current one).")] = None
    namespace: Annotated[str | None, _flag("The namespace (the context's).")] = None

    def where(self, on: str | None) -> Where | None:
        """The place in a cluster; None for this machine. Raises InputError for any other engine."""
        if on == "kubernetes":
            return Where(context=self.context, namespace=self.namespace)
        if self.context or self.namespace:
            raise InputError("--context and --namespace belong to --on kubernetes", hint="add --on kubernetes")
        return None


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class There:
    """The same with `--on`, for verbs about a run: needed once, on a machine that did not start it."""

    on: Annotated[str | None, _flag("`kubernetes`: a run of that cluster that nobody here has started.")] = None
    context: Annotated[str | None, _flag("The context of the kubeconfig (its current one).")] = None
    namespace: Annotated[str | None, _flag("The namespace (the context's).")] = None

    @property
    def where(self) -> Where | None:
        """As above. Raises InputError."""
        if self.on not in (None, "kubernetes", "local"):
            raise InputError(f"--on {self.on}: runs are found again in a cluster", hint="--on kubernetes")
        return Namespace(context=self.context, namespace=self.namespace).where(self.on)
