"""Hypothesis strategies for outlines and the hosts they may be bound to."""

from __future__ import annotations

import string

import hypothesis.strategies as st
from hypothesis import settings

from phalanx.names import KNOWN_TYPES
from phalanx.plan.host import Host
from phalanx.plan.outline import Failure, Interpreter, Outline, Role, Secret, Strategy
from phalanx.plan.policies import Grace, Health, Policies, Restart

#: Each example takes milliseconds; on a busy machine any one of them may take longer.
unhurried = settings(deadline=None)

words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
variables = st.text(string.ascii_uppercase + "_", min_size=1, max_size=10)
extra_types = st.sampled_from(["dispatcher", "tensorboard", "data-server"])
seconds = st.floats(0, 1e6, allow_nan=False)


def a_host(**has) -> Host:
    """One host, n0, with ports enough."""
    about = {"id": 0, "name": "n0", "address": "10.0.0.1", "ports": tuple(range(22000, 22030)), "folder": "/runs/n0"}
    return Host(**{**about, **has})


@st.composite
def roles(draw, kind: str, *, most: int = 6) -> Role:
    return Role(
        type=kind,
        count=1 if kind in ("chief", "evaluator") else draw(st.integers(1, most)),
        command=tuple(draw(st.lists(words, min_size=1, max_size=3))),
        env=draw(st.dictionaries(variables, words, max_size=2)),
        cpus=draw(st.none() | st.integers(1, 64)),
        memory=draw(st.none() | st.integers(0, 1 << 40)),
        in_cluster=kind in KNOWN_TYPES,
        port=kind not in KNOWN_TYPES and draw(st.booleans()),
        failure=draw(st.sampled_from(Failure)),
    )


@st.composite
def outlines(draw) -> Outline:
    """Any outline that places: no `per_host` and no `gpus`, which have their own tests."""
    kinds = ["worker"] + [kind for kind in ("chief", "ps", "evaluator") if draw(st.booleans())]
    kinds += [draw(extra_types)] * draw(st.booleans())
    return Outline(
        name="job",
        roles=tuple(draw(roles(kind)) for kind in kinds),
        strategy=draw(st.sampled_from(Strategy)),
        strategy_declared=draw(st.booleans()),
        cwd="/work",
        interpreter=draw(st.none() | st.builds(Interpreter, path=words, version=words, tensorflow=words)),
        hosts=draw(st.integers(1, 4)),
        checkpoint=draw(st.none() | words),
        ports=draw(st.none() | st.just((22000, 22999))),
        runtime=draw(st.booleans()),
        force_tf_config=draw(st.booleans()),
        no_proxy=draw(st.none() | st.sampled_from(["", "corp.example", "a,b"])),
        secrets=tuple(draw(st.lists(st.builds(Secret, name=words, env=variables, source=words), max_size=2))),
        outputs=tuple(draw(st.lists(words, max_size=2))),
        policies=Policies(
            health=Health(start=draw(seconds), finish=draw(seconds)),
            grace=Grace(stop=draw(seconds), failure=draw(seconds)),
            restart=Restart(max=draw(st.integers(0, 9))),
        ),
    )


@st.composite
def host_lists(draw, *, least: int = 1, most: int = 4) -> list[Host]:
    """Hosts with ids full of gaps, in any order, each with ports enough."""
    ids = draw(st.lists(st.integers(0, 999), min_size=least, max_size=most, unique=True))
    return [
        Host(
            id=number,
            name=f"n{number}",
            address=draw(
                st.sampled_from([f"10.0.{number // 256}.{number % 256}", f"n{number}.example", f"fd00::{number}"])
            ),
            ports=tuple(range(22000, 22030)),
            cpus=draw(st.integers(1, 128)),
            folder=f"/runs/n{number}",
        )
        for number in ids
    ]
