"""`phalanx check`."""

from __future__ import annotations

import os
from typing import Annotated

from cyclopts import Parameter

from phalanx.cli import findings, sources
from phalanx.cli.values import whole
from phalanx.errors import InputError
from phalanx.tfconfig.check import check as find
from phalanx.tfconfig.finding import Finding
from phalanx.tfconfig.model import TfConfig
from phalanx.tfconfig.parse import parse


def check(
    *inputs: sources.Inputs,
    strategy: findings.Strategy = "auto",
    tf_version: findings.TfVersion = None,
    expect_cluster: Annotated[
        bool, Parameter(negative=(), help="A missing or empty cluster is an error: TensorFlow would train alone.")
    ] = False,
    hosts: Annotated[
        int | None, Parameter(help="How many machines the job has; localhost is an error above 1.", converter=whole)
    ] = None,
    format_: findings.Format = "text",
    json: findings.Json = False,
    fail_on: findings.FailOn = "error",
) -> int:
    """Find what is wrong with a TF_CONFIG before TensorFlow hangs on it.

    Each file is checked by itself; `phalanx agree` compares the files of
    several nodes. With $TF_CONFIG the proxy settings beside it are judged
    too. Exit code 0: fine, 1: something at or above --fail-on was
    found, 2: the input cannot be read.

    For example:
      phalanx check
      phalanx check tf_config.json --strategy ps --tf-version 2.21
      phalanx check nodes/ --expect-cluster --format sarif > findings.sarif
      kubectl exec pod-0 -- printenv TF_CONFIG | phalanx check -
    """
    if hosts is not None and hosts < 1:
        raise InputError(f"--hosts: must be at least 1, not {hosts}", hint="leave it out where you do not know")
    given = sources.read(inputs)
    found: list[Finding] = []
    fine: list[str] = []
    for source in given:
        parsed = parse(source.text, path=source.path)
        found += find(
            parsed,
            strategy=strategy,
            tf_version=tf_version,
            expect_cluster=expect_cluster,
            hosts=hosts,
            delivery="variable" if source.live else "file",
            environ=os.environ if source.live else None,
        )
        fine.append(f"{source.path}: fine, {_who(parsed.config)}")
    texts = {source.path: source.text for source in given if source.text is not None}
    return findings.answer(found, texts, output="json" if json else format_, fail_on=fail_on, fine=fine)


def _who(config: TfConfig | None) -> str:
    """`worker:1, rank 1 of 4 replicas`."""
    if config is None or config.cluster is None or config.task is None:
        return "no cluster: TensorFlow trains alone"
    rank = config.cluster.rank(config.task)
    return str(config.task) + (
        f", rank {rank} of {len(config.cluster.replicas())} replicas" if rank is not None else ""
    )
