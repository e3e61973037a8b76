from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from phalanx.cli.main import main

SOUND = '{"cluster": {"worker": ["n1:2222", "n2:2222"]}, "task": {"type": "worker", "index": 1}}'
NO_PORT = SOUND.replace("n1:2222", "n1")
STRING_INDEX = SOUND.replace(": 1}", ': "1"}')
ROOT = Path(__file__).parents[2]


class Said(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def phalanx(monkeypatch, capfd, tmp_path) -> Callable[..., Said]:
    """Run a verb as `main` does, in an empty folder, without a proxy."""
    monkeypatch.chdir(tmp_path)
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)

    def run(*words: str, stdin: bytes = b"", tf_config: str | None = None) -> Said:
        monkeypatch.setattr(sys, "argv", ["phalanx", *words])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        if tf_config is not None:
            monkeypatch.setenv("TF_CONFIG", tf_config)
        with pytest.raises(SystemExit) as left:
            main()
        out, err = capfd.readouterr()
        return Said(left.value.code, out, err)

    return run


@pytest.fixture
def write(tmp_path) -> Callable[[str, str], Path]:
    def put(name: str, text: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return put


def one_error(said: Said) -> str:
    """Exit code 2, nothing on standard output, one complaint; its first line."""
    assert said.code == 2
    assert said.out == ""
    assert said.err.count("phalanx: ") == 1
    return said.err.splitlines()[0]


# ---- check ----


def test_check_reads_the_variable(phalanx):
    said = phalanx("check", tf_config=SOUND)
    assert said == Said(0, "$TF_CONFIG: fine, worker:1, rank 1 of 2 replicas\n", "")


def test_check_underlines_the_faulty_place(phalanx, write, golden):
    write("node.json", NO_PORT)
    said = phalanx("check", "node.json")
    assert said.code == 1
    golden("tfconfig/check.txt", said.out)


def test_an_unset_variable_is_told_and_fine_and_an_error_where_a_cluster_is_expected(phalanx):  # vector 1
    assert phalanx("check").code == 0
    assert phalanx("check", "--expect-cluster").code == 1


def test_an_empty_variable_is_an_error(phalanx):
    assert phalanx("check", tf_config="").code == 1


def test_check_reads_standard_input_files_and_folders(phalanx, write):
    write("nodes/a.json", SOUND)
    write("nodes/b.json", NO_PORT)
    write("nodes/b.json.bak", "junk")
    write("nodes/.hidden.json", "junk")
    write("one", SOUND)
    said = phalanx("check", "one", "-", "nodes", "--json", stdin=NO_PORT.encode())
    found = json.loads(said.out)["findings"]
    assert [f["path"] for f in found if f["severity"] == "error"] == ["-", "nodes/b.json"]


def test_nodes_of_a_folder_come_in_the_order_of_their_numbers(phalanx, write):
    for number in (10, 9, 1):
        write(f"nodes/worker_{number}.json", NO_PORT)
    found = json.loads(phalanx("check", "nodes", "--json").out)["findings"]
    assert list(dict.fromkeys(f["path"] for f in found)) == [f"nodes/worker_{n}.json" for n in (1, 9, 10)]


def test_json_findings_have_the_promised_keys(phalanx):
    (finding,) = json.loads(phalanx("check", "-", "--json", stdin=NO_PORT.encode()).out)["findings"]
    assert list(finding) == ["id", "severity", "path", "line", "column", "message", "consequence", "fix", "source"]


@pytest.mark.parametrize(("fail_on", "code"), [("error", 0), ("warning", 1), ("info", 1), ("never", 0)])
def test_fail_on_decides_the_exit_code(phalanx, fail_on, code):
    assert phalanx("check", "-", "--fail-on", fail_on, stdin=STRING_INDEX.encode()).code == code


def test_fail_on_never_hides_no_finding(phalanx):
    said = phalanx("check", "-", "--fail-on", "never", stdin=NO_PORT.encode())
    assert said.code == 0
    assert "n1" in said.out


def test_github_commands_and_sarif(phalanx, write):
    write("node.json", NO_PORT)
    assert phalanx("check", "node.json", "--format", "github").out.startswith("::error file=node.json,line=1,col=")
    log = json.loads(phalanx("check", "node.json", "--format", "sarif").out)
    assert log["runs"][0]["results"][0]["ruleId"] == "address-no-port"
    assert len(log["runs"][0]["tool"]["driver"]["rules"]) > 50


def test_strategy_hosts_and_version_reach_the_rules(phalanx):
    cluster = {"chief": ["a:2222"], "worker": ["b:2222"], "ps": ["c:2222"]}
    with_ps = json.dumps({"cluster": cluster, "task": {"type": "chief", "index": 0}}).encode()
    assert phalanx("check", "-", stdin=with_ps).code == 0
    assert phalanx("check", "-", "--strategy", "mwms", stdin=with_ps).code == 1
    estimator = ("check", "-", "--strategy", "estimator", "--tf-version")
    assert phalanx(*estimator, "2.15", stdin=with_ps).code == 0
    assert phalanx(*estimator, "2.16", stdin=with_ps).code == 1
    local = SOUND.replace("n1", "localhost").replace("n2:2222", "localhost:2223").encode()
    assert phalanx("check", "-", stdin=local).code == 0
    assert phalanx("check", "-", "--hosts", "2", stdin=local).code == 1


def test_a_proxy_beside_the_variable_is_an_error(phalanx, monkeypatch):  # R46
    monkeypatch.setenv("http_proxy", "http://proxy:3128")
    said = phalanx("check", tf_config=SOUND)
    assert said.code == 1
    assert "[proxy]" in said.out
    assert phalanx("check", "-", stdin=SOUND.encode()).code == 0


def test_size_is_an_error_for_the_variable_only(phalanx, write):  # R32, vector 22
    cluster = {"worker": [f"worker-{i:05}.train.svc.example.com:2222" for i in range(4_000)]}
    text = json.dumps({"cluster": cluster, "task": {"type": "worker", "index": 0}})
    write("big.json", text)
    assert phalanx("check", "big.json").code == 0
    assert phalanx("check", tf_config=text).code == 1


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("nope.json", None, "cannot read nope.json: No such file or directory"),
        ("junk", b"\x89PNG\r\n\x1a\n\x00", "junk is not text: byte 1 is no UTF-8"),
        ("zero", b'{"a": "\x00"}', "zero is not text: byte 8 is zero"),
        ("wide", '{"a": 1}'.encode("utf-16"), "wide is written in UTF-16"),
        ("train.ipynb", b"{}", "train.ipynb is a notebook"),
        ("-x", None, "unknown option -x"),
        ('{"cluster": {}}', None, "to hand over the text itself, pipe it into `-`"),
    ],
)
def test_what_cannot_be_read_at_all_is_one_clear_error(phalanx, tmp_path, name, content, says):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    assert says in one_error(phalanx("check", name))


def test_a_folder_of_scripts_is_told_what_a_folder_is_read_as(phalanx, tmp_path):
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "m.h5").write_bytes(b"\x89HDF\r\n")
    said = phalanx("check", "c")
    assert (said.code, said.out) == (2, "")
    assert "c/m.h5 is not text" in said.err
    assert "a folder is read as TF_CONFIG files" in said.err
    (tmp_path / "c" / "train.py").touch()
    said = phalanx("check", "c")
    assert "c holds scripts, and a folder is read as TF_CONFIG files" in said.err
    assert "phalanx check c/train.py" in said.err


def test_an_empty_folder_is_one_clear_error(phalanx, tmp_path):
    (tmp_path / "nodes").mkdir()
    assert "nodes holds no file" in one_error(phalanx("check", "nodes"))


def test_standard_input_can_be_given_once(phalanx):
    assert "given twice" in one_error(phalanx("check", "-", "-"))


def test_a_strategy_that_is_none_is_one_clear_error(phalanx):
    assert "--strategy" in one_error(phalanx("check", "--strategy", "horovod"))


def test_a_version_that_is_none_is_one_clear_error(phalanx):
    assert "no version" in one_error(phalanx("check", "-", "--tf-version", "new", stdin=SOUND.encode()))


def test_a_secret_in_the_line_is_not_shown(phalanx):  # vector 30
    text = SOUND[:-1] + ', "api_key": "abcdef123456"}'
    said = phalanx("check", "-", stdin=text.replace("n1:2222", "n1").encode())
    assert said.code == 1
    assert "abcdef123456" not in said.out


# ---- explain ----


def test_explain_draws_and_tells(phalanx, golden):
    said = phalanx("explain", tf_config=SOUND)
    assert said.code == 0
    golden("tfconfig/explain-verb.txt", said.out)


def test_explain_of_several_names_each(phalanx, write):
    write("a.json", SOUND)
    write("b.json", SOUND)
    said = phalanx("explain", "a.json", "b.json", "--ascii")
    assert said.out.isascii()
    assert [line for line in said.out.splitlines() if line.startswith("==")] == ["== a.json ==", "== b.json =="]


def test_explain_as_data(phalanx):
    (told,) = json.loads(phalanx("explain", "-", "--json", stdin=SOUND.encode()).out)["configs"]
    assert (told["path"], told["task"], told["replicas"]) == ("-", "worker:1", ["worker:0", "worker:1"])


def test_explain_of_what_means_nothing_says_why(phalanx):
    said = phalanx("explain", "-", stdin=b'{"cluster": 3}')
    assert said.code == 1
    assert "cluster-shape" in said.err


# ---- fix ----


def test_fix_prints_the_corrected_text_and_says_what_it_changed(phalanx):
    said = phalanx("fix", "-", stdin=STRING_INDEX.replace('"', "'").encode())
    assert said.code == 0
    assert json.loads(said.out) == json.loads(SOUND)
    assert "quotes" in said.err


def test_fix_tells_what_is_left(phalanx):
    said = phalanx("fix", "-", stdin=NO_PORT.encode())
    assert said.code == 1
    assert "address-no-port" in said.err


def test_fix_of_a_sound_text_changes_nothing(phalanx):
    said = phalanx("fix", "-", stdin=SOUND.encode())
    assert (said.code, json.loads(said.out)) == (0, json.loads(SOUND))
    assert "nothing to change" in said.err


def test_fix_in_place_keeps_the_original_beside(phalanx, write, tmp_path):
    path = write("nodes/a.json", STRING_INDEX)
    path.chmod(0o640)
    assert phalanx("fix", "nodes", "--in-place").code == 0
    assert json.loads(path.read_text()) == json.loads(SOUND)
    assert path.stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "nodes/a.json.bak").read_text() == STRING_INDEX
    assert sorted(p.name for p in path.parent.iterdir()) == ["a.json", "a.json.bak"]


def test_fix_in_place_refuses_to_lose_an_older_original_and_changes_nothing(phalanx, write):
    first, second = write("a.json", STRING_INDEX), write("b.json", STRING_INDEX)
    write("b.json.bak", "older")
    assert "b.json.bak exists already" in one_error(phalanx("fix", "a.json", "b.json", "--in-place"))
    assert first.read_text() == second.read_text() == STRING_INDEX


def test_fix_in_place_leaves_sound_files_alone(phalanx, write, tmp_path):
    write("a.json", SOUND)
    assert phalanx("fix", "a.json", "--in-place").code == 0
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]


def test_fix_in_place_follows_links(phalanx, write, tmp_path):
    real = write("real/a.json", STRING_INDEX)
    (tmp_path / "link.json").symlink_to(real)
    assert phalanx("fix", "link.json", "--in-place").code == 0
    assert (tmp_path / "link.json").is_symlink()
    assert json.loads(real.read_text()) == json.loads(SOUND)


def test_fix_in_place_of_a_folder_nobody_may_write_is_one_clear_error(phalanx, write, monkeypatch):
    path = write("a.json", STRING_INDEX)

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "link", refuse)
    monkeypatch.setattr(Path, "open", refuse)
    monkeypatch.setattr("phalanx.cli.sources._file", lambda _: STRING_INDEX)
    said = phalanx("fix", "a.json", "--in-place")
    monkeypatch.undo()
    assert "Permission denied" in said.err
    assert said.code == 2
    assert path.read_text() == STRING_INDEX


def test_a_write_that_fails_half_way_leaves_the_file_as_it_was(phalanx, write, tmp_path, monkeypatch):
    path = write("a.json", STRING_INDEX)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert "No space left on device; it is as it was" in one_error(phalanx("fix", "a.json", "--in-place"))
    assert path.read_text() == STRING_INDEX
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]


def test_fix_in_place_takes_the_lines_of_a_stream_for_no_files(phalanx, write):
    other = write("worker:0", STRING_INDEX)
    write("all.tsv", f"worker:0\t{STRING_INDEX}\n")
    assert "worker:0 is no file" in one_error(phalanx("fix", "all.tsv", "--in-place"))
    assert other.read_text() == STRING_INDEX


@pytest.mark.parametrize("words", [("fix", "-", "--in-place"), ("fix", "a.json", "b.json"), ("fix",)])
def test_fix_refuses_what_it_cannot_do(phalanx, write, words):
    write("a.json", SOUND)
    write("b.json", SOUND)
    one_error(phalanx(*words, stdin=SOUND.encode()))


# ---- agree ----


def test_agree_compares_a_folder(phalanx, write):
    for number in (0, 1):
        write(f"nodes/{number}.json", SOUND.replace(": 1}", f": {number}}}"))
    assert phalanx("agree", "nodes") == Said(0, "2 TF_CONFIGs agree\n", "")


def test_agree_names_the_node_that_differs(phalanx, write, golden):  # R62
    for number in (0, 1, 2):
        text = {"cluster": {"worker": ["a:1024", "b:1024", "c:1024"]}, "task": {"type": "worker", "index": number}}
        if number == 1:
            text["cluster"]["worker"].reverse()
        write(f"n{number}.json", json.dumps(text))
    said = phalanx("agree", "n0.json", "n1.json", "n2.json")
    assert said.code == 1
    golden("tfconfig/agree.txt", said.out)


@pytest.mark.parametrize("words", [(), ("a.json", "a.json")])
def test_agree_needs_nodes_that_differ(phalanx, write, words):
    write("a.json", SOUND)
    one_error(phalanx("agree", *words))


# ---- generate ----


def test_generate_writes_one_task(phalanx):
    said = phalanx("generate", "--workers", "3", "--hosts", "a,b,c", "--port", "4000", "--task", "worker:1")
    assert json.loads(said.out) == {
        "cluster": {"worker": ["a:4000", "b:4000", "c:4000"]},
        "task": {"type": "worker", "index": 1},
    }


def test_generate_finds_the_task_of_a_host(phalanx):  # R29
    said = phalanx("generate", "--workers", "2", "--hosts", "n1.example.com,n2.example.com", "--host", "n2")
    assert json.loads(said.out)["task"] == {"type": "worker", "index": 1}


def test_ps_implies_one_chief(phalanx):
    made = ("generate", "--workers", "1", "--ps", "1", "--hosts", "a,b,c", "--task", "worker:0")
    assert set(json.loads(phalanx(*made).out)["cluster"]) == {"chief", "worker", "ps"}
    assert "no chief" in one_error(phalanx(*made, "--no-chief"))


def test_generate_all_and_agree_are_made_for_each_other(phalanx):
    made = phalanx("generate", "--workers", "3", "--chief", "--evaluator", "--hosts", "a,b,c,d,e", "--all")
    assert [line.split("\t")[0] for line in made.out.splitlines()] == [
        "chief:0",
        "worker:0",
        "worker:1",
        "worker:2",
        "evaluator:0",
    ]
    assert phalanx("agree", "-", stdin=made.out.encode()).code == 0
    assert phalanx("check", "-", stdin=made.out.encode()).code == 0
    twice = made.out.replace("\nworker:1\t", "\nworker:0\t").replace('"index":1', '"index":0')
    said = phalanx("agree", "-", stdin=twice.encode())
    assert "worker:0 is claimed by 2 nodes: worker:0, worker:0 (line 3)" in said.out


def test_generate_out_writes_a_file_each_and_never_over_one(phalanx, tmp_path):
    words = ("generate", "--workers", "2", "--hosts", "a,b", "--out", "nodes")
    assert phalanx(*words) == Said(0, "", "2 files written into nodes\n")
    files = sorted((tmp_path / "nodes").iterdir())
    assert [file.name for file in files] == ["worker_0.json", "worker_1.json"]
    assert phalanx("agree", "nodes").code == 0
    files[0].unlink()
    files[1].write_text("mine")
    assert "worker_1.json exists already" in one_error(phalanx(*words))
    assert [file.read_text() for file in (tmp_path / "nodes").iterdir()] == ["mine"]


@pytest.mark.parametrize("text", ['{"worker": ["a:2222", "b:2222"]}', SOUND])
def test_generate_takes_a_cluster_from_a_file(phalanx, write, text):
    write("cluster.json", text)
    said = phalanx("generate", "cluster.json", "--task", "worker:0")
    assert json.loads(said.out)["task"] == {"type": "worker", "index": 0}
    assert len(json.loads(said.out)["cluster"]["worker"]) == 2


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "how large?"),
        (("--workers", "2", "--hosts", "a,b"), "whose of 2?"),
        (("--workers", "2", "--hosts", "a,b", "--task", "worker:2"), "the cluster has no worker:2"),
        (("--workers", "2", "--hosts", "a,b", "--task", "worker"), "is no task; write TYPE:INDEX"),
        (("--workers", "2", "--hosts", "a,b", "--host", "c"), "no task is on c"),
        (("--workers", "2", "--hosts", "a,b", "--task", "worker:0", "--all"), "exclude each other"),
        (("--workers", "2", "--hosts", "a,localhost", "--all"), "TensorFlow would not accept it"),
        (("-", "--workers", "2", "--all"), "the cluster is in - already"),
        (("-", "--all"), "holds no cluster"),
        (("nope.json", "--all"), "cannot read nope.json"),
    ],
)
def test_generate_refuses_with_one_clear_error(phalanx, words, says):
    assert says in one_error(phalanx("generate", *words, stdin=b"{}"))


@pytest.mark.parametrize(
    ("cluster", "says"),
    [
        ('{"worker": ["a", "b:2222"]}', "has no port"),
        ('{"master": ["a:2222"], "worker": ["b:2222"]}', "master"),
        ('{"worker": ["a:2222", "a:2222"]}', "a:2222"),
    ],
)
def test_generate_never_writes_what_check_refuses(phalanx, cluster, says):
    assert says in one_error(phalanx("generate", "-", "--all", stdin=cluster.encode()))


# ---- as processes ----


@pytest.fixture
def command(tmp_path):
    """`python -m phalanx …` in its own process, with the source tree on its path."""

    def run(*words: str, **more: object) -> subprocess.CompletedProcess[str]:
        environ = os.environ | {"PYTHONPATH": str(ROOT / "src"), "LC_ALL": "C", "PYTHONIOENCODING": "ascii"}
        argv = [sys.executable, "-c", "from phalanx.cli.main import main; main()", *words]
        return subprocess.run(argv, capture_output=True, text=True, cwd=tmp_path, env=environ, check=False, **more)

    return run


@pytest.mark.real
def test_a_pipeline_of_processes(command):
    made = command("generate", "--workers", "2", "--hosts", "a,b", "--all")
    agreed = command("agree", "-", input=made.stdout)
    assert (agreed.returncode, agreed.stdout, agreed.stderr) == (0, "2 TF_CONFIGs agree\n", "")


@pytest.mark.real
def test_a_terminal_that_knows_no_box_characters_gets_ascii(command):
    said = command("explain", "-", input=SOUND)
    assert said.returncode == 0
    assert said.stdout.isascii()
    assert "+- n1 -" in said.stdout


@pytest.mark.real
def test_ten_thousand_tasks_are_checked_and_all_generated_as_a_stream(command, tmp_path):
    cluster = {"worker": [f"n{i}:2222" for i in range(10_000)]}
    (tmp_path / "big.json").write_text(json.dumps({"cluster": cluster, "task": {"type": "worker", "index": 9}}))
    began = time.monotonic()
    assert command("check", "big.json").returncode == 0
    assert time.monotonic() - began < 5
    argv = [sys.executable, "-c", "from phalanx.cli.main import main; main()", "generate", "big.json", "--all"]
    environ = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    with subprocess.Popen(argv, cwd=tmp_path, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as streaming:
        line = streaming.stdout.readline()
        streaming.stdout.close()
        told = streaming.stderr.read()
        code = streaming.wait()
    assert line.startswith(b"worker:0\t{")
    assert (code, told) == (0, b"")


def test_hosts_may_be_written_as_slurm_does(phalanx):
    said = phalanx("generate", "--workers", "3", "--hosts", "n[08-10]", "--task", "worker:2")
    assert said.code == 0
    assert json.loads(said.out)["cluster"]["worker"] == ["n08:2222", "n09:2222", "n10:2222"]
    assert "counts downwards" in one_error(phalanx("generate", "--workers", "3", "--hosts", "n[3-1]", "--all"))
    v6 = phalanx("generate", "--workers", "2", "--hosts", "[fd00::1],[fd00:0:0:0:0:0:0:2]", "--task", "worker:0")
    assert "[fd00:0:0:0:0:0:0:2]:2222" in v6.out
