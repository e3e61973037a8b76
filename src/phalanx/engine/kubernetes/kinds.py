"""The kinds of objects that a run is made of, or that are looked at: where the API has them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from phalanx.errors import InputError


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Kind:
    """One resource."""

    #: `/api/v1`, `/apis/batch/v1`.
    api: str
    plural: str
    namespaced: bool = True

    @property
    def group(self) -> str:
        """As rules name it: empty for the core."""
        parts = self.api.split("/")
        return parts[2] if parts[1] == "apis" else ""


_CORE, _BATCH = "/api/v1", "/apis/batch/v1"

KINDS: dict[str, Kind] = {
    "Pod": Kind(api=_CORE, plural="pods"),
    "Event": Kind(api=_CORE, plural="events"),
    "Service": Kind(api=_CORE, plural="services"),
    "ConfigMap": Kind(api=_CORE, plural="configmaps"),
    "Secret": Kind(api=_CORE, plural="secrets"),
    "ServiceAccount": Kind(api=_CORE, plural="serviceaccounts"),
    "Job": Kind(api=_BATCH, plural="jobs"),
    "NetworkPolicy": Kind(api="/apis/networking.k8s.io/v1", plural="networkpolicies"),
    "Role": Kind(api="/apis/rbac.authorization.k8s.io/v1", plural="roles"),
    "RoleBinding": Kind(api="/apis/rbac.authorization.k8s.io/v1", plural="rolebindings"),
    "JobSet": Kind(api="/apis/jobset.x-k8s.io/v1alpha2", plural="jobsets"),
    "SelfSubjectAccessReview": Kind(
        api="/apis/authorization.k8s.io/v1", plural="selfsubjectaccessreviews", namespaced=False
    ),
}


def kind_of(manifest: Mapping[str, Any]) -> Kind:
    """Where an object of this manifest belongs: of the table, else by its own words (pod groups of schedulers)."""
    name, version = str(manifest.get("kind", "")), str(manifest.get("apiVersion", ""))
    known = KINDS.get(name)
    api = f"/api/{version}" if "/" not in version else f"/apis/{version}"
    if known is not None and known.api == api:
        return known
    if not name or not version:
        raise InputError(f"a manifest without kind or apiVersion: {str(dict(manifest))[:80]}")
    return Kind(api=api, plural=f"{name.lower()}s")
