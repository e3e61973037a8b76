"""`phalanx schema`: the JSON Schema of job.yaml."""

from __future__ import annotations

import sys


def schema() -> int:
    """Print the JSON Schema of job.yaml, for editors and pipelines.

    Each field's description says its unit, its default and why. An editor finds the file by a first line such as
    `# yaml-language-server: $schema=phalanx.schema.json`.

    Examples:
      phalanx schema > phalanx.schema.json
    """
    from phalanx.job.schema import text  # noqa: PLC0415 - pydantic, not for --help

    sys.stdout.write(text())
    return 0
