"""What the lead's process asks of the operating system."""

from __future__ import annotations

import resource

import pytest

from phalanx.lead.main import open_files


@pytest.fixture
def limits():
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(256, before[1]), before[1]))
    yield before
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_a_lead_opens_as_many_files_as_it_may(limits, capsys):
    open_files(10)
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (limits[1], limits[1])
    assert capsys.readouterr().err == ""


def test_a_limit_below_the_hosts_is_said(limits, capsys):
    open_files(limits[1] + 1)
    assert f"the lead may open {limits[1]} files, and {limits[1] + 1} hosts want" in capsys.readouterr().err
