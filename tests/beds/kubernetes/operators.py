"""Other people's operators on the bed, to stand beside or to run under: Kueue, and Kubeflow's training-operator.

Each is one program by `go install`, in an image of its own, with the manifests of its own module. Built once into the
bed's cache, on first use.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from beds.kubernetes import images, programs
from beds.kubernetes.cluster import until

if TYPE_CHECKING:
    from beds.kubernetes.cluster import Cluster


@dataclass(frozen=True, kw_only=True)
class Operator:
    name: str
    module: str
    version: str
    #: Of the module: the command, and the folder that `kubectl apply -k` takes.
    command: str
    manifests: str
    namespace: str
    deployment: str
    #: What its manifests say of its image and of how to get it.
    image: str

    @property
    def folder(self) -> Path:
        """Where its image and manifests are kept."""
        return programs.CACHE / f"{self.name}-{self.version}"

    @property
    def whole(self) -> bool:
        return (self.folder / "whole").exists()


TRAINING_OPERATOR: Final = Operator(
    name="training-operator",
    module="github.com/kubeflow/training-operator",
    version="v1.8.1",
    command="cmd/training-operator.v1",
    manifests="manifests/overlays/standalone",
    namespace="kubeflow",
    deployment="training-operator",
    image="localhost/training-operator:1",
)
KUEUE: Final = Operator(
    name="kueue",
    module="sigs.k8s.io/kueue",
    version="v0.17.0",
    command="cmd/kueue",
    manifests="config/default",
    namespace="kueue-system",
    deployment="kueue-controller-manager",
    image="localhost/kueue:1",
)
ALL: Final = (TRAINING_OPERATOR, KUEUE)


def build(operator: Operator) -> None:
    """Build it where it is not there yet; whoever else is building it is waited for."""
    programs.CACHE.mkdir(parents=True, exist_ok=True)
    with (programs.CACHE / f"{operator.name}.lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if operator.whole:
            return
        shutil.rmtree(operator.folder, ignore_errors=True)
        operator.folder.mkdir()
        with tempfile.TemporaryDirectory(dir=operator.folder) as work:
            root = Path(work, "root")
            root.mkdir()
            env = os.environ | {"CGO_ENABLED": "0", "GOFLAGS": "-trimpath -ldflags=-s", "GOBIN": work}
            package = f"{operator.module}/{operator.command}@{operator.version}"
            subprocess.run(["go", "install", package], env=env, check=True, stdout=sys.stderr)
            shutil.move(Path(work, Path(operator.command).name), root / "manager")
            images.pack(operator.image, root, operator.folder / "image.tar", entrypoint="/manager")
        shutil.copytree(_sources(operator), operator.folder / "manifests", copy_function=shutil.copyfile)
        (operator.folder / "whole").touch()


def _sources(operator: Operator) -> Path:
    """Its manifests, in Go's store of modules: overlays refer to folders beside them."""
    asked = ["go", "env", "GOMODCACHE"]
    store = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    return Path(store, f"{operator.module}@{operator.version}", operator.manifests.partition("/")[0])


def install(operator: Operator, cluster: Cluster) -> None:
    """Into a running cluster, and wait until it serves."""
    cluster.load(operator.image, operator.folder / "image.tar")
    text = cluster.kubectl("kustomize", str(operator.folder / "manifests" / operator.manifests.partition("/")[2]))
    cluster.kubectl("apply", "--server-side", "-f", "-", given=_adapted(operator, text), timeout=120)
    about = ["-n", operator.namespace, f"deployment/{operator.deployment}"]
    cluster.kubectl("wait", "--for=condition=Available", "--timeout=120s", *about, timeout=150)
    until(lambda: cluster.list("endpointslices", namespace=operator.namespace), f"the addresses of {operator.name}")


def _adapted(operator: Operator, text: str) -> str:
    """Our image under its name, never pulled; no user is named by it, so one that is not root is."""
    text = re.sub(
        r"(?m)^(\s+)(- )?image: .*$", lambda found: f"{found[1]}{found[2] or ''}image: {operator.image}", text
    )
    text = re.sub(r"imagePullPolicy: Always", "imagePullPolicy: IfNotPresent", text)
    return re.sub(r"(?m)^(\s+)runAsNonRoot: true$", r"\1runAsNonRoot: true\n\1runAsUser: 65532", text)


def main() -> int:
    parser = argparse.ArgumentParser(description="Build the operators of the Kubernetes bed.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="which (default: all)")
    given = parser.parse_args()
    for operator in ALL:
        if not given.names or operator.name in given.names:
            build(operator)
            print(operator.folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
