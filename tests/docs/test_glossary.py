"""The words of ``docs/architecture.md`` are those of classes and modules; the page of terms."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import fusion_bench
from fusion_bench.report.glossary import format_glossary

PACKAGE = Path(fusion_bench.__file__).parent
PAGE = PACKAGE.parent / "docs" / "architecture.md"
TREES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in PACKAGE.rglob("*.py")}
#: Class → its modules, below the package.
CLASSES: dict[str, list[str]] = {}
for file, tree in TREES.items():
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            CLASSES.setdefault(node.name, []).append(file.relative_to(PACKAGE).as_posix())
MODULES = {path.relative_to(PACKAGE).as_posix() for path in TREES}
#: A word → its meaning, what carries it, words that are not used for it.
ROWS = re.findall(
    r"^\| \*(\w+)\* \| (.+?) \| (.+?) \| (.*?) \|$", PAGE.read_text("utf-8"), re.MULTILINE
)


def split_name(name: str) -> set[str]:
    """The words of a class or a module, in the singular."""
    words = re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])", Path(name).stem)
    return {word.lower().removesuffix("s") for word in words}


def find_files(word: str) -> set[str]:
    """The modules that a word names, or that have a class with it."""
    return {
        file
        for name, found in {**CLASSES, **{module: [module] for module in MODULES}}.items()
        if word in split_name(name)
        for file in found
    }


def test_the_glossary_has_its_words() -> None:
    assert {word for word, *_ in ROWS} == {"run", "source", "repeat", "trial", "judge"}


@pytest.mark.parametrize("name", re.findall(r"`([^`]+)`", " ".join(row[2] for row in ROWS)))
def test_what_the_glossary_names_exists(name: str) -> None:
    assert name in MODULES or name in CLASSES


def test_a_leg_is_a_source() -> None:
    assert find_files("leg") == set()


@pytest.mark.parametrize(
    ("word", "places"),
    [
        ("trial", ("tune/", "report/tuning")),
        ("repeat", ("stats/", "evaluation/", "gate/", "judging/")),
        ("judge", ("judging/", "checks/", "explain/", "api/judging", "cli/judge")),
    ],
)
def test_a_word_names_things_of_its_meaning_alone(word: str, places: tuple[str, ...]) -> None:
    specs = {"io/dataset_config.py", "report/data_warnings.py"}  # the files of judges, their table
    found = {file for file in find_files(word) if not file.startswith(places)}
    assert found <= (specs if word == "judge" else set())


def test_the_page_of_terms_is_that_of_the_command() -> None:
    page = (PAGE.parent / "glossary.md").read_text("utf-8")
    assert page == f"# Glossary\n\n{format_glossary()}\n"
