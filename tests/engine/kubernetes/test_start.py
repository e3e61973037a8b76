"""The shell lines that containers begin with, by the smallest shell at hand: what dash takes, every /bin/sh takes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest

from incluster import made, of_kind, static
from phalanx.engine.kubernetes.start import PYTHONS, ROOT, agent_line
from phalanx.tfconfig import check

SHELLS = [shell for shell in ("dash", "bash") if shutil.which(shell)]
pytestmark = pytest.mark.real

PRINT = "import os; print(os.environ['TF_CONFIG'])"


def shell_words(shell: str) -> list[str]:
    path = shutil.which(shell) or "/bin/sh"
    return [path, *(["--posix"] if shell == "bash" else [])]


@pytest.fixture(params=SHELLS)
def pod(request, tmp_path):
    """A container's root with an agent in two pieces, and a PATH that holds what it is given."""
    root, bin_ = tmp_path / "phalanx", tmp_path / "bin"
    (root / "agent").mkdir(parents=True)
    (root / "work").mkdir()
    bin_.mkdir()
    for program in ("mkdir", "cat"):
        (bin_ / program).symlink_to(shutil.which(program))
    text = b"import sys; print('agent', sys.argv[1:], sys.flags.no_site, sys.flags.ignore_environment)\n"
    (root / "agent" / "agent.00").write_bytes(text[:20])
    (root / "agent" / "agent.01").write_bytes(text[20:])

    def start() -> subprocess.CompletedProcess[str]:
        line = agent_line(str(root), str(tmp_path / "termination-log"))
        return subprocess.run(
            [*shell_words(request.param), "-c", line],
            env={"PATH": str(bin_), "PYTHONPATH": "/nowhere"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    start.bin, start.root, start.word = bin_, root, tmp_path / "termination-log"
    return start


def old_python(path, version: str) -> None:
    """A Python that says it is of that version, and fits nowhere."""
    path.write_text(f'#!/bin/sh\ncase "$1" in -c) echo {version}; exit 0;; esac\nexit 1\n')
    path.chmod(0o755)


@pytest.mark.parametrize("name", ["python3.11", "python3", "python"])
def test_the_agent_is_joined_and_starts_under_whatever_name_the_image_has(pod, name):
    (pod.bin / name).symlink_to(sys.executable)
    done = pod()
    assert (done.returncode, done.stdout) == (0, "agent ['pod'] 1 1\n"), done.stderr
    assert (pod.root / "work" / "home").is_dir()
    assert not pod.word.exists()


def test_an_older_python_is_passed_over_for_one_that_fits(pod):
    old_python(pod.bin / "python3", "3.8.10")
    (pod.bin / "python").symlink_to(sys.executable)
    assert pod().stdout == "agent ['pod'] 1 1\n"


def test_an_image_with_an_old_python_says_which_and_what_to_do(pod):
    old_python(pod.bin / "python3", "3.8.10")
    done = pod()
    assert done.returncode == 2
    assert "no Python of at least 3.11 in this image" in done.stderr
    assert "python3 3.8.10" in done.stderr
    assert "phalanx render --static" in done.stderr
    assert pod.word.read_text() == done.stderr, "what Kubernetes shows of the container is the same"


def test_an_image_without_any_python_says_so(pod):
    done = pod()
    assert (done.returncode, "it has none" in done.stderr) == (2, True)
    assert all(name in done.stderr for name in PYTHONS)


def test_a_work_folder_that_takes_nothing_is_the_place_that_failed(pod):
    (pod.bin / "python3").symlink_to(sys.executable)
    shutil.rmtree(pod.root / "work")
    (pod.root / "work").write_text("no folder")
    done = pod()
    assert done.returncode == 3
    assert "takes nothing" in done.stderr


def test_nowhere_to_put_the_last_word_is_no_second_failure(pod, tmp_path):
    line = agent_line(str(pod.root), "/nowhere/at/all")
    done = subprocess.run(
        [*shell_words("dash"), "-c", line],
        env={"PATH": str(pod.bin)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    "text",
    [
        "roles: {worker: {count: 3}}\n",
        "roles: {worker: {count: 2}, ps: {count: 2}, evaluator: {}}\n",
        "strategy: estimator\nroles: {chief: {}, worker: {count: 2}, ps: {}, evaluator: {}}\n",
    ],
    ids=["mwms", "ps", "estimator"],
)
def test_a_static_pod_makes_the_tf_config_that_a_run_would_get(tmp_path, shell, text):
    [config] = [one for one in static(tmp_path, text) if one["kind"] == "ConfigMap"]
    (tmp_path / "cluster").mkdir()
    for name, value in config["data"].items():
        (tmp_path / "cluster" / name).write_text(value)
    for job in of_kind(static(tmp_path, text), "Job"):
        role = job["metadata"]["labels"]["phalanx/role"]
        for index in range(job["spec"]["completions"]):
            line = job["spec"]["template"]["spec"]["containers"][0]["command"][2].replace(ROOT, str(tmp_path))
            done = subprocess.run(
                [*shell_words(shell), "-c", line, "phalanx", sys.executable, "-c", PRINT],
                env={
                    **os.environ,
                    "PHALANX_POD_INDEX": str(index),
                    "HOME": str(tmp_path / "h"),
                    "TMPDIR": str(tmp_path),
                },
                capture_output=True,
                text=True,
                timeout=60,
                check=True,
            )
            said = json.loads(done.stdout)
            assert said["task"] == {"type": role, "index": index}
            sees_itself = role == "evaluator" and text.startswith("strategy: estimator")
            assert ("evaluator" in said["cluster"]) is sees_itself
            for kind, addresses in said["cluster"].items():
                assert addresses == [f"digits-{kind}-{n}.digits:2222" for n in range(len(addresses))]
            strategy = "estimator" if "estimator" in text else "ps" if "ps" in said["cluster"] else "mwms"
            assert not [one for one in check(done.stdout, strategy=strategy) if one.severity.value == "error"]


def test_the_line_in_the_manifest_is_the_one_tested_here(tmp_path):
    [job] = of_kind(made(tmp_path, "on: {kubernetes: {rbac: none}}\n"), "Job")
    assert job["spec"]["template"]["spec"]["containers"][0]["command"] == ["/bin/sh", "-c", agent_line()]
