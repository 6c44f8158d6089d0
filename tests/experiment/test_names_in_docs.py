"""``docs/reference/formats.md`` names every alias, with what it stands for."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fusion_bench.experiment.method_table import list_aliases
from fusion_bench.experiment.overrides import MOST_SYSTEMS
from fusion_bench.measures.aliases import ALIASES, resolve_alias

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "formats.md").read_text(encoding="utf-8")


def rows(title: str) -> list[list[list[str]]]:
    """The cells of a section's table, each as the names in it."""
    section = PAGE.split(f"### {title}\n")[1].split("\n### ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| `")]
    return [[re.findall(r"`([^`]+)`", cell) for cell in line.split("|")[1:-1]] for line in lines]


def test_every_name_of_a_measure() -> None:
    documented = {name for names, _ in rows("Names of measures") for name in names}
    assert documented - {"ndcg"} == set(ALIASES)  # ndcg differs by its capitals alone
    for names, canonical in rows("Names of measures"):
        assert {resolve_alias(name) for name in names} == set(canonical)


@pytest.mark.parametrize("alias", list_aliases())
def test_every_name_of_a_fusion_method(alias: str) -> None:
    [cells] = [cells for cells in rows("Names of fusion methods") if alias in cells[0]]
    meant = list_aliases()[alias]
    assert [name for cell in cells[1:] for name in cell] == [*meant.values()]


def test_the_most_systems_of_a_sweep() -> None:
    assert f"may make {MOST_SYSTEMS} systems at most" in PAGE
