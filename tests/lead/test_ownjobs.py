"""What a lead in a pod leaves in its cluster."""

from __future__ import annotations

import asyncio
import json

from builders import history
from phalanx.lead.ownjobs import published
from phalanx.records.folder import RunFolder
from phalanx.records.report import build_report


async def test_a_report_that_is_still_being_written_is_waited_for(tmp_path):
    folder = RunFolder(tmp_path)
    found = asyncio.ensure_future(published(folder))
    await asyncio.sleep(0.2)
    assert not found.done()
    told = history("worker:0").joined().bound().started().exited("worker:0", code=7)
    report = build_report(told.state, None, told.write(tmp_path / "runs")).to_json()
    folder.report.write_text(text := json.dumps(report))
    assert (await found)["report.json"] == text


async def test_a_report_that_never_comes_holds_nobody_up(tmp_path):
    assert await published(RunFolder(tmp_path), patience=0.1) == {}
