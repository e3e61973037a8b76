"""`phalanx import`: manifests of other launchers → job.yaml."""

from __future__ import annotations

import json as jsonlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import cyclopts

from phalanx.cli import sources
from phalanx.cli.values import file_or_stdout
from phalanx.errors import InputError
from phalanx.tfconfig.quote import printable

if TYPE_CHECKING:
    from phalanx.job.importers.read import Found
    from phalanx.job.importers.result import Imported


def import_(
    file: Annotated[str, cyclopts.Parameter(allow_leading_hyphen=True)],
    /,
    *entrypoint: str,
    output: Annotated[
        Path, cyclopts.Parameter(name=("--output", "-o"), converter=file_or_stdout, allow_leading_hyphen=True)
    ] = Path("job.yaml"),
    name: str | None = None,
    force: Annotated[bool, cyclopts.Parameter(negative=())] = False,
    json: Annotated[bool, cyclopts.Parameter(negative=())] = False,
) -> int:
    """Write the job.yaml of a TFJob, a Volcano Job, or pods with a hand-written TF_CONFIG.

    Lists what was carried over, what changed and why, and what has no
    counterpart, each with its path in the manifest and its line. Asks no
    cluster and applies nothing; never overwrites. What cannot be imported
    is refused as a whole, and nothing is written: exit code 2.

    Examples:
      phalanx import tfjob.yaml
      kubectl get tfjob mnist -o yaml | phalanx import - -o mnist.yaml
      phalanx import jobs.yaml --name mnist
      phalanx import jobs.yaml -o jobs/
      phalanx import tfjob.yaml -- python /app/train.py

    Parameters
    ----------
    file
        A file of manifests, YAML or JSON; `-` reads standard input.
    entrypoint
        After `--`: the image's ENTRYPOINT (and CMD, where there are no args), where the manifest says no command.
    output
        The file to write (job.yaml), or a folder for one file each; `-` prints it, and the list to standard error.
    name
        The one job to import, of several in the file.
    force
        Overwrite what is there.
    json
        The list as JSON.
    """
    from phalanx.job.importers.read import imported  # noqa: PLC0415 - not for --help

    [source] = sources.read([file])
    shown = "standard input" if file == "-" else file
    found = imported(source.text or "", shown, name=name, entrypoint=entrypoint)
    if str(output) == "-":
        _only(found, shown)
        sys.stdout.write(found.jobs[0].text)
        _tell(found, [None], shown, json=json, to_errors=True)
        return 0
    paths = _paths(found, output, shown)
    _write([(path, job.text) for path, job in zip(paths, found.jobs, strict=True)], force=force)
    _tell(found, paths, shown, json=json, to_errors=False)
    return 0


def _only(found: Found, shown: str) -> None:
    if len(found.jobs) > 1:
        names = ", ".join(job.name or "(no name)" for job in found.jobs[:20])
        raise InputError(
            f"{printable(shown)} holds {len(found.jobs)} jobs: {names}",
            hint="one of them: --name NAME; one file each: -o FOLDER/",
        )


def _paths(found: Found, output: Path, shown: str) -> list[Path]:
    """A file for each job. Raises InputError where two would have one name."""
    if not output.is_dir() and output.suffix in (".yaml", ".yml", ".json", ""):
        if output.suffix or len(found.jobs) == 1:
            _only(found, shown)
            return [output]
        raise InputError(f"{output} is no folder", hint=f"make it first: mkdir {output}")
    if not output.is_dir():
        _only(found, shown)
        return [output]
    names = [job.name or "job" for job in found.jobs]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"two jobs of {printable(shown)} are called {name}", hint="rename one in the file")
    return [output / f"{name}.yaml" for name in names]


def _write(files: Sequence[tuple[Path, str]], *, force: bool) -> None:
    """All of them or none. Raises InputError."""
    for path, _ in files:
        if path.exists() and not force:
            raise InputError(f"{path} exists and stays as it is", hint="name another file: -o other.yaml; or --force")
    made: list[Path] = []
    try:
        for path, text in files:
            with path.open("w" if force else "x", encoding="utf-8") as file:
                made += [] if force else [path]
                file.write(text)
    except OSError as wrong:
        for path in made:
            path.unlink(missing_ok=True)
        raise InputError(
            f"{path} cannot be written: {wrong.strerror}", hint="name a file in a folder that is there: -o job.yaml"
        ) from wrong


def _tell(found: Found, paths: Sequence[Path | None], shown: str, *, json: bool, to_errors: bool) -> None:
    from phalanx.job.importers.result import told  # noqa: PLC0415 - not for --help

    stream = sys.stderr if to_errors else sys.stdout
    if json:
        value: dict[str, Any] = {
            "jobs": [_as_json(job, path) for job, path in zip(found.jobs, paths, strict=True)],
            "beside": [{"object": one.said, "line": one.line, "why": one.why} for one in found.beside],
        }
        stream.write(jsonlib.dumps(value, indent=2) + "\n")
        return
    lines: list[str] = []
    for job, path in zip(found.jobs, paths, strict=True):
        lines += [f"{job.source}:", *told(job, shown)]
        if path is not None:
            lines += [f"{path} written; phalanx run {path} --on kubernetes starts it"]
    if found.beside:
        lines += ["beside:", *(f"  {shown}:{one.line}: {one.said}: {one.why}" for one in found.beside)]
    stream.write("".join(f"{printable(line)}\n" for line in lines))


def _as_json(job: Imported, path: Path | None) -> dict[str, Any]:
    from phalanx.job.importers.ledger import written  # noqa: PLC0415 - not for --help

    return {
        "name": job.name,
        "source": job.source,
        "line": job.line,
        "file": str(path) if path is not None else None,
        "fields": [
            {
                "verdict": entry.verdict,
                "path": entry.at,
                "line": entry.line,
                "to": written(entry.to) if entry.to else None,
                "why": entry.why,
            }
            for entry in job.entries
        ],
    }
