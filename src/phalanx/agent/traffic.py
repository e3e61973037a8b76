"""What one task's connections to its peers have carried: since the last look, and all in all."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from phalanx.agent.peers import Connection
from phalanx.agent.vitals import of_task
from phalanx.names import TaskId
from phalanx.protocol.messages import End

#: So many of a task's connections are told of at once, those that carried most: a ring needs two of each task, and of a
#: thousand tasks nobody could read more.
TOLD = 4

#: A connection that has carried less than this since it was last told of carries heartbeats (facts §11).
_WORTH = 16_384

#: Names of this machine's own address that need no question.
_OWN = {"localhost": "127.0.0.1"}


class Traffic:
    """Fed with every connection that may be the task's, about once a second."""

    def __init__(self, task: TaskId, port: int | None, tf_config: str | None) -> None:
        """`tf_config` says where its peers are; None: it has none."""
        self.sent = self.received = 0
        self._task, self._port = task, port
        self._peers = _addresses(tf_config)
        #: Those of all tasks of the cluster; empty for a task without one.
        self.ports = frozenset(port for _, port in self._peers)
        self._mine: dict[int, Connection] = {}
        self._told: dict[int, int] = {}

    def see(self, connections: Iterable[Connection], inodes: set[int]) -> int:
        """The most that one connection has carried since the look before; a new one does not count for that yet."""
        mine = {one.inode: one for one in of_task(connections, port=self._port, inodes=inodes)}
        most = 0
        for inode, one in mine.items():
            before = self._mine.get(inode)
            sent, received = (before.sent, before.received) if before is not None else (0, 0)
            self.sent += max(one.sent - sent, 0)
            self.received += max(one.received - received, 0)
            if before is not None:
                most = max(most, one.sent + one.received - sent - received)
        self._mine = mine
        return most

    def ends(self) -> tuple[End, ...]:
        """Its ends of the connections that have carried most since this was last asked; of few of them."""
        grown = sorted(((self._carried(one), one) for one in self._mine.values()), key=lambda pair: -pair[0])
        self._told = {one.inode: one.sent + one.received for one in self._mine.values()}
        busy = [one for carried, one in grown[:TOLD] if carried >= _WORTH]
        return tuple(end for one in busy if (end := self._end(one)) is not None)

    def _carried(self, one: Connection) -> int:
        return one.sent + one.received - self._told.get(one.inode, 0)

    def _end(self, one: Connection) -> End | None:
        """None where nobody knows whom it leads to."""
        busy = None if one.busy is None else round(one.busy, 3)
        rtt = round(one.rtt, 6)
        if one.local == self._port:
            return End(task=self._task, port=one.remote, sent=one.sent, busy=busy, rtt=rtt)
        peer = self._peers.get((one.address, one.remote)) or self._by_port(one.remote)
        if peer is None or peer == self._task:
            return None
        return End(task=self._task, peer=peer, port=one.local, sent=one.sent, busy=busy, rtt=rtt)

    def _by_port(self, port: int) -> TaskId | None:
        """Where addresses are names: the only task of the cluster with that port."""
        found = [task for (_, one), task in self._peers.items() if one == port]
        return found[0] if len(found) == 1 else None


def _addresses(tf_config: str | None) -> Mapping[tuple[str, int], TaskId]:
    if tf_config is None:
        return {}
    cluster: dict[str, Any] = json.loads(tf_config).get("cluster", {})
    found = {}
    for kind, job in cluster.items():
        for index, address in job.items() if isinstance(job, dict) else enumerate(job):
            host, _, port = str(address).rpartition(":")
            found[_OWN.get(host, host.strip("[]")), int(port)] = TaskId(kind, int(index))
    return found
