"""Who may ask the API for what, and who may reach the pods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phalanx.engine.kubernetes.names import Names
from phalanx.plan.cluster import Cluster, Scraper
from phalanx.plan.marks import RUN
from phalanx.plan.pods import PORT

Rule = dict[str, list[str]]
_RBAC = "rbac.authorization.k8s.io"


def lead_rules(names: Names, jobs: Sequence[str], *, scales: bool = True) -> list[Rule]:
    """What the lead asks: pods and events of the namespace, and of what it changes this run's own by name."""
    return [
        _rule("", ["pods"], ["get", "list", "watch"]),
        _rule("", ["events"], ["get", "list", "watch"]),
        _rule("batch", ["jobs"], ["get", "patch"] if scales else ["get"], names=jobs),
        _rule("", ["configmaps"], ["get", "patch"], names=[names.report]),
    ]


def client_rules(*, role: bool = True, jobset: bool = False, gang: str | None = None) -> list[Rule]:
    """What a person's client asks. Whoever gives a Role must hold what is in it: it contains `lead_rules`."""
    make = ["create", "delete", "get", "list", "patch"]
    rules = [
        _rule("", ["pods"], ["delete", "get", "list", "watch"]),
        _rule("", ["pods/log"], ["get"]),
        _rule("", ["pods/proxy"], ["create", "get"]),
        _rule("", ["events"], ["get", "list", "watch"]),
        _rule("batch", ["jobs"], [*make, "watch"]),
        _rule("", ["configmaps", "secrets", "services"], make),
        _rule("networking.k8s.io", ["networkpolicies"], make),
    ]
    if role:
        rules += [_rule("", ["serviceaccounts"], make), _rule(_RBAC, ["rolebindings", "roles"], make)]
    if jobset:
        rules.append(_rule("jobset.x-k8s.io", ["jobsets"], [*make, "watch"]))
    if gang:
        group = "scheduling.volcano.sh" if gang == "volcano" else "scheduling.x-k8s.io"
        rules.append(_rule(group, ["podgroups"], make))
    return rules


def account() -> dict[str, Any]:
    """The lead's account. Its token is mounted where the pod says so, and nowhere else."""
    return {"apiVersion": "v1", "kind": "ServiceAccount", "automountServiceAccountToken": False}


def role(rules: Sequence[Rule]) -> dict[str, Any]:
    """A Role of one namespace."""
    return {"apiVersion": f"{_RBAC}/v1", "kind": "Role", "rules": list(rules)}


def binding(name: str, account: str, namespace: str | None) -> dict[str, Any]:
    """The Role `name` for an account; without a namespace the API takes the one it is applied in."""
    subject = {"kind": "ServiceAccount", "name": account} | ({"namespace": namespace} if namespace else {})
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "RoleBinding",
        "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": name},
        "subjects": [subject],
    }


def policy(cluster: Cluster, names: Names) -> dict[str, Any]:
    """Into the run's pods come the run's pods, and the declared scrapers to the lead's port. Out goes everything."""
    ours = {"matchLabels": {RUN: names.run}}
    ingress: list[dict[str, Any]] = [{"from": [{"podSelector": ours}]}]
    if cluster.scrapers:
        peers = [_peer(scraper) for scraper in cluster.scrapers]
        ingress.append({"from": peers, "ports": [{"protocol": "TCP", "port": PORT}]})
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "spec": {"podSelector": ours, "policyTypes": ["Ingress"], "ingress": ingress},
    }


def _peer(scraper: Scraper) -> dict[str, Any]:
    if scraper.cidr:
        return {"ipBlock": {"cidr": scraper.cidr}}
    peer: dict[str, Any] = {"podSelector": {"matchLabels": dict(scraper.labels)} if scraper.labels else {}}
    if scraper.namespace:
        peer["namespaceSelector"] = {"matchLabels": {"kubernetes.io/metadata.name": scraper.namespace}}
    return peer


def _rule(group: str, resources: list[str], verbs: list[str], *, names: Sequence[str] = ()) -> Rule:
    rule = {"apiGroups": [group], "resources": resources, "verbs": verbs}
    return rule | ({"resourceNames": list(names)} if names else {})
