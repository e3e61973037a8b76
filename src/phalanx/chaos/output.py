"""What the leader of a run has printed on its stdout, over all its generations and attempts."""

from __future__ import annotations

from pathlib import Path

from phalanx.names import TaskId, training_order
from phalanx.records.folder import RunFolder
from phalanx.states import RunState


def leader_of(state: RunState) -> TaskId | None:
    """Chief, else worker 0, else the first task; None in a run without tasks yet."""
    return state.leader or min(state.tasks, key=training_order, default=None)


def printed(folder: RunFolder, leader: TaskId | None) -> str:
    """Its stdout, oldest first; what a killed process had begun to write ends in a line of its own."""
    if leader is None:
        return ""
    texts = [_read(log.path) for log in folder.log_files(leader) if log.stream == "out"]
    return "".join(text if not text or text.endswith("\n") else text + "\n" for text in texts)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
