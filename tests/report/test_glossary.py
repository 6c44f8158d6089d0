"""The words of pages, and the command that says what they mean."""

import json
import re
from pathlib import Path

import pytest

import fusion_bench
from fusion_bench.cli import main
from fusion_bench.errors import UnknownNameError
from fusion_bench.methods.blend import blends
from fusion_bench.methods.fuse import fusions
from fusion_bench.report.glossary import (
    METHODS,
    TERMS,
    WORDS,
    find_terms,
    list_used,
)

Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("nDCG@10", "nDCG@10"),
        ("ndcg@5", "nDCG@10"),
        ("nDCG(dcg='exp-log2')@5", "nDCG@10"),
        ("MRR", "RR@10"),
        ("MRR@5", "RR@10"),
        ("golden queries", "golden"),
        ("R@20", "R@100"),
        ("RBP(p=0.8)", "RBP"),
        ("Adjusted  P", "p"),
        ("significant", "p"),
        ("unjudged decide", "judge first"),
        ("replace", "replace"),
        ("RRF v2", "rrf_v2"),
        ("rrf", "rrf"),
        ("bands", "position_aware"),
    ],
)
def test_a_word_is_found_by_its_other_spellings(typed: str, name: str) -> None:
    assert [term.name for term in find_terms(typed)] == [name]


def test_no_name_stands_twice_and_legs_are_sources() -> None:
    names = [term.name for term in TERMS]
    assert len(names) == len({*names})
    assert all(term in find_terms(term.name) for term in TERMS)
    assert find_files("leg") == set()


def test_every_method_and_blend_has_two_sentences_of_at_most_thirty_words() -> None:
    assert {term.name for term in METHODS} == {*fusions.load_built_in(), *blends.load_built_in()}
    for term in METHODS:
        sentences = re.findall(r"[^.]+(?:\.\d+[^.]*)*\.(?: |$)", term.meaning)
        assert len(sentences) == 2, (term.name, sentences)
        assert "".join(sentences) == term.meaning
        assert max(len(sentence.split()) for sentence in sentences) <= 30, term.name


def test_a_page_explains_the_methods_that_its_systems_use() -> None:
    found = list_used("fusion: {method: rrf_v2}\nblend: {method: replace}")
    assert {term.name for term in found} - {term.name for term in WORDS} == {"rrf_v2", "replace"}


@pytest.mark.parametrize("typed", ["colour", "", "@10"])
def test_an_unknown_word_is_refused(typed: str, capsys: Capture) -> None:
    with pytest.raises(UnknownNameError):
        find_terms(typed)
    assert main(["glossary", typed]) == 2
    assert "unknown term" in capsys.readouterr().err


def test_the_command_prints_one_or_all(capsys: Capture) -> None:
    assert main(["glossary", "held-out"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "held out"
    assert [line for line in lines if line[0] != " "] == lines[:1]
    assert main(["glossary"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line and line[0] != " "] == [term.name for term in TERMS]
    assert main(["glossary", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {term.name: term.meaning for term in TERMS}


# ── the words of ``docs/architecture.md`` are those of classes and modules; the page of terms


PACKAGE = Path(fusion_bench.__file__).parent
PAGE = PACKAGE.parent / "docs" / "architecture.md"
#: Class → its modules, below the package.
CLASSES: dict[str, list[str]] = {}
MODULES = {path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py")}
for module in MODULES:
    for name in re.findall(r"^ *class (\w+)", (PACKAGE / module).read_text("utf-8"), re.MULTILINE):
        CLASSES.setdefault(name, []).append(module)
#: A word → its meaning, what carries it, words that are not used for it.
ROWS = re.findall(
    r"^\| \*(\w+)\* \| (.+?) \| (.+?) \| (.*?) \|$", PAGE.read_text("utf-8"), re.MULTILINE
)


def split_name(name: str) -> set[str]:
    """The words of a class or a module, in the singular."""
    words = re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])", Path(name).stem)
    return {word.lower().removesuffix("s") for word in words}


def find_files(word: str) -> set[str]:
    return {
        file
        for name, found in {**CLASSES, **{module: [module] for module in MODULES}}.items()
        if word in split_name(name)
        for file in found
    }


@pytest.mark.parametrize("name", re.findall(r"`([^`]+)`", " ".join(row[2] for row in ROWS)))
def test_what_the_glossary_names_exists(name: str) -> None:
    assert name in MODULES or name in CLASSES


@pytest.mark.parametrize(
    ("word", "places"),
    [
        ("trial", ("tune/", "report/tuning")),
        ("repeat", ("stats/", "evaluation/", "gate/", "judging/")),
        ("judge", ("judging/", "checks/", "explain/", "api/new_data", "cli/judge")),
    ],
)
def test_a_word_names_things_of_its_meaning_alone(word: str, places: tuple[str, ...]) -> None:
    specs = {"io/dataset_config.py", "report/data_warnings.py"}  # the files of judges, their table
    found = {file for file in find_files(word) if not file.startswith(places)}
    assert found <= (specs if word == "judge" else set())


def test_the_page_of_terms_is_that_of_the_command() -> None:
    page = (PAGE.parent / "glossary.md").read_text("utf-8")
    others = {term.name: f" ({', '.join(term.others)})" if term.others else "" for term in WORDS}
    terms = [f"**{term.name}**{others[term.name]}: {term.meaning}" for term in WORDS]
    assert page == "\n\n".join(["# Glossary", *terms]) + "\n"
