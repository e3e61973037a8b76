"""What a job should leave behind, with real processes."""

from __future__ import annotations

import json
import os

import pytest

pytestmark = pytest.mark.real

SAVES = """
from pathlib import Path
Path("model.keras").write_bytes(b"x" * 2000)
Path("ckpt").mkdir(exist_ok=True)
for number in range(3):
    Path("ckpt", f"{number}.index").write_text("x")
"""


def test_the_report_tells_what_is_there_what_is_missing_and_what_is_of_another_day(here):
    here.script(SAVES)
    here.script("old", "old.txt")
    os.utime(here.folder / "old.txt", (1e9, 1e9))
    job = {
        "command": ["train.py"],
        "checkpoint": "ckpt",
        "outputs": ["model.keras", "{checkpoint}/*.index", "old.txt", "saved_model", "gs://bucket/model"],
    }
    path = here.script(json.dumps(job), "job.json")
    done = here.call("run", path)
    assert done.returncode == 0, done.stdout + done.stderr
    outputs = {output["path"]: output for output in here.report()["outputs"]}
    assert [(out["there"], out["fresh"], out["count"]) for out in outputs.values()] == [
        (True, True, 1),
        (True, True, 3),
        (True, False, 1),
        (False, None, 0),
        (None, None, 0),
    ]
    assert outputs["model.keras"]["bytes"] == 2000
    for line in (
        "warning: worker:0 has ended well and left no saved_model",
        "warning: old.txt is older than this run",
        "output model.keras: 2.0 kB, written ",
        "3 of them, 3 B, written ",
        "output gs://bucket/model was not looked for",
        "next: phalanx logs ",
    ):
        assert line in done.stdout
    (here.folder / "model.keras").unlink()
    again = here.call("report", "--json")
    assert json.loads(again.stdout)["outputs"][0]["there"], "as it was at the end of the run"


def test_a_role_of_ones_own_serves_at_the_address_that_all_are_told_and_comes_back_there(here):
    """R96, with a server that knows nothing of gRPC."""
    here.script(
        """
import json, os, signal, sys, threading, time, urllib.request
from pathlib import Path
[at] = json.loads(os.environ["PHALANX_ADDRESSES"])["files"]
assert sys.argv[1] == at and "TF_CONFIG" not in os.environ
def ask():
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            return urllib.request.urlopen(f"http://{at}/pid", timeout=5).read().decode()
        except OSError:
            time.sleep(0.1)
    raise SystemExit("nobody answers")
first = int(ask())
os.kill(first, signal.SIGKILL)
while int(ask()) == first:
    time.sleep(0.1)
print("served by two")
"""
    )
    here.script(
        """
import http.server, os, sys
assert os.environ["PHALANX_TASK"] == "files:0"
class Files(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(str(os.getpid()).encode())
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Files).serve_forever()
""",
        "files.py",
    )
    job = {
        "command": ["train.py", "{files}"],
        "roles": {"worker": {}, "files": {"command": ["files.py", "{port}"], "port": "on"}},
    }
    done = here.call("run", here.script(json.dumps(job), "job.json"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "served by two" in here.said("worker:0")
    [restart] = here.events("restart-ordered")
    assert restart["tasks"] == ["files:0"]
    states = {task["task"]: task["state"] for task in here.report()["tasks"]}
    assert states == {"worker:0": "succeeded", "files:0": "ended"}
    here.gone(within=5)
