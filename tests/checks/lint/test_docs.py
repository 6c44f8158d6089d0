"""docs/reference/lint.md has a section for each rule, with an example in which it is found."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from fusion_bench.checks.lint import lint_systems
from fusion_bench.checks.lint_rule import load_rules
from tests.checks.lint.cases import facts, make_system

PAGE = (Path(__file__).parents[3] / "docs/reference/lint.md").read_text(encoding="utf-8")
HEADINGS = ["What it does", "Why", "Example", "What to do"]
SECTIONS = dict(re.findall(r"^## (\S+)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))


def test_every_rule_has_its_section_and_every_section_its_rule() -> None:
    assert list(SECTIONS) == list(load_rules())


@pytest.mark.parametrize("name", SECTIONS)
def test_a_section_has_the_usual_headings(name: str) -> None:
    assert re.findall(r"^### (.*)$", SECTIONS[name], re.MULTILINE) == HEADINGS
    assert f"Severity: {load_rules()[name].severity}" in SECTIONS[name]


@pytest.mark.parametrize("name", SECTIONS)
def test_the_example_of_a_section_has_the_finding(name: str) -> None:
    [block] = re.findall(r"```yaml\n(.*?)```", SECTIONS[name], re.DOTALL)
    example = yaml.safe_load(block)
    found = lint_systems([make_system(example["system"])], [facts()], engine=example.get("engine"))
    assert name in {item.id for item in found}
