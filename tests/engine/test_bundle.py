"""The agent as one file: what rides in it, and that it needs nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import zipfile

import pytest

from phalanx.engine import bundle
from phalanx.errors import PlaceError

#: A ConfigMap holds 1,048,576 bytes, and must leave room for its own text (facts §13).
LARGEST = 900_000


@pytest.mark.real
def test_the_zip_runs_where_nothing_is_installed_and_foreign_variables_are_set(tmp_path):
    pyz = tmp_path / "phalanx-agent.pyz"
    bundle.write_zip(pyz)
    (tmp_path / "starlette.py").write_text("raise SystemExit('the wrong starlette')")
    done = subprocess.run(
        [sys.executable, "-S", "-E", str(pyz), "agent"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path), "PYTHONHOME": "/nonexistent", "PATH": os.environ["PATH"]},
        check=False,
    )
    assert (done.returncode, done.stderr) == (3, "")  # nobody told it what to do


@pytest.mark.real
def test_the_lead_and_all_it_needs_can_be_imported_from_the_zip_alone(tmp_path):
    pyz = tmp_path / "phalanx-agent.pyz"
    bundle.write_zip(pyz)
    modules = "phalanx.lead.main, phalanx.agent.host, phalanx.agent.pod, h2.connection, anyio._backends._asyncio"
    code = f"import sys; sys.path.insert(0, {str(pyz)!r}); import {modules}"
    done = subprocess.run([sys.executable, "-S", "-E", "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_equal_contents_give_equal_zips_small_enough_for_a_configmap(tmp_path):
    one, two = tmp_path / "one.pyz", tmp_path / "two.pyz"
    bundle.write_zip(one)
    bundle.write_zip(two)
    assert one.read_bytes() == two.read_bytes()
    assert one.stat().st_size < LARGEST
    names = zipfile.ZipFile(one).namelist()
    assert not [name for name in names if name.endswith((".so", ".pyc"))]
    assert "__main__.py" in names


def test_ten_at_once_unpack_one_version_and_leave_no_scratch(tmp_path):
    found = []
    threads = [threading.Thread(target=lambda: found.append(bundle.unpacked(tmp_path))) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 1
    assert [path.name for path in tmp_path.iterdir()] == [found[0].name]
    assert (found[0] / "phalanx" / "runtime" / "boot" / "sitecustomize.py").is_file()


@pytest.mark.real
def test_a_version_whose_agent_lives_is_kept_however_old_it_is(tmp_path):
    """Its standbys and tasks start from there: without the folder a standby would run the program alone."""
    used = bundle.unpacked(tmp_path)
    code = "import sys; sys.path.insert(0, sys.argv[1]); from phalanx.agent import main; main._hold(); print(); input()"
    argv = [sys.executable, "-S", "-E", "-c", code, str(used)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as agent:
        assert agent.stdout is not None
        assert agent.stdout.readline() == b"\n"
        others = [tmp_path / f"agent-{number}" for number in range(6)]
        for other in others:
            other.mkdir()
        os.utime(used, (0, 0))
        bundle._forget_old(tmp_path, keep=others[-1])
        assert (used / "phalanx" / "agent" / "main.py").is_file()
        assert len(list(tmp_path.iterdir())) == 5
        agent.kill()
    bundle._forget_old(tmp_path, keep=others[-1])
    assert not used.exists()


def test_a_cache_that_others_can_write_is_refused(home):
    root = home / ".cache" / "phalanx"
    root.mkdir(mode=0o777)
    root.chmod(0o777)
    with pytest.raises(PlaceError, match="written by others") as caught:
        bundle.cache_root()
    assert "chmod 700" in caught.value.hint


def test_a_cache_that_cannot_be_made_says_what_to_set(home, monkeypatch):
    (home / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "file"))
    with pytest.raises(PlaceError) as caught:
        bundle.cache_root()
    assert caught.value.hint == "set XDG_CACHE_HOME"
