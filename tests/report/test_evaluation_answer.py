"""The answer of an evaluation as a title, and what it advises."""

import pytest

from fusion_bench.evaluation.report_records import Collection
from fusion_bench.report.evaluation_findings import answer_in_words, list_advice
from tests.report import cases
from tests.report.cases import compared, system

BASE = system("base", 0.5)


def of_answer(answer: str, difference: float = 0.1, detectable: float = 0.05) -> Collection:
    item = compared("x", difference, answer)
    item = item.model_copy(update={"min_detectable_difference": detectable})
    return cases.collection(BASE, system("x", 0.5 + difference), comparisons=[item])


USE = of_answer("better")
KEEP = of_answer("worse", -0.1)
JUDGE = of_answer("unjudged decide")
FEW = of_answer("not shown", 0.01, 0.05)


@pytest.mark.parametrize(
    ("collection", "title", "advice"),
    [
        (USE, ("Use x:", "+0.1000 over base"), ("Use x instead of base",)),
        (KEEP, ("Keep base:",), ("Keep base.",)),
        (JUDGE, ("Judge first:",), ("Keep base until", "1 of 1 comparison")),
        (FEW, ("Keep base", "too few queries"), ("add queries", "0.0500", "+0.0100")),
    ],
)
def test_the_verdicts_decide_what_is_advised(
    collection: Collection, title: tuple[str, ...], advice: tuple[str, ...]
) -> None:
    report = cases.report(collection)
    [text] = list_advice(report)
    assert all(part in answer_in_words(report) for part in (*title, collection.name))
    assert all(part in text for part in advice)
    assert ("Use x" in answer_in_words(report) + text) == (collection is USE)


def test_an_answer_that_needs_a_condition_names_it() -> None:
    undeclared = cases.collection(
        *(BASE, system("x", 0.6)),
        comparisons=USE.comparisons,
        judgments=None,
        has_irrelevant_judgments=False,
    )
    assert undeclared.condition
    report = cases.report(undeclared)
    [advice] = list_advice(report)
    for text in (answer_in_words(report), advice):
        assert undeclared.condition in text


def test_several_collections_are_counted() -> None:
    both = cases.report(USE, KEEP.model_copy(update={"name": "other"}))
    assert "on 1 of 2 collections" in answer_in_words(both)
    assert [text.split(":")[0] for text in list_advice(both)] == [f"On {USE.name}", "On other"]
    none = cases.report(KEEP, KEEP.model_copy(update={"name": "other"}))
    assert "any of 2 collections" in answer_in_words(none)


def test_one_system_has_a_mean_and_no_advice() -> None:
    report = cases.report(cases.collection(BASE))
    assert "0.5000" in answer_in_words(report)
    assert [*list_advice(report)] == []
