"""What a pod's mounts and variables say, read once and checked as a whole."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from phalanx.errors import InputError
from phalanx.names import join_host_port
from phalanx.plan.outline import Outline
from phalanx.plan.pods import ANEW, PORT, one_task_a_host
from phalanx.plan.wire import WireError, from_wire
from phalanx.protocol.signing import RunKey

#: Of the container's variables those are ours that begin so; the others are the tasks'.
OURS = "PHALANX_POD_"


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Pod:
    """This pod and its run. Names are as the cluster's resolver knows them, and asked anew each time."""

    run: str
    role: str
    index: int
    #: Its number as a host, and the pod's own name, which no other pod ever has.
    host: int
    name: str
    #: The name that a pod which replaces it will have as well, and the IP address that only this one has.
    address: str
    ip: str
    outline: Outline
    key: str
    #: Where the lead is to be, at the beginning, and who may lead next.
    lead: str
    line: tuple[str, ...]
    port: int
    folder: Path
    shared: bool
    #: How many pods there were with this number.
    replaces: int
    grace: float
    environ: Mapping[str, str]
    #: Values that no log may have.
    secrets: tuple[str, ...]
    imports: Mapping[str, tuple[str, ...]]
    echo: bool

    @property
    def reached(self) -> str:
        """Where others find what listens on our port here: in this very pod, not in one that has replaced it."""
        return join_host_port(self.ip, self.port)

    @property
    def is_first(self) -> bool:
        """Whether the lead is to be here, at the beginning."""
        return self.address == self.lead

    @property
    def may_lead(self) -> bool:
        """Whether others would look for a lead here."""
        return self.is_first or self.address in self.line

    @property
    def epoch(self) -> int:
        """Of the lead that this pod would start: above all that agents of an earlier one can have met."""
        return 1 + ANEW * self.replaces

    def named(self, role: str, index: int) -> str:
        """The name of a pod of this run."""
        return pod_name(self.run, role, index)


def pod_name(run: str, role: str, index: int) -> str:
    """What the headless Service makes of it, without namespace and domain: the resolver's search path adds these."""
    return f"{run}-{role}-{index}.{run}"


def read_pod(root: Path, environ: Mapping[str, str]) -> Pod:
    """`root` holds what is mounted under /phalanx. Raises InputError naming everything that is missing or wrong."""
    wrong: list[str] = []

    def read(path: str, made: Callable[[str], Any]) -> Any:
        try:
            return made((root / path).read_text(encoding="utf-8"))
        except OSError as error:
            wrong.append(f"{root / path}: {error.strerror}")
        except (ValueError, WireError) as error:
            wrong.append(f"{root / path}: {error}")
        return None

    about = read("run/pod.json", _about)
    outline = read("run/outline.json", lambda text: one_task_a_host(from_wire(Outline, json.loads(text))))
    key = read("key/key", _key)
    role = environ.get(f"{OURS}ROLE", "")
    index = environ.get(f"{OURS}INDEX") or environ.get("JOB_COMPLETION_INDEX", "")
    wrong += [f"the variable {OURS}ROLE"] if not role else []
    wrong += [f"the variable {OURS}INDEX"] if not index.isdecimal() else []
    numbers = {kind: range(first, first + most) for kind, first, most in about["roles"]} if about else {}
    first = numbers[role].start if role in numbers else None
    if about and role and first is None:
        wrong.append(f"{root / 'run/pod.json'}: no role {role!r}")
    elif first is not None and index.isdecimal() and int(index) >= len(numbers[role]):
        wrong.append(f"{root / 'run/pod.json'}: no pod {index} of {role}, which has {len(numbers[role])}")
    if wrong or first is None:
        raise InputError(
            f"this pod lacks what its run needs: {'; '.join(wrong)}",
            hint="its manifests are not as `phalanx render` writes them: render them anew, or leave these parts alone",
        )
    run = about["run"]
    address = environ.get(f"{OURS}ADDRESS") or pod_name(run, role, int(index))
    own = {name: value for name, value in environ.items() if not name.startswith(OURS)}
    return Pod(
        run=run,
        role=role,
        index=int(index),
        host=first + int(index),
        name=environ.get(f"{OURS}NAME") or f"{run}-{role}-{index}",
        address=address,
        ip=environ.get(f"{OURS}IP") or address,
        outline=outline,
        key=key,
        lead=about["lead"],
        line=tuple(about.get("line", ())),
        port=about.get("port", PORT),
        folder=root / "runs" / run,
        shared=about.get("shared", False),
        replaces=sum(_count(environ.get(f"{OURS}{why}", "")) for why in ("FAILED", "IGNORED", "REPLACES")),
        grace=float(about.get("grace", 30)),
        environ=own,
        secrets=tuple(filter(None, (_value(name, path, own) for name, path in about.get("secrets", {}).items()))),
        imports={kind: tuple(lines) for kind, lines in about.get("imports", {}).items()},
        echo=about.get("echo", True) is True,
    )


def _about(text: str) -> dict[str, Any]:
    about: dict[str, Any] = json.loads(text)
    for name, kind in (("run", str), ("lead", str), ("roles", list)):
        if not isinstance(about.get(name), kind):
            message = f"{name!r} is missing"
            raise ValueError(message)  # noqa: TRY004 - the file is wrong, not our code
    return about


def _key(text: str) -> str:
    if not text.strip():
        message = "it is empty"
        raise ValueError(message)
    return RunKey.of(text).hex()


def _count(text: str) -> int:
    return int(text) if text.isdecimal() else 0


def _value(name: str, path: str | None, environ: Mapping[str, str]) -> str:
    """What no log may have: a variable's value, or the text of a file."""
    if path is None:
        return environ.get(name, "")
    try:
        return Path(path).read_text(encoding="utf-8", errors="surrogateescape").strip()
    except OSError:
        return ""
