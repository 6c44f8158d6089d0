"""``docs/reference/methods.md`` has a section for every fusion of scores: formula and source."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fusion_bench.experiment.method_table import list_methods
from fusion_bench.methods.fuse import fusions
from fusion_bench.methods.fuse.weighted_score import ScoreFusion

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "methods.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^### `([a-z0-9_]+)`\n(.*?)(?=^#|\Z)", PAGE, re.MULTILINE | re.DOTALL))
BY_SCORES = {
    name for name, model in fusions.load_built_in().items() if issubclass(model, ScoreFusion)
}


def test_every_fusion_of_scores_has_a_section() -> None:
    assert BY_SCORES | {"weighted_score", "tm2c2", "dbsf"} <= set(SECTIONS)


@pytest.mark.parametrize("method", SECTIONS)
def test_a_section_states_formula_and_source(method: str) -> None:
    [entry] = [entry for entry in list_methods()["fusion"] if entry["method"] == method]
    assert f"Formula: `{entry['formula']}`" in SECTIONS[method]
    assert f"Source: {entry['source']}" in SECTIONS[method]
