"""Who may ask what: as little as does the work, and nobody gives what he has not."""

from __future__ import annotations

from phalanx.engine.kubernetes.access import client_rules, lead_rules
from phalanx.engine.kubernetes.names import Names


def rights(rules):
    return {
        (group, resource, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def test_a_client_holds_all_that_it_gives_the_lead():
    assert rights(lead_rules(Names(run="a"), ["a-worker"])) <= rights(client_rules())


def test_no_rule_is_for_everything():
    for rule in (*lead_rules(Names(run="a"), ["a-worker"]), *client_rules(jobset=True, gang="volcano")):
        assert "*" not in [*rule["apiGroups"], *rule["resources"], *rule["verbs"]]


def test_without_a_role_for_the_lead_nobody_gives_rights():
    assert not {right for right in rights(client_rules(role=False)) if right[0] == "rbac.authorization.k8s.io"}
