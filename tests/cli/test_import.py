"""`phalanx import`."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

MANIFESTS = Path(__file__).parents[1] / "job" / "importers" / "manifests"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("tfjob-v1alpha2.yaml", "kubedl.yaml", "plain-jobs.yaml"):
        (tmp_path / name).write_text((MANIFESTS / name).read_text(encoding="utf-8"), encoding="utf-8")
    both = "---\n".join(
        (tmp_path / name).read_text(encoding="utf-8") for name in ("tfjob-v1alpha2.yaml", "kubedl.yaml")
    )
    (tmp_path / "two.yaml").write_text(both, encoding="utf-8")
    return tmp_path


def others(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - {
        "tfjob-v1alpha2.yaml",
        "kubedl.yaml",
        "plain-jobs.yaml",
        "two.yaml",
    }


def test_a_job_yaml_is_written_and_render_takes_it(phalanx, folder):
    code, out, err = phalanx("import", "tfjob-v1alpha2.yaml")
    assert (code, err) == (0, "")
    assert "tfjob-v1alpha2.yaml:20: spec.tfReplicaSpecs.Worker.replicas → roles.worker.count" in out
    assert out.endswith("job.yaml written; phalanx run job.yaml --on kubernetes starts it\n")
    assert "command: [python, bench.py]" in (folder / "job.yaml").read_text(encoding="utf-8")
    assert phalanx("render", "job.yaml", "-o", "k8s", "--namespace", "ml")[0] == 0


def test_a_file_that_is_there_stays_as_it_is_unless_forced(phalanx, folder):
    (folder / "job.yaml").write_text("mine", encoding="utf-8")
    code, out, err = phalanx("import", "tfjob-v1alpha2.yaml")
    assert (code, out) == (2, "")
    assert "job.yaml exists and stays as it is" in err
    assert (folder / "job.yaml").read_text(encoding="utf-8") == "mine"
    assert phalanx("import", "tfjob-v1alpha2.yaml", "--force")[0] == 0
    assert (folder / "job.yaml").read_text(encoding="utf-8").startswith("# Made from TFJob bench")


def test_after_a_refusal_nothing_is_there(phalanx, folder):
    text = (folder / "two.yaml").read_text(encoding="utf-8").replace("replicas: 2", "replicas: many", 1)
    (folder / "two.yaml").write_text(text, encoding="utf-8")
    (folder / "jobs").mkdir()
    code, out, err = phalanx("import", "two.yaml", "-o", "jobs")
    assert (code, out) == (2, "")
    assert "two.yaml:20:7: spec.tfReplicaSpecs.Worker.replicas: a whole number of at least 0" in err
    assert list((folder / "jobs").iterdir()) == []


def test_of_several_jobs_one_is_named_or_each_gets_a_file(phalanx, folder):
    code, _, err = phalanx("import", "two.yaml")
    assert (code, others(folder)) == (2, set())
    assert "two.yaml holds 2 jobs: bench, cached" in err
    assert "--name NAME" in err
    assert phalanx("import", "two.yaml", "--name", "cached")[0] == 0
    (folder / "jobs").mkdir()
    assert phalanx("import", "two.yaml", "-o", "jobs/")[0] == 0
    assert {path.name for path in (folder / "jobs").iterdir()} == {"bench.yaml", "cached.yaml"}


def test_one_file_of_several_that_exists_keeps_all_from_being_written(phalanx, folder):
    (folder / "jobs").mkdir()
    (folder / "jobs" / "cached.yaml").touch()
    assert phalanx("import", "two.yaml", "-o", "jobs/")[0] == 2
    assert [path.name for path in (folder / "jobs").iterdir()] == ["cached.yaml"]


def test_a_dash_reads_a_pipe_and_prints_the_file(phalanx, folder, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO((folder / "kubedl.yaml").read_bytes())))
    code, out, err = phalanx("import", "-", "-o", "-")
    assert code == 0
    assert out.startswith("# Made from TFJob cached (training.kubedl.io/v1alpha1) in standard input")
    assert "standard input:9: spec.cacheBackend" in err
    assert others(folder) == set()


def test_the_list_as_json_names_each_fields_path_line_and_place(phalanx, folder):
    code, out, _ = phalanx("import", "plain-jobs.yaml", "--json")
    assert code == 0
    said = json.loads(out)
    [job] = said["jobs"]
    assert (job["name"], job["file"]) == ("tf", "job.yaml")
    assert {
        "verdict": "carried",
        "path": "spec.template.spec.containers[0].image",
        "line": 18,
        "to": "image",
        "why": "",
    } in job["fields"]
    assert [one["object"] for one in said["beside"]] == ["Service tf-worker-0", "Deployment tensorboard"]


def test_what_the_image_runs_follows_two_dashes(phalanx, folder):
    text = (
        (folder / "kubedl.yaml").read_text(encoding="utf-8").replace("command: [python, train.py]", "args: [--lr, '1']")
    )
    (folder / "kubedl.yaml").write_text(text, encoding="utf-8")
    code, _, err = phalanx("import", "kubedl.yaml")
    assert code == 2
    assert "phalanx import FILE -- python train.py" in err
    assert phalanx("import", "kubedl.yaml", "--", "python", "-u", "train.py", "--name", "x")[0] == 0
    assert "train.py" in (folder / "job.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize(("output", "said"), [("nope/job.yaml", "cannot be written"), ("", "wants a file")])
def test_a_place_that_cannot_be_written_is_named(phalanx, folder, output, said):
    code, out, err = phalanx("import", "kubedl.yaml", "-o", output)
    assert (code, out) == (2, "")
    assert said in err


def test_a_file_that_is_not_there_is_named(phalanx, folder):
    code, _, err = phalanx("import", "nope.yaml")
    assert code == 2
    assert "cannot read nope.yaml: No such file or directory" in err
