"""The words of pages, and the command that says what they mean."""

from __future__ import annotations

import json

import pytest

from fusion_bench.cli import main
from fusion_bench.errors import UnknownNameError
from fusion_bench.report.glossary import TERMS, find_terms, format_glossary

Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("nDCG@10", "nDCG@10"),
        ("ndcg@5", "nDCG@10"),
        ("nDCG(dcg='exp-log2')@5", "nDCG@10"),
        ("MRR", "RR@10"),
        ("R@20", "R@100"),
        ("RBP(p=0.8)", "RBP"),
        ("Adjusted  P", "adjusted p"),
        ("significant", "adjusted p"),
        ("unjudged decide", "judge first"),
        ("betting bound", "rare-loss bound"),
    ],
)
def test_a_word_is_found_by_its_other_spellings(typed: str, name: str) -> None:
    assert [term.name for term in find_terms(typed)] == [name]


def test_no_name_stands_twice() -> None:
    names = [term.name for term in TERMS]
    assert len(names) == len({*names})
    assert all(term in find_terms(term.name) for term in TERMS)
    assert format_glossary().count("\n\n") == len(TERMS) - 1


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
