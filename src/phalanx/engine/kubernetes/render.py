"""Manifests as a folder of files that lies in Git: the same job gives the same bytes.

`kubectl apply -f DIR` takes every .yaml in it in the order of their names; kustomize reads the file `Kustomization`,
which kubectl passes over, since that name has no ending.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import phalanx
from phalanx.engine.kubernetes.objects import Manifest
from phalanx.engine.kubernetes.text import document
from phalanx.errors import InputError

KUSTOMIZATION = "Kustomization"
#: The first words of each file of ours: what says them may be written anew, or taken away.
_OURS = "# Written by phalanx"

#: Which file an object is in, by its kind; the agent's pieces have one of their own.
_FILES = {
    "ServiceAccount": "1-access.yaml",
    "Role": "1-access.yaml",
    "RoleBinding": "1-access.yaml",
    "Secret": "2-key.yaml",
    "ConfigMap": "4-run.yaml",
    "Service": "4-run.yaml",
    "NetworkPolicy": "4-run.yaml",
    "PodGroup": "4-run.yaml",
    "Job": "5-jobs.yaml",
    "JobSet": "5-jobs.yaml",
}
_AGENT = "3-agent.yaml"


def files(manifests: Iterable[Manifest], *, remarks: Sequence[str] = ()) -> Mapping[str, str]:
    """The text of each file by its name. `remarks` stand as a comment above the Jobs."""
    parts: dict[str, list[str]] = {}
    for one in manifests:
        name = _AGENT if "binaryData" in one else _FILES[one["kind"]]
        parts.setdefault(name, []).append(document(one))
    head = f"{_OURS} {phalanx.__version__} from a job.yaml: change that, and render it anew.\n"
    made = {name: head + "---\n".join(parts[name]) for name in sorted(parts)}
    if remarks:
        comment = "".join(f"# - {line}\n" for line in remarks)
        jobs = "5-jobs.yaml"
        made[jobs] = f"{head}#\n# What is lost without phalanx in the pods:\n{comment}{made[jobs].removeprefix(head)}"
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": list(made),
    }
    return {**made, KUSTOMIZATION: head + document(kustomization)}


def write(folder: Path, texts: Mapping[str, str]) -> None:
    """Each file whole or not at all; what an earlier rendering has left over goes. Raises InputError.

    A file of such a name that is not ours is left as it is, and nothing is written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in texts:
            path = folder / name
            if path.exists() and not _is_ours(path):
                raise InputError(
                    f"{path} is not one of phalanx's own files, and stays as it is; nothing was written",
                    hint="name another folder: -o k8s/",
                )
        for name in {*_FILES.values(), _AGENT, KUSTOMIZATION} - set(texts):
            if _is_ours(folder / name):
                (folder / name).unlink()
        for name, text in texts.items():
            beside = folder / f".{name}.{os.getpid()}"
            beside.write_text(text, encoding="utf-8")
            beside.replace(folder / name)
    except OSError as wrong:
        raise InputError(
            f"{folder} cannot be written: {wrong.strerror}", hint="name a folder that can be made or written to"
        ) from wrong


def _is_ours(path: Path) -> bool:
    """Whether it is a file that an earlier rendering has written."""
    try:
        with path.open(encoding="utf-8") as file:
            return file.read(len(_OURS)) == _OURS
    except (FileNotFoundError, UnicodeDecodeError, IsADirectoryError):
        return False
