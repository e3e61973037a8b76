"""The tour of README.md runs as it stands in a clone."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def tour() -> str:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return text[text.index("## A short tour") : text.index("## The parts")]


def test_every_script_of_the_tour_is_in_the_clone():
    scripts = set(re.findall(r"\S+\.py", tour()))
    folders = ("custom_loop", "keras_fit", "parameter_server")
    assert scripts == {f"examples/{folder}/train.py" for folder in folders}
    assert all((ROOT / script).is_file() for script in scripts)


def test_what_a_step_of_the_tour_reads_an_earlier_step_has_written():
    text = tour()
    for file, writer in (("job.yaml", "phalanx init"), ("nodes", "--out nodes")):
        assert text.index(writer) < text.index(f" {file}`") + len(file)
        assert text.index(writer) <= min(found.start() for found in re.finditer(rf"phalanx \w+ {file}", text))


def test_the_readme_says_how_phalanx_is_called_after_the_demo():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert ".venv/bin/phalanx" in text
    assert text.index("make demo") < text.index(".venv/bin/phalanx") < text.index("## A short tour")
