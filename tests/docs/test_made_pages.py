"""The pages that are made from the code: one for each method, engine and lint rule."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import fusion_bench
from docs.website.engine_pages import build_engine_pages
from docs.website.lint_pages import build_lint_pages
from docs.website.method_pages import KINDS, build_method_pages
from docs.website.page import ROOT, Page, format_table, format_yaml
from docs.website.pictures import GALLERY
from fusion_bench.config.yaml_source import read_yaml
from fusion_bench.experiment.dialect import dialects
from fusion_bench.experiment.experiment import read_experiment
from fusion_bench.lint import load_rules

PICTURES = [picture for _, picture in build_method_pages() if picture is not None]
METHODS = {page.path: page for page, _ in build_method_pages()}
ENGINES = {page.path: page for page in build_engine_pages()}
RULES = {page.path: page for page in build_lint_pages()}
EXPERIMENTS = [
    page for page in (METHODS | ENGINES).values() if "/" in page.path and "index" not in page.path
]


def sections(page: Page) -> list[str]:
    return re.findall(r"^## (.+)$", page.text, re.MULTILINE)


def test_every_registered_name_has_its_page() -> None:
    for kind in KINDS:
        names = {f"{kind.folder}/{name}.md" for name in kind.registry.load_built_in()}
        assert names < set(METHODS)
    assert set(ENGINES) == {"engines.md"} | {f"engines/{n}.md" for n in dialects.load_built_in()}
    assert set(RULES) == {"lint.md"} | {f"lint/{name}.md" for name in load_rules()}


@pytest.mark.parametrize("page", EXPERIMENTS, ids=lambda page: page.name)
def test_the_experiment_of_a_page_is_one(page: Page, tmp_path: Path) -> None:
    blocks = re.findall(r"```yaml\n(dataset: .*?)```", page.text, re.DOTALL)
    path = tmp_path / "mine.yaml"
    path.write_text(blocks[0], encoding="utf-8")
    experiment, _ = read_experiment(path)
    assert len(blocks) == 1
    assert len(experiment.systems) == 2


@pytest.mark.parametrize("page", EXPERIMENTS, ids=lambda page: page.name)
def test_every_parameter_of_a_page_has_a_meaning(page: Page) -> None:
    rows = re.findall(r"^\| `(\w+)` \|.*\| (.*) \|$", page.text, re.MULTILINE)
    assert [name for name, meaning in rows if not meaning.strip()] == []


@pytest.mark.parametrize("page", METHODS.values(), ids=lambda page: page.name)
def test_a_method_page_states_formula_and_source(page: Page) -> None:
    if page.name.endswith("index"):
        return
    assert sections(page)[:2] == ["In an experiment", "Parameters"]
    assert re.search(r"```text\n.+\n```", page.text)
    [source] = re.findall(r"^\*\*Source\.\*\* (.+)$", page.text, re.MULTILINE)
    assert len(source) > 10


def test_a_picture_is_shown_and_drawn_once() -> None:
    paths = [picture.path for picture in PICTURES]
    assert len(set(paths)) == len(paths) > 30
    for picture in PICTURES:
        assert sum(f"../{picture.path})" in page.text for page in METHODS.values()) == 1


@pytest.mark.parametrize("page", ENGINES.values(), ids=lambda page: page.name)
def test_an_engine_page_shows_what_is_exported(page: Page) -> None:
    if page.path == "engines.md":
        return
    assert {"An experiment", "Methods", "What `export` writes"} <= set(sections(page))
    written = page.text.partition("## What `export` writes")[2]
    assert re.search(r"^`[\w.-]+`:\n\n```", written, re.MULTILINE)


@pytest.mark.parametrize("name", load_rules())
def test_a_rule_page_shows_what_lint_says(name: str) -> None:
    page = RULES[f"lint/{name}.md"]
    assert sections(page) == ["What it does", "Why", "Example", "What to do"]
    answer = page.text.partition("`fusion-bench lint` says:")[2].partition("## What to do")[0]
    assert f"\n{name}\n" in answer
    assert "Witness: " in answer


def test_a_table_survives_pipes_and_line_breaks() -> None:
    assert format_table(("a", "b"), [("|C|", "x\n  y")]).splitlines() == [
        "| a | b |",
        "| --- | --- |",
        "| \\|C\\| | x y |",
    ]


def test_yaml_reads_back(tmp_path: Path) -> None:
    data = {
        "name": "a, b",
        "text": "yes",
        "number": 0.5,
        "runs": ["x", "null"],
        "deep": {"a": {"b": {"c": {1: 2}, "d": {}}}, "long": {"key": "value " * 20}},
    }
    path = tmp_path / "a.yaml"
    path.write_text(format_yaml(data), encoding="utf-8")
    assert read_yaml(path).data == data


@pytest.mark.parametrize("path", sorted((ROOT / GALLERY).glob("*.py")), ids=lambda path: path.stem)
def test_a_script_of_the_gallery_is_short_and_uses_public_names(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) < 40
    imported = re.findall(r"^(?:import|from) ([\w.]+)", text, re.MULTILINE)
    assert set(imported) <= {"fusion_bench", "matplotlib.pyplot", "matplotlib.figure", "numpy"} | {
        "pathlib",
        "typing",
    }
    assert set(re.findall(r"\bfb\.(\w+)", text)) <= set(fusion_bench.__all__)
