"""One machine as several hosts: what each of them may call its own."""

from __future__ import annotations

import dataclasses

from phalanx.plan.host import Host


def part(machine: Host, number: int, of: int) -> Host:
    """The `number`-th of `of` equal parts, whole cores and whole GPUs; all of it where there is one.

    Cores that do not divide are pinned by nobody: a host with one more than the others would be waiting for them. Of
    GPUs that do not divide the rest stays idle; of fewer GPUs than hosts the first hosts have one each.
    """
    if of == 1:
        return machine
    cores = [(place, core) for place, node in enumerate(machine.nodes) for core in node]
    each, rest = divmod(len(cores), of)
    mine = cores[number * each : (number + 1) * each] if not rest else []
    nodes = tuple(tuple(core for place, core in mine if place == at) for at in range(len(machine.nodes)))
    gpus = max(machine.gpus // of, int(number < machine.gpus < of))
    first = number * gpus
    names = machine.devices or tuple(str(at) for at in range(machine.gpus))
    return dataclasses.replace(
        machine,
        nodes=nodes if mine else (),
        quota=(machine.quota or machine.cpus) / of,
        unpinned=f"{len(cores)} cores do not divide among {of} simulated hosts" if rest else machine.unpinned,
        gpus=gpus,
        devices=names[first : first + gpus],
        gpu_nodes=machine.gpu_nodes[first : first + gpus],
    )
