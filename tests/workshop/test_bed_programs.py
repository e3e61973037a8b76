"""The programs of the Kubernetes bed, short of building them."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from beds.kubernetes import images, programs

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "tests/beds/kubernetes/programs.py"


def run(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PHALANX_")}
    return subprocess.run(
        [sys.executable, SCRIPT, *words], env=kept | env, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.real
@pytest.mark.skipif(os.geteuid() != 0, reason="without root that is the reason which is named")
def test_without_go_the_reason_and_the_other_way_are_named(tmp_path):
    done = run("build", PATH="/nowhere", PHALANX_BED_CACHE=str(tmp_path))
    assert done.returncode == 1
    assert "no Kubernetes bed: building Kubernetes needs Go (or PHALANX_BED_KUBERNETES, a folder" in done.stderr


@pytest.mark.real
@pytest.mark.skipif(os.geteuid() != 0, reason="without root that is the reason which is named")
def test_a_given_folder_that_holds_no_programs_is_refused_by_name(tmp_path):
    done = run("build", PHALANX_BED_KUBERNETES=str(tmp_path))
    assert done.returncode == 1
    assert f"PHALANX_BED_KUBERNETES={tmp_path} holds no built programs" in done.stderr


@pytest.mark.real
def test_a_build_that_goes_on_is_waited_for_and_said_so(tmp_path):
    name = Path(run("where", PHALANX_BED_CACHE=str(tmp_path)).stdout.strip()).name
    holding = f"import fcntl, sys; f = open({str(tmp_path / name)!r} + '.lock', 'wb'); fcntl.flock(f, fcntl.LOCK_EX)\n"
    asking = (
        f"import sys; sys.path.insert(0, {str(ROOT / 'tests')!r})\n"
        "from beds.kubernetes import programs\n"
        "print(programs.being_built(), flush=True)\n"
        "programs.wait(lambda line: print(line, flush=True), every=0.1)\n"
        "print(programs.being_built())\n"
    )
    env = os.environ | {"PHALANX_BED_CACHE": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", holding + "print('held', flush=True); sys.stdin.read()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as builder:
        assert builder.stdout.readline() == "held\n"
        with subprocess.Popen([sys.executable, "-c", asking], env=env, stdout=subprocess.PIPE, text=True) as waiting:
            assert waiting.stdout.readline() == "True\n"
            assert waiting.stdout.readline().startswith("waiting for the build of Kubernetes, 0 s by now (see ")
            builder.stdin.close()
            builder.wait()
            assert waiting.stdout.read().splitlines()[-1] == "False"


def test_an_image_is_a_whole_archive_in_which_each_blob_has_its_digest(tmp_path):
    (tmp_path / "root/etc").mkdir(parents=True)
    (tmp_path / "root/etc/word").write_text("given", encoding="utf-8")
    digest = images.pack("word:1", tmp_path / "root", tmp_path / "image.tar", entrypoint="/word")
    with tarfile.open(tmp_path / "image.tar") as archive:
        held = {member.name: archive.extractfile(member).read() for member in archive if member.isfile()}
    assert {name for name in held if name.startswith("blobs/")} == {
        f"blobs/sha256/{hashlib.sha256(data).hexdigest()}" for name, data in held.items() if name.startswith("blobs/")
    }
    described = json.loads(held["index.json"])["manifests"][0]
    assert described["digest"] == digest
    assert described["annotations"] == {"io.containerd.image.name": "docker.io/library/word:1"}
    manifest = json.loads(held[f"blobs/sha256/{digest.removeprefix('sha256:')}"])
    config = json.loads(held[f"blobs/sha256/{manifest['config']['digest'].removeprefix('sha256:')}"])
    assert config["config"]["Entrypoint"] == ["/word"]
    assert config["rootfs"]["diff_ids"] == [manifest["layers"][0]["digest"]]


@pytest.mark.parametrize(
    ("name", "full"),
    [
        ("a:1", "docker.io/library/a:1"),
        ("me/a:1", "docker.io/me/a:1"),
        ("localhost/a:1", "localhost/a:1"),
        ("host.example:5000/me/a:1", "host.example:5000/me/a:1"),
    ],
)
def test_an_image_has_the_name_that_the_runtime_knows(name, full):
    assert images.full_name(name) == full


def test_an_image_without_a_tag_would_be_pulled_and_is_refused():
    with pytest.raises(ValueError, match="give it a tag"):
        images.full_name("host.example:5000/a")


@pytest.mark.real
def test_the_tests_and_the_build_look_in_the_same_place():
    assert str(programs.programs().built) == run("where", **_bed()).stdout.strip()


def _bed() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith("PHALANX_BED_")}
