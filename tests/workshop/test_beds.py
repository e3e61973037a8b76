"""The plugin of `make test`, by real pytest runs of small files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = {
    "test_one.py": "import pytest\n@pytest.mark.skip(reason='no cluster here')\ndef test_a(): ...\ndef test_b(): ...\n",
    "test_two.py": "import pytest\npytest.skip('no GPU here', allow_module_level=True)\n",
    "test_three.py": "import pytest\n@pytest.mark.xfail(reason='upstream')\ndef test_c(): assert False\n",
}


def run_pytest(folder: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "pytest.toml").write_text("[pytest]\n", encoding="utf-8")
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tests.beds.plugin", "-p", "no:cacheprovider", *arguments, str(folder)],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name != "BEDS"} | env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


pytestmark = pytest.mark.real


@pytest.mark.parametrize("arguments", [(), ("-n", "2")], ids=["alone", "side by side"])
def test_without_beds_the_reasons_stand_above_the_closing_line(tmp_path, arguments):
    done = run_pytest(tmp_path, *arguments)
    lines = done.stdout.splitlines()
    assert done.returncode == 0
    assert "1 skipped: no cluster here" in lines
    assert "1 skipped: no GPU here" in lines
    assert "1 passed, 2 skipped, 1 xfailed" in lines[-1]


@pytest.mark.parametrize("arguments", [(), ("-n", "2")], ids=["alone", "side by side"])
def test_with_beds_required_a_skip_is_a_failure_and_an_expected_failure_is_not(tmp_path, arguments):
    done = run_pytest(tmp_path, *arguments, BEDS="require")
    assert done.returncode != 0
    assert "BEDS=require: no cluster here" in done.stdout
    assert "BEDS=require: no GPU here" in done.stdout
    assert "1 passed, 1 xfailed, 2 errors" in done.stdout.splitlines()[-1]


def test_another_value_of_beds_is_refused(tmp_path):
    done = run_pytest(tmp_path, BEDS="yes")
    assert done.returncode != 0
    assert "BEDS=yes: the only value is `require`" in done.stdout + done.stderr


@pytest.mark.parametrize(("built", "order"), [("1", "cluster other"), ("", "other cluster")], ids=["built", "not yet"])
def test_what_needs_a_cluster_comes_first_or_waits_to_the_last_for_its_build(tmp_path, built, order):
    for name in ("cluster", "other"):
        (tmp_path / "tests" / name).mkdir(parents=True)
        (tmp_path / "tests" / name / f"test_{name}.py").write_text(f"def test_{name}(): ...\n", encoding="utf-8")
    done = run_pytest(tmp_path, "--collect-only", "-q", "-p", "no:randomly", BEDS_BUILT=built)
    places = [line.rpartition("::test_")[2] for line in done.stdout.splitlines() if line.startswith("tests/")]
    assert " ".join(places) == order


def test_side_by_side_the_files_of_the_cluster_stay_together(tmp_path):
    (tmp_path / "tests/cluster").mkdir(parents=True)
    for name in ("a", "b", "c", "d"):
        (tmp_path / f"tests/cluster/test_{name}.py").write_text("def test_it(): ...\n", encoding="utf-8")
    done = run_pytest(tmp_path, "-n", "3", "--dist", "loadfile", "-v", "-p", "no:randomly")
    ran = {line.split("]")[0] for line in done.stdout.splitlines() if "PASSED" in line and "tests/cluster/" in line}
    assert done.returncode == 0
    assert len(ran) == 1
