"""`phalanx check train.py`, and what `run` and `plan` say of a script before they start it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from environments import switch_on
from phalanx.script.check import IDS

MWMS = "import tensorflow as tf\nstrategy = tf.distribute.MultiWorkerMirroredStrategy()\n"
KERAS_FIT = MWMS + "with strategy.scope(): m = tf.keras.Sequential()\nm.compile('sgd', 'mse')\nm.fit(x)\n"
EARLY = "import tensorflow as tf\ntf.constant(1)\nstrategy = tf.distribute.MultiWorkerMirroredStrategy()\n"
SHARED = MWMS + "manager = tf.train.CheckpointManager(None, 'ckpt', max_to_keep=1)\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with an environment that has TensorFlow 2.21 and Keras 3.15 by its metadata, and nothing else."""
    switch_on(tmp_path, monkeypatch)
    return tmp_path


def ids(out: str) -> list[str]:
    return [finding["id"] for finding in json.loads(out)["findings"]]


def test_a_script_is_read_and_its_faults_are_shown_with_their_lines(phalanx, folder):
    (folder / "train.py").write_text(EARLY)
    code, out, err = phalanx("check", "train.py")
    assert (code, err) == (1, "")
    assert out.startswith("train.py:2:1: error: `tf.constant` comes before MultiWorkerMirroredStrategy() in line 3")
    assert "    2 | tf.constant(1)\n      | ^^^^^^^^^^^^^^\n" in out


def test_a_script_that_is_fine_is_called_so(phalanx, folder):
    (folder / "train.py").write_text(MWMS)
    assert phalanx("check", "train.py") == (0, "train.py: fine, names MultiWorkerMirroredStrategy\n", "")


def test_a_script_that_is_nested_too_deep_is_no_fault(phalanx, folder):
    (folder / "train.py").write_text("if x == 0:\n    y = 0\n" + "elif x == 1:\n    y = 1\n" * 1200)
    code, out, err = phalanx("check", "train.py")
    assert (code, err) == (0, "")
    assert "train.py:1:1: info: the script was not read: it is nested too deep" in out


def test_a_pipe_is_refused_instead_of_waited_for(phalanx, folder):
    os.mkfifo(folder / "train.py")
    code, _, err = phalanx("check", "train.py")
    assert (code, err.splitlines()[0]) == (2, "phalanx: cannot read train.py: it is no regular file")


def test_scripts_and_tf_configs_may_be_checked_together(phalanx, folder):
    (folder / "train.py").write_text(EARLY)
    (folder / "node.json").write_text('{"cluster": {"worker": ["a"]}, "task": {"type": "worker", "index": 0}}')
    code, out, _ = phalanx("check", "node.json", "train.py", "--json")
    assert code == 1
    assert {"address-no-port", "context-before-strategy"} <= set(ids(out))


def test_a_script_alone_leaves_the_tf_config_of_the_environment_alone(phalanx, folder, monkeypatch):
    monkeypatch.setenv("TF_CONFIG", "nonsense")
    (folder / "train.py").write_text(MWMS)
    assert phalanx("check", "train.py")[0] == 0


def test_rules_are_left_out_by_flag_and_by_comment(phalanx, folder):
    (folder / "train.py").write_text(EARLY)
    assert phalanx("check", "train.py", "--ignore", "context-before-strategy")[0] == 0
    (folder / "train.py").write_text(EARLY.replace("(1)", "(1)  # phalanx: ignore[context-before-strategy]"))
    assert phalanx("check", "train.py")[0] == 0


def test_a_rule_that_does_not_exist_cannot_be_left_out(phalanx, folder):
    (folder / "train.py").write_text(MWMS)
    code, _, err = phalanx("check", "train.py", "--ignore", "shared-sav-path")
    assert code == 2
    assert "did you mean shared-save-path?" in err


def test_the_number_of_workers_and_the_version_of_tensorflow_matter(phalanx, folder):
    (folder / "train.py").write_text(KERAS_FIT)
    assert ids(phalanx("check", "train.py", "--json")[1]) == ["keras3-mwms-fit"]
    assert ids(phalanx("check", "train.py", "--json", "--workers", "1")[1]) == []
    assert ids(phalanx("check", "train.py", "--json", "--tf-version", "2.15")[1]) == []


CHIEF = MWMS + "r = strategy.cluster_resolver\nif r.task_type == 'chief':\n    tf.saved_model.save(m, 'm')\n"


def test_who_saves_depends_on_whether_there_is_a_chief(phalanx, folder):
    (folder / "train.py").write_text(CHIEF)
    code, out, _ = phalanx("check", "train.py", "--workers", "2", "--fail-on", "warning")
    assert code == 1
    assert "fix: --chief gives the cluster one" in out
    assert phalanx("check", "train.py", "--workers", "2", "--chief", "--fail-on", "warning")[0] == 0


def test_plan_and_run_tell_it_of_the_job_that_they_make(phalanx, folder):
    (folder / "train.py").write_text(CHIEF)
    assert "chief-is-nowhere" in "".join(phalanx("plan", "--workers", "2", "train.py")[1:])
    assert "chief-is-nowhere" not in "".join(phalanx("plan", "--workers", "2", "--chief", "train.py")[1:])


@pytest.mark.parametrize(
    "size",
    [
        ("--chief",),
        ("--chief", "--workers", "1"),
        ("--chief", "--workers", "0"),
        ("--workers", "2"),
        ("--workers", "2", "--no-chief"),
        ("--evaluator",),
        ("--evaluator", "--chief"),
        ("--ps", "1"),
        ("--ps", "1", "--no-chief"),
    ],
)
@pytest.mark.parametrize("text", ["CHIEF", "MWMS"])
def test_check_and_plan_mean_the_same_job_by_the_same_words(phalanx, folder, size, text):
    (folder / "train.py").write_text(CHIEF if text == "CHIEF" else MWMS)
    told = ids(phalanx("check", "train.py", "--json", *size)[1])
    planned = "".join(phalanx("plan", *size, "train.py")[1:])
    assert sorted(told) == sorted({rule for rule in IDS if f"[{rule}]" in planned})


def test_a_job_in_which_nobody_would_train_is_refused(phalanx, folder):
    (folder / "train.py").write_text(MWMS)
    code, _, err = phalanx("check", "train.py", "--workers", "0")
    assert (code, "nobody would train" in err) == (2, True)


def test_a_cluster_with_parameter_servers_may_be_said(phalanx, folder):
    (folder / "train.py").write_text(MWMS)
    assert ids(phalanx("check", "train.py", "--json", "--workers", "2", "--ps", "1")[1]) == ["ps-under-mwms"]
    assert phalanx("check", "train.py", "--ps", "-1")[0] == 2


def test_what_each_host_is_asked_is_told_by_check_and_left_to_the_preflight_by_plan(phalanx, folder):
    (folder / "venv" / "lib" / "python3.11" / "site-packages" / "tensorflow").mkdir()
    (folder / "train.py").write_text("import no_such_module_here\n" + MWMS)
    code, out, _ = phalanx("check", "train.py", "--json")
    assert (code, ids(out)) == (1, ["module-missing"])
    assert phalanx("plan", "--workers", "2", "train.py")[0] == 0


def test_sarif_names_the_rules_on_scripts(phalanx, folder):
    (folder / "train.py").write_text(EARLY)
    _, out, _ = phalanx("check", "train.py", "--format", "sarif")
    [run] = json.loads(out)["runs"]
    assert "shared-save-path" in [rule["id"] for rule in run["tool"]["driver"]["rules"]]


@pytest.mark.parametrize("name", ["missing.py", "folder.py"])
def test_a_script_that_cannot_be_read_is_one_clear_error(phalanx, folder, name):
    (folder / "folder.py").mkdir()
    code, out, err = phalanx("check", name)
    assert (code, out) == (2, "")
    assert err.startswith(f"phalanx: cannot read {name}: ")


def test_the_other_verbs_send_a_script_to_check(phalanx, folder):
    (folder / "train.py").write_text(MWMS)
    code, _, err = phalanx("explain", "train.py")
    assert code == 2
    assert "phalanx check reads scripts" in err


@pytest.mark.parametrize("verb", ["plan", "run"])
def test_a_script_that_cannot_work_is_refused_before_anything_starts(phalanx, folder, verb, golden):
    (folder / "train.py").write_text(EARLY + "tf.estimator.Estimator()\n")
    code, out, err = phalanx(verb, "--workers", "2", "train.py")
    assert (code, out) == (2, "")
    assert not (folder / "runs").exists()
    golden("cli/script-refused.txt", err)


def test_who_knows_better_goes_on_all_the_same(phalanx, folder):
    (folder / "train.py").write_text(EARLY)
    assert phalanx("plan", "--workers", "2", "--ignore-check", "context-before-strategy", "train.py")[0] == 0
    assert phalanx("plan", "--workers", "2", "--no-preflight", "train.py")[0] == 0
    (folder / "job.yaml").write_text("command: [train.py]\npreflight: {ignore: [context-before-strategy]}\n")
    assert phalanx("plan", "--workers", "2", "job.yaml")[0] == 0


def test_advice_is_a_note_with_its_place_and_its_rule(phalanx, folder):
    (folder / "train.py").write_text(SHARED)
    code, out, _ = phalanx("plan", "--workers", "2", "train.py")
    assert code == 0
    assert 'warning: train.py:3:11: every task writes checkpoints to "ckpt" [shared-save-path]; all save' in out


def test_what_is_true_of_a_cluster_is_not_said_of_one_task(phalanx, folder):
    (folder / "train.py").write_text(SHARED)
    assert "shared-save-path" not in phalanx("plan", "train.py")[1]
    assert "shared-save-path" not in phalanx("plan", "--workers", "2", "--strategy", "none", "train.py")[1]


def test_the_arguments_of_the_script_count(phalanx, folder):
    flags = "import argparse\np = argparse.ArgumentParser()\n"
    flags += "p.add_argument('--dir', default='ckpt')\nargs = p.parse_args()\n"
    (folder / "train.py").write_text(flags + SHARED.replace("'ckpt'", "args.dir"))
    assert 'writes checkpoints to "ckpt"' in phalanx("plan", "--workers", "2", "train.py")[1]
    assert 'writes checkpoints to "/d"' in phalanx("plan", "--workers", "2", "train.py", "--dir", "/d")[1]
    assert "shared-save-path" not in phalanx("plan", "--workers", "2", "train.py", "--dir", "{task_dir}")[1]


def test_the_fit_of_keras_3_is_refused_only_where_the_runtime_cannot_mend_it(phalanx, folder):
    (folder / "train.py").write_text(KERAS_FIT)
    assert "keras3-mwms-fit" in phalanx("plan", "--workers", "2", "train.py")[2]  # its python is a shell script
    (folder / "venv" / "bin" / "python").write_bytes(b"\x7fELF")
    code, out, _ = phalanx("plan", "--workers", "2", "train.py")
    assert code == 0
    assert "\nkeras        auto: Keras 3's fit is mended in memory" in out
    code, _, err = phalanx("plan", "--workers", "2", "--keras", "off", "train.py")
    assert (code, "keras3-mwms-fit" in err) == (2, True)
    (folder / "job.yaml").write_text("command: [train.py]\nruntime: off\n")
    assert "keras3-mwms-fit" in phalanx("plan", "--workers", "2", "job.yaml")[2]


def test_a_variable_of_the_job_decides_which_keras_answers(phalanx, folder):
    (folder / "train.py").write_text(KERAS_FIT)
    (folder / "job.yaml").write_text('command: [train.py]\nenv: {TF_USE_LEGACY_KERAS: "1"}\n')
    assert phalanx("plan", "--workers", "2", "job.yaml")[0] == 0


def test_legacy_keras_is_refused_before_anything_starts_where_it_is_not_installed(phalanx, folder):
    (folder / "train.py").write_text(KERAS_FIT)
    (folder / "job.yaml").write_text("command: [train.py]\nkeras: legacy\n")
    python = folder / "venv" / "bin" / "python"
    code, _, err = phalanx("run", "--workers", "2", "job.yaml")
    assert code == 2
    assert f"job.yaml:2:1: legacy Keras is the package tf_keras, which {python} does not have" in err
    assert f'{python} -m pip install "tf_keras~=2.21.0", or say auto' in err
    assert not (folder / "runs").exists()
    (folder / "venv" / "lib" / "python3.11" / "site-packages" / "tf_keras").mkdir()
    code, out, _ = phalanx("plan", "--workers", "2", "job.yaml")
    assert code == 0
    assert "\nkeras        legacy: tf_keras in place of Keras 3" in out
    assert "  TF_USE_LEGACY_KERAS=1\n" in out


def test_a_role_with_a_script_of_its_own_is_read_too(phalanx, folder):
    (folder / "train.py").write_text(MWMS)
    (folder / "score.py").write_text("import tensorflow as tf\ntf.estimator.Estimator()\n")
    (folder / "job.yaml").write_text("command: [train.py]\nroles: {evaluator: {count: 1, command: [score.py]}}\n")
    code, _, err = phalanx("plan", "--workers", "2", "job.yaml")
    assert code == 2
    assert err.startswith("phalanx: score.py cannot work in this job\n")


def test_an_evaluator_that_runs_the_same_script_needs_a_branch(phalanx, folder):
    (folder / "train.py").write_text(MWMS)
    assert "[evaluator-branch]" in phalanx("plan", "--workers", "2", "--evaluator", "train.py")[2]
    (folder / "train.py").write_text(
        "import os\nif 'evaluator' in os.environ['TF_CONFIG']:\n    raise SystemExit\n" + MWMS
    )
    assert phalanx("plan", "--workers", "2", "--evaluator", "train.py")[0] == 0


def test_the_help_of_check_shows_how_a_script_is_checked(phalanx):
    _, out, _ = phalanx("check", "--help")
    assert "phalanx check train.py" in out
    assert "phalanx: ignore[" in out


def test_the_examples_are_fine(phalanx, folder):
    """But for a note that by hand Keras 3 fails with more than one worker, which is so."""
    for example in sorted((Path(__file__).parents[2] / "examples").glob("*/train.py")):
        code, out, _ = phalanx("check", str(example))
        assert (code, ": fine, names " in out or "[keras3-mwms-fit]" in out) == (0, True), example


def packaged(folder: Path) -> None:
    (folder / "pkg").mkdir()
    (folder / "pkg" / "common.py").write_text("import tensorflow as tf\ntf.constant(1)\n")
    (folder / "pkg" / "train.py").write_text(
        "from . import common\nimport tensorflow as tf\nstrategy = tf.distribute.MultiWorkerMirroredStrategy()\n"
    )


def test_a_module_is_checked_as_python_would_start_it(phalanx, folder):
    packaged(folder)
    code, out, _ = phalanx("check", "-m", "pkg.train", "--json")
    assert (code, ids(out)) == (1, ["context-before-strategy"])
    code, _, err = phalanx("check", "-m", "pkg.nothing")
    assert (code, "no such module here" in err) == (2, True)


def test_a_command_that_starts_a_module_is_read_before_it_runs(phalanx, folder):
    packaged(folder)
    code, _, err = phalanx("plan", "--workers", "2", "python", "-m", "pkg.train")
    assert code == 2
    assert "pkg/common.py:2:1" in err
    assert "phalanx check -m pkg.train shows more" in err
    (folder / "job.yaml").write_text(
        "command: [python, -m, train, --fast]\nenv: {PYTHONPATH: pkg}\nroles: {worker: {count: 2}}\n"
    )
    (folder / "pkg" / "train.py").write_text(EARLY)
    assert "context-before-strategy" in phalanx("plan", "job.yaml")[2]


@pytest.mark.parametrize("command", [("-m", "json.tool"), ("-P", "-m", "pkg.train"), ("-c", "import pkg.train")])
def test_what_is_not_the_users_module_is_not_read(phalanx, folder, command):
    packaged(folder)
    assert phalanx("plan", "--workers", "2", "python", *command)[0] == 0
