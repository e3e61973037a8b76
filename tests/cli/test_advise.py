"""`phalanx advise` by flags, and what it and `bench` refuse before anything runs."""

from __future__ import annotations

import json
import os
import sys

import pytest

from phalanx.cli.looking import unread
from phalanx.sizing.look import Seen
from phalanx.sizing.model import Model
from phalanx.sizing.place import Core

BIG = ("--parameters", "2M", "--tables", "160Mx64", "--optimizer", "adagrad", "--batch", "4096", "--workers", "4")


def test_a_table_too_large_for_a_worker_is_advised_by_flags_alone(phalanx):
    code, out, err = phalanx("advise", *BIG, "--hosts", "6", "--memory", "64Gi")
    assert (code, err) == (0, "")
    assert "advice: ParameterServerStrategy\n  - does not fit one worker: 41.0 GB table" in out


def test_scripts_get_json(phalanx):
    code, out, _ = phalanx("advise", *BIG, "--hosts", "6", "--memory", "64Gi", "--json")
    told = json.loads(out)
    assert (code, told["advice"], told["place"]["bandwidth"]) == (0, "ps", 1.25e9)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("advise",), "there is nothing to train"),
        (("advise", "--parameters", "1M", "--bandwidth", "fast"), "--bandwidth fast: not a bandwidth"),
        (("advise", "--parameters", "1M", "--memory", "much"), "--memory: 'much' is no size"),
        (("advise", "--parameters", "1M", "--workers", "0"), "--workers: must be at least 1, not 0"),
        (("advise", "--parameters", "1M", "train.py"), "a script and --parameters both say what the model is"),
        (("advise", "--parameters", "1M", "--batch", "-3"), "--batch: must be at least 1, not -3"),
        (("advise", "--parameters", "1M", "--memory", "0"), "--memory 0: a host has some"),
        (("advise", "--parameters", "1M", "--memory", "9" * 400), "--memory: '9999"),
        (("advise", "--parameters", "1M", "--workers", "9" * 18), "--workers: must be at most 100000, not 999"),
        (("advise", "--tables", "1Mx8", "--ids", "9" * 18), "--ids: must be at most 1000000, not 999"),
        (("advise", "--parameters", "9" * 26 + "T"), "--parameters 999"),
        (("advise", "--memory", "much", "train.py"), "--memory: 'much' is no size"),
        (("advise", "--cores", "0", "train.py"), "--cores: must be at least 1, not 0"),
        (("advise", "no-such.py"), "no such file: no-such.py"),
        (("advise", "--measure", "a,a"), "--measure a,a: the name a is there twice"),
        (("advise", "--measure", "a", "--hosts", "2"), "--hosts: how many there are is what is measured"),
        (("advise", "--measure", "a", "--measured", "f"), "--measure and --measured both say what the hosts are"),
        (("advise", "--measure", "a", "--through", "ssh"), "--through ssh: {host} is nowhere in it"),
        (("advise", "--measure", "a", "--through", "ssh '{host}"), "--through ssh '{host}: No closing quotation"),
        (("advise", "--measure", "a", "--probe-time", "2m"), "--probe-time 2m: at most a minute for each round"),
        (("advise", "--measure", "a", "--ports", "22"), "--ports: '22' is no range of ports"),
        (("advise", "--measure", "a", "--save", "no/such/f"), "--save no/such/f: there is no folder"),
        (("advise", "--measure", "a", "--memory", "much"), "--memory: 'much' is no size"),
        (("advise", "--measure", "a", "--parameters", "x"), "--parameters x: not a number of parameters"),
        (("advise", "--parameters", "1M", "--save", "f"), "--save is for what --measure does"),
        (("advise", "--measured", "no-such.json"), "no-such.json cannot be read: No such file or directory"),
        (("advise", "--measured", "train.py"), "train.py is no JSON"),
        (("bench", "--workers", "1,x", "train.py"), "--workers 1,x: not numbers by comma"),
        (("bench",), "there is nothing to bench"),
    ],
)
def test_what_cannot_be_advised_is_refused_in_one_line(phalanx, tmp_path, monkeypatch, words, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").touch()
    code, out, err = phalanx(*words)
    assert (code, out) == (2, "")
    assert err.startswith(f"phalanx: {said}")


@pytest.mark.parametrize(
    ("script", "words", "told"),
    [
        ("train()", ["--batch", "8"], ["--batch"]),
        ("train()", ["--batch=8", "--epochs", "3"], ["--batch"]),
        ('parser.add_argument("--batch")', ["--batch", "8"], []),
        ('flags.DEFINE_integer("batch", 8, "")', ["--batch=8"], []),
        ("def main(batch: int = 8): ...", ["--batch=8"], []),
        ("data.batch(24), batch_size", ["--batch=8"], ["--batch"]),
    ],
)
def test_a_flag_that_a_script_passes_by_in_silence_is_told(script, words, told):
    assert unread(words, ["batch", "workers"], script) == told


@pytest.mark.real
def test_a_flag_of_advise_that_the_script_refuses_is_told_as_run_tells_it(phalanx, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("import argparse\nargparse.ArgumentParser().parse_args()\n")
    code, _, err = phalanx("advise", "--python", sys.executable, "train.py", "--batch", "8")
    assert code == 2
    assert "--batch is a flag of phalanx: write it before train.py, since" in err


@pytest.mark.parametrize(
    ("behind", "said"),
    [((), "say it: --batch 256, before the script"), (("--batch=8",), "--batch is a flag of phalanx: write it before")],
)
def test_a_script_without_a_batch_is_told_where_to_say_it(phalanx, monkeypatch, behind, said):
    seen = Seen(model=Model(variables=(), slots=0, batch=0), core=Core())
    monkeypatch.setattr("phalanx.cli.advise.looked_at", lambda *_: seen)
    code, out, err = phalanx("advise", "train.py", *behind)
    assert (code, out) == (2, "")
    assert said in err


@pytest.mark.real
def test_a_script_that_cannot_be_looked_at_is_announced_and_told_with_the_flags(phalanx, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("raise SystemExit('no data here')\n")
    code, out, err = phalanx("advise", "--python", sys.executable, "train.py")
    assert (code, out) == (2, "")
    announced, failed, hint = err.splitlines()
    assert announced.startswith("phalanx: running train.py until its first training step (at most 120 s)")
    assert failed.endswith("(exit 1); its last lines were: no data here")
    assert "--parameters 25M" in hint
    assert os.listdir(tmp_path) == ["train.py"]  # noqa: PTH208 - names only
