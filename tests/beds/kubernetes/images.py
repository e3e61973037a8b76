"""A container image from a root file system, without a registry or a daemon: an OCI archive of one layer."""

from __future__ import annotations

import hashlib
import io
import json
import platform
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import Any

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def full_name(name: str) -> str:
    """As the container runtime writes it. A tag is asked for: `latest` would be pulled anew by default."""
    first, slash, _ = name.partition("/")
    if ":" not in name.rpartition("/")[2]:
        raise ValueError(f"image {name}: give it a tag")
    if not slash:
        return f"docker.io/library/{name}"
    return name if "." in first or ":" in first or first == "localhost" else f"docker.io/{name}"


def pack(name: str, root: Path, archive: Path, *, entrypoint: str | None = None) -> str:
    """Write the folder `root` as image `name` into `archive`; returns its digest."""
    with tempfile.TemporaryDirectory(dir=archive.parent) as work:
        layer = Path(work, "layer.tar")
        argv = ["tar", "-C", root, "--numeric-owner", "--owner=0", "--group=0", "--sort=name", "--mtime=@0"]
        subprocess.run([*argv, "-cf", layer, "."], check=True)
        with layer.open("rb") as file:
            digest = "sha256:" + hashlib.file_digest(file, "sha256").hexdigest()
        new = Path(work, "new.tar")
        with tarfile.open(new, "w") as out:
            stored = {"mediaType": _type("layer.v1.tar"), "digest": digest, "size": layer.stat().st_size}
            out.add(layer, arcname=f"blobs/sha256/{digest.partition(':')[2]}")
            config = {
                "architecture": _ARCHITECTURES[platform.machine()],
                "os": "linux",
                "config": {"Env": [_PATH], **({"Entrypoint": [entrypoint]} if entrypoint else {"Cmd": ["/bin/sh"]})},
                "rootfs": {"type": "layers", "diff_ids": [digest]},
            }
            manifest = {
                "schemaVersion": 2,
                "mediaType": _type("manifest.v1+json"),
                "config": _blob(out, "config.v1+json", config),
                "layers": [stored],
            }
            described = _blob(out, "manifest.v1+json", manifest)
            named = described | {"annotations": {"io.containerd.image.name": full_name(name)}}
            _file(out, "index.json", {"schemaVersion": 2, "manifests": [named]})
            _file(out, "oci-layout", {"imageLayoutVersion": "1.0.0"})
        new.replace(archive)
    return str(described["digest"])


def _type(kind: str) -> str:
    return f"application/vnd.oci.image.{kind}"


def _blob(out: tarfile.TarFile, kind: str, content: dict[str, Any]) -> dict[str, Any]:
    """Store it under its digest; its descriptor."""
    digest = hashlib.sha256(json.dumps(content).encode()).hexdigest()
    size = _file(out, f"blobs/sha256/{digest}", content)
    return {"mediaType": _type(kind), "digest": f"sha256:{digest}", "size": size}


def _file(out: tarfile.TarFile, name: str, content: dict[str, Any]) -> int:
    data = json.dumps(content).encode()
    member = tarfile.TarInfo(name)
    member.size = len(data)
    out.addfile(member, io.BytesIO(data))
    return len(data)
