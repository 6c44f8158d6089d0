"""The pages that are made from the code: one for each method, engine and lint rule."""

import re
from functools import cache
from pathlib import Path

import pytest

import fusion_bench
from docs.website.engine_pages import build_engine_pages
from docs.website.lint_pages import build_lint_pages
from docs.website.method_pages import KINDS, build_method_pages
from docs.website.page import ROOT, Page, format_table, format_yaml
from docs.website.pictures import GALLERY
from fusion_bench.checks.lint_rule import load_rules
from fusion_bench.config.yaml_files import read_yaml
from fusion_bench.experiment.dialect import dialects
from fusion_bench.experiment.experiment import read_experiment

METHODS = [f"{kind.folder}/{name}" for kind in KINDS for name in kind.registry.load_built_in()]
ENGINES = [f"reference/engines/{name}" for name in dialects.load_built_in()]
RULES = [*load_rules()]


@cache
def pages() -> dict[str, Page]:
    methods = [page for page, _ in build_method_pages()]
    made = [*methods, *build_engine_pages(), *build_lint_pages()]
    return {page.name: page for page in made}


#: Of the collection that the experiments name.
ROLES = {
    name: frozenset(run["roles"])
    for name, run in read_yaml(ROOT / "datasets/attack/dataset.yaml").data["runs"].items()
}


def sections(page: Page) -> list[str]:
    return re.findall(r"^## (.+)$", page.text, re.MULTILINE)


def test_every_page_is_of_a_registered_name() -> None:
    rules = [f"reference/lint/{name}" for name in RULES]
    lists = ["reference/engines", "reference/lint", *(f"{kind.folder}/index" for kind in KINDS)]
    assert set(pages()) == {*METHODS, *ENGINES, *rules, *lists}


@pytest.mark.parametrize("name", [*METHODS, *ENGINES])
def test_the_experiment_of_a_page_is_one_and_its_parameters_have_a_meaning(
    name: str, tmp_path: Path
) -> None:
    [block] = re.findall(r"```yaml\n(dataset: .*?)```", pages()[name].text, re.DOTALL)
    path = tmp_path / "mine.yaml"
    path.write_text(block, encoding="utf-8")
    experiment, source = read_experiment(path)
    assert len(experiment.systems) == 2
    experiment.check_datasets(ROLES, ("ltr",), source)  # nothing is raised: it fits the collection
    rows = re.findall(r"^\| `(\w+)` \|.*\| (.*) \|$", pages()[name].text, re.MULTILINE)
    assert [parameter for parameter, meaning in rows if not meaning.strip()] == []


@pytest.mark.parametrize("name", METHODS)
def test_a_method_page_states_formula_and_source(name: str) -> None:
    page = pages()[name]
    assert sections(page)[:2] == ["In an experiment", "Parameters"]
    assert re.search(r"```text\n.+\n```", page.text)
    [source] = re.findall(r"^\*\*Source\.\*\* (.+)$", page.text, re.MULTILINE)
    assert len(source) > 10


def test_a_picture_is_shown_on_one_page() -> None:
    paths = [picture.path for _, picture in build_method_pages() if picture is not None]
    assert len(set(paths)) == len(paths) > 45
    for path in paths:
        assert sum(f"../{path})" in page.text for page in pages().values()) == 1


@pytest.mark.parametrize("name", ENGINES)
def test_an_engine_page_shows_what_is_exported(name: str) -> None:
    page = pages()[name]
    assert {"An experiment", "Methods", "What `export` writes"} <= set(sections(page))
    written = page.text.partition("## What `export` writes")[2]
    assert re.search(r"^`[\w.-]+`:\n\n```", written, re.MULTILINE)


@pytest.mark.parametrize("name", RULES)
def test_a_rule_page_shows_what_lint_says(name: str) -> None:
    page = pages()[f"reference/lint/{name}"]
    assert sections(page) == ["What it does", "Why", "Example", "What to do"]
    answer = page.text.partition("`fusion-bench lint` says:")[2].partition("## What to do")[0]
    assert f"\n{name}\n" in answer
    assert "Witness: " in answer


def test_tables_and_yaml_read_back(tmp_path: Path) -> None:
    assert format_table(("a", "b"), [("|C|", "x\n  y")]).splitlines() == [
        "| a | b |",
        "| --- | --- |",
        "| \\|C\\| | x y |",
    ]
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
