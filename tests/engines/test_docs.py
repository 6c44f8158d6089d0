"""docs/reference/engines.md says what the code does.

Every dialect has a section under its title, with its version and its source. For each of its
methods the section has a YAML block that spells out every default.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from fusion_bench.experiment.dialect import Dialect, dialects
from fusion_bench.experiment.system import System

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "engines.md").read_text(encoding="utf-8")
EVERY = pytest.mark.parametrize("dialect", dialects.load_built_in().values(), ids=lambda d: d.name)


def section(dialect: type[Dialect]) -> str:
    parts = re.split(r"^## (.+)$", PAGE, flags=re.MULTILINE)
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    assert dialect.title in sections, (
        f"docs/reference/engines.md has no section '## {dialect.title}'"
    )
    return str(sections[dialect.title])


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


def systems(dialect: type[Dialect]) -> list[dict[str, Any]]:
    return [yaml.safe_load(block) for block in blocks(section(dialect), "yaml")]


@EVERY
def test_a_section_names_the_version_and_the_source(dialect: type[Dialect]) -> None:
    text = section(dialect)
    assert f"Dialect `{dialect.name}`" in text
    assert dialect.version in text
    assert dialect.source in text


@EVERY
def test_its_yaml_spells_out_the_defaults(dialect: type[Dialect]) -> None:
    written = systems(dialect)
    for system in written:
        assert System.model_validate({"name": "s", **system}).dialect == dialect.name
    keys = {**written[0], "runs": ["bm25", "dense"], "name": "s"}
    plain = System.model_validate({"name": "s", "dialect": dialect.name, "runs": ["bm25", "dense"]})
    assert System.model_validate(keys) == plain
    assert set(dialect.defaults) <= set(written[0])
    by_method = {system["fusion"]["method"]: system["fusion"] for system in reversed(written)}
    for method in dialect.methods:
        defaults = method.model_validate({}).model_dump(mode="json")
        spelled = by_method[defaults["method"]]
        assert set(spelled) == {key for key, value in defaults.items() if value is not None}
        assert method.model_validate(spelled).model_dump(mode="json") == defaults
