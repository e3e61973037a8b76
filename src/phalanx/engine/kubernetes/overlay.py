"""One PodTemplateSpec laid over another, as `kubectl apply` would: mappings merge, named lists merge by their names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: Lists whose items are told apart by one of their keys.
_NAMED = {
    "containers": "name",
    "env": "name",
    "imagePullSecrets": "name",
    "initContainers": "name",
    "volumeMounts": "mountPath",
    "volumes": "name",
}
#: Lists that only grow.
_GROWING = frozenset(
    {
        "envFrom",
        "preferredDuringSchedulingIgnoredDuringExecution",
        "requiredDuringSchedulingIgnoredDuringExecution",
        "tolerations",
        "topologySpreadConstraints",
    }
)


def laid_over(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """`over` wins; a null takes away what is under it; other lists are replaced. Changes neither."""
    merged = dict(under)
    for key, value in over.items():
        below = merged.get(key)
        if value is None:
            merged.pop(key, None)
        elif isinstance(below, dict) and isinstance(value, dict):
            merged[key] = laid_over(below, value)
        elif isinstance(below, list) and isinstance(value, list):
            merged[key] = _lists(key, below, value)
        else:
            merged[key] = value
    return merged


def _lists(key: str, under: list[Any], over: list[Any]) -> list[Any]:
    if key in _GROWING:
        return [*under, *over]
    name = _NAMED.get(key)
    if name is None or not all(isinstance(item, dict) for item in (*under, *over)):
        return over
    merged = {item.get(name): item for item in under}
    for item in over:
        merged[item.get(name)] = laid_over(merged.get(item.get(name), {}), item)
    return list(merged.values())
