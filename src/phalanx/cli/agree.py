"""`phalanx agree`."""

from __future__ import annotations

from phalanx.cli import findings, sources
from phalanx.errors import InputError
from phalanx.tfconfig.agree import agree as compare
from phalanx.tfconfig.parse import parse


def agree(
    *inputs: sources.Inputs,
    format_: findings.Format = "text",
    json: findings.Json = False,
    fail_on: findings.FailOn = "error",
) -> int:
    """Compare the TF_CONFIGs of several nodes.

    The cluster must be the same everywhere and each task be claimed by one
    node. What most nodes have is the reference; the node that differs is
    named. Exit code 0: they agree, 1: they do not, 2: the input cannot be
    read.

    For example:
      phalanx agree node1.json node2.json
      phalanx agree nodes/
      phalanx generate --workers 4 --hosts n1,n2,n3,n4 --all | phalanx agree -
    """
    if not inputs:
        raise InputError(
            "agree compares several nodes", hint="phalanx agree node1.json node2.json, or a folder of them"
        )
    given = sources.read(inputs)
    nodes = {source.path: parse(source.text, path=source.path) for source in given}
    if len(nodes) < len(given):
        twice = next(s.path for i, s in enumerate(given) if any(s.path == other.path for other in given[:i]))
        raise InputError(f"{twice} is given twice; each node has a TF_CONFIG of its own")
    texts = {source.path: source.text for source in given if source.text is not None}
    fine = [f"{len(nodes)} TF_CONFIGs agree" if len(nodes) > 1 else "one TF_CONFIG, and nothing speaks against it"]
    return findings.answer(compare(nodes), texts, output="json" if json else format_, fail_on=fail_on, fine=fine)
