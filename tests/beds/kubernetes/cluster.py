"""A real Kubernetes cluster of this machine's own, and what may happen to one: nodes die, networks part, memory ends.

By hand: `python tests/beds/kubernetes/cluster.py [--nodes 3]` starts one and holds it until its input ends.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from beds.kubernetes import images, keeper, programs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

#: An image that every node has: Python, libstdc++, and the tests' own environment with TensorFlow; `/examples` too.
IMAGE: Final = "phalanx-bed:1"
ROOT: Final = Path(__file__).parents[3]
# Takes what is left of a cgroup's memory, as a leak does; joins the cgroup before it begins.
_EATER: Final = (
    "import sys\nopen(sys.argv[1], 'w').write('0')\nheld = []\nwhile True: held.append(bytearray(1 << 20))\n"
)


class Cluster:
    """One cluster; `with` starts and ends it. Nothing is left of one whose owner was killed."""

    def __init__(self, *, nodes: int = 3, zones: int = 3, real: bool = True) -> None:
        """`real`: kubelets with containerd run the pods. Else nodes are records, and no pod ever runs."""
        self.nodes = [f"node-{number}" for number in range(1, nodes + 1)]
        self.real = real
        self._zones = zones
        self._programs = programs.programs()
        self.folder = Path(tempfile.mkdtemp(prefix="phalanx-bed-"))
        #: Whatever a test puts here is seen, read-only, at /share in every container.
        self.share = self.folder / "share"
        self._keeper: subprocess.Popen[str] | None = None
        self._hurt: dict[str, str] = {}

    # -- its life

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start it, and load IMAGE where there are kubelets; about 10 s, and 10 s for the image."""
        self.share.mkdir()
        self.share.chmod(0o755)  # pods run as nobody in particular
        records = programs.CACHE / "clusters"
        records.mkdir(parents=True, exist_ok=True)
        _sweep(records, self._environment)
        arguments = [str(len(self.nodes)), str(self._zones), "real" if self.real else "records"]
        owner = [str(self.folder), str(os.getpid()), str(records / self.folder.name), "--"]
        self._keeper = subprocess.Popen(
            [sys.executable, "-S", "-E", keeper.__file__, *owner, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=self._environment,
            start_new_session=True,
        )
        assert self._keeper.stdout is not None
        said = self._keeper.stdout.read()
        if said != "ready\n":
            self.stop()
            raise RuntimeError(f"the cluster did not start: {said}")
        if self.real:
            self.load(IMAGE, self._programs.base)

    def stop(self) -> None:
        """May be called twice."""
        if self._keeper is not None:
            self._keeper.communicate()
            self._keeper = None
        shutil.rmtree(self.folder, ignore_errors=True)

    def left(self) -> str:
        """The cgroups and processes of it that are there: nothing, after `stop`."""
        return self._script("left")

    @property
    def log(self) -> Path:
        """Where each part of the cluster writes its log, while it lives."""
        return self.folder / "log"

    @property
    def _environment(self) -> dict[str, str]:
        mounts = {
            Path(sys.prefix).resolve(): "/opt/venv",
            ROOT / "examples": "/examples",
            self.share: "/share",
        }
        return os.environ | {
            "BED_BIN": str(self._programs.bin),
            "BED_TOOLS": str(self._programs.tools),
            "BED_PAUSE": str(self._programs.pause),
            "BED_MOUNTS": "".join(f"{folder} {place}\n" for folder, place in mounts.items()),
        }

    def _script(self, command: str, *words: str) -> str:
        argv = [keeper.SCRIPT, command, self.folder, *words]
        done = subprocess.run(argv, env=self._environment, capture_output=True, text=True, timeout=180, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"cluster.sh {command} {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout

    # -- asking it

    @property
    def kubeconfig(self) -> Path:
        """For KUBECONFIG: an administrator's."""
        return self.folder / "run" / "kubeconfig"

    def kubectl(self, *words: str, given: str | None = None, check: bool = True, timeout: float = 60) -> str:
        """What kubectl prints; a RuntimeError with what it complains of, if it fails and `check`."""
        argv = [self._programs.bin / "kubectl", "--kubeconfig", self.kubeconfig, *words]
        done = subprocess.run(argv, input=given, capture_output=True, text=True, timeout=timeout, check=False)
        if check and done.returncode != 0:
            raise RuntimeError(f"kubectl {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout if check else done.stdout + done.stderr

    def apply(self, *objects: Mapping[str, Any], namespace: str = "default") -> None:
        """Server-side, as phalanx itself does."""
        given = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
        self.kubectl("apply", "--server-side", "-n", namespace, "-f", "-", given=given)

    def get(self, kind: str, name: str, *, namespace: str = "default") -> dict[str, Any]:
        """One object; an empty dict when there is none."""
        said = self.kubectl("get", kind, name, "-n", namespace, "-o", "json", "--ignore-not-found")
        return json.loads(said) if said else {}

    def list(self, kind: str, *, namespace: str = "default", labels: str = "") -> list[dict[str, Any]]:
        words = ["-l", labels] if labels else []
        return list(json.loads(self.kubectl("get", kind, "-n", namespace, "-o", "json", *words))["items"])

    def logs(self, pod: str, *words: str, namespace: str = "default") -> str:
        return self.kubectl("logs", pod, "-n", namespace, *words)

    @contextlib.contextmanager
    def namespace(self, *, restricted: bool = True) -> Iterator[str]:
        """A namespace of its own, with its default account; `restricted` refuses what that profile does not allow."""
        name = f"t-{secrets.token_hex(3)}"
        labels = {"pod-security.kubernetes.io/enforce": "restricted"} if restricted else {}
        self.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
        until(lambda: self.get("serviceaccount", "default", namespace=name), "the default service account")
        try:
            yield name
        finally:
            self.heal()
            self.kubectl("delete", "jobs,pods", "--all", "-n", name, "--grace-period=0", "--force", "--wait=false")
            self.kubectl("delete", "namespace", name, "--wait=false")

    def load(self, name: str, archive: Path) -> None:
        """Give every node an image from an OCI archive (`images.pack`)."""
        self._script("load", images.full_name(name), str(archive))

    # -- what may happen to it

    def kill_node(self, node: str) -> None:
        """As if its power had gone."""
        self._hurt[node] = "node-start"
        self._script("node-kill", node)

    def start_node(self, node: str) -> None:
        """With its old disk."""
        self._hurt.pop(node, None)
        self._script("node-start", node)

    def cut(self, node: str) -> None:
        """Off the network, with all that runs on it; it runs on."""
        self._hurt[node] = "net-heal"
        self._script("net-cut", node)

    def mend(self, node: str) -> None:
        """Back on the network."""
        self._hurt.pop(node, None)
        self._script("net-heal", node)

    def stop_api(self) -> None:
        """Kill the API server."""
        self._hurt["api"] = "api-start"
        self._script("api-stop")

    def start_api(self) -> None:
        """Bring it back, and wait for it."""
        self._hurt.pop("api", None)
        self._script("api-start")
        until(lambda: self.kubectl("get", "--raw", "/readyz", check=False) == "ok", "the API server")

    def heal(self) -> None:
        """Undo what happened to it, and wait until every node is ready."""
        if not self._hurt:
            return
        if "api" in self._hurt:
            self.start_api()
        for node, cure in list(self._hurt.items()):
            self._script(cure, node)
        self._hurt.clear()
        until(self._all_ready, "all nodes", seconds=120)

    def _all_ready(self) -> bool:
        return all(
            not node["spec"].get("taints")
            and any(told["type"] == "Ready" and told["status"] == "True" for told in node["status"]["conditions"])
            for node in self.list("nodes")
        )

    def kill_container(self, pod: str, *, namespace: str, container: str = "task") -> None:
        """Kill every process of it."""
        for pid in self._processes(pod, namespace, container)[0]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def exhaust(self, pod: str, *, namespace: str, container: str = "task") -> None:
        """Let it run out of memory, and take every process of it: OOMKilled. It must have a limit."""
        pids, group = self._processes(pod, namespace, container)
        argv = [sys.executable, "-S", "-E", "-c", _EATER, str(Path(group, "cgroup.procs"))]
        subprocess.run(argv, stderr=subprocess.DEVNULL, timeout=60, check=False)
        time.sleep(0.3)  # the runtime learns of the memory and of the deaths by different roads
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _processes(self, pod: str, namespace: str, container: str) -> tuple[Sequence[int], str]:
        for told in self.get("pod", pod, namespace=namespace)["status"].get("containerStatuses", []):
            if told["name"] == container and "running" in told["state"]:
                *pids, group = self._script("processes", told["containerID"].partition("://")[2]).split()
                return [int(pid) for pid in pids], group
        raise RuntimeError(f"container {container} of pod {pod} does not run")


def _sweep(records: Path, environment: Mapping[str, str]) -> None:
    """End the clusters whose keeper is gone as well."""
    for record in records.iterdir():
        with contextlib.suppress(OSError), record.open("r+", encoding="utf-8") as held:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            folder = held.read().strip()
            if folder:
                subprocess.run([keeper.SCRIPT, "stop", folder], env=dict(environment), check=True)
                shutil.rmtree(folder, ignore_errors=True)
                record.unlink()


def until(ask: Callable[[], Any], what: str, *, seconds: float = 60, every: float = 0.2) -> Any:
    """The first answer that is true; a TimeoutError that names `what`."""
    end = time.monotonic() + seconds
    while True:
        answer = ask()
        if answer:
            return answer
        if time.monotonic() > end:
            raise TimeoutError(f"waited {seconds:g} s for {what}; the last answer was {answer!r}")
        time.sleep(every)


def main() -> int:
    parser = argparse.ArgumentParser(description="Start a Kubernetes cluster and hold it until standard input ends.")
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--zones", type=int, default=3)
    parser.add_argument("--records", action="store_true", help="nodes that only the API server knows")
    given = parser.parse_args()
    reason = programs.absent()
    if reason:
        print(reason, file=sys.stderr)
        return 1
    with Cluster(nodes=given.nodes, zones=given.zones, real=not given.records) as cluster:
        print(f"export KUBECONFIG={cluster.kubeconfig} PATH={programs.programs().bin}:$PATH", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            sys.stdin.read()
    return 0


if __name__ == "__main__":
    sys.exit(main())
