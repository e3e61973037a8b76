"""Every local link of every Markdown file leads somewhere; what Sphinx cannot see (README, examples) included."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

import pytest

ROOT = Path(__file__).parents[2]
#: Left out: what is built, installed, or left behind by a run; and fragments, which become part of CHANGELOG.md.
APART = {".venv", ".git", "_build", "runs", ".pytest_cache", "node_modules"}
PAGES = sorted(
    page
    for page in ROOT.rglob("*.md")
    if not APART & set(page.relative_to(ROOT).parts) and page.parent.name != "changes"
)

_FENCE = re.compile(r"^(```+|~~~+).*?^\1\s*$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`\n]*`")
_LINK = re.compile(r"\[[^\]]*\]\(\s*<?([^)\s>]+)>?[^)]*\)")
_HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*$", re.MULTILINE)


def prose(page: Path) -> str:
    return _CODE.sub("", _FENCE.sub("", page.read_text(encoding="utf-8")))


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, spelt as GitHub and MyST spell them."""
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    return {
        re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower()).replace(" ", "-")
        for heading in _HEADING.findall(text)
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_local_links_resolve(page):
    broken = []
    for target in _LINK.findall(prose(page)):
        if re.match(r"[a-z][a-z0-9+.-]*:", target):
            continue
        path, _, anchor = unquote(target).partition("#")
        there = (page.parent / path).resolve() if path else page
        if not there.exists() or (anchor and there.suffix == ".md" and anchor not in anchors(there)):
            broken.append(target)
    assert not broken


def test_there_are_pages_to_check():
    assert ROOT / "README.md" in PAGES
