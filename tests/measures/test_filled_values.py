"""Values where unjudged documents have the mean gain of judged ones at their rank."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from fusion_bench.data.ordering import FloatArray
from fusion_bench.measures import collect_returned, compute_measures, parse_measure
from tests.measures.cases import COMMON, Built, Case, build, cases
from tests.oracle.filled_measures import Grades, filled_value

WITH_FORMULA = [name for name in COMMON if not name.startswith("Judged")]


def filled(built: Built, name: str) -> FloatArray | None:
    every = np.arange(len(built.runs.queries))
    returned = collect_returned(built.runs, [(every, built.runs, built.positions)])
    return parse_measure(name).filled_values(returned)


def grades_of(case: Case, query: str, cutoff: int | None) -> Grades:
    """Negative grades are pooled, but not judged."""
    judgments = case.judgments[query]
    known = {document: grade for document, grade in judgments.items() if grade >= 0}
    return [known.get(document) for document in case.ranked(query)][:cutoff]


@settings(deadline=None, max_examples=25)
@given(cases(documents=5))
def test_filled_values_are_expected_ones(case: Case) -> None:
    built = build(case)
    for name in WITH_FORMULA:
        measure, values = parse_measure(name), filled(built, name)
        assert values is not None
        lists = [grades_of(case, query, measure.cutoff) for query in built.runs.queries]
        for grades, value, query in zip(lists, values, built.runs.queries, strict=True):
            expected = filled_value(measure, grades, lists, case.judgments[query])
            assert value == pytest.approx(expected, abs=1e-12, nan_ok=True), (name, query)


@settings(deadline=None, max_examples=25)
@given(cases(lowest_grade=0))
def test_without_unjudged_documents_filled_values_are_the_plain_ones(case: Case) -> None:
    judgments = {
        query: case.judgments[query] | dict.fromkeys(case.scores.get(query, {}), 0)
        for query in case.judgments
    }
    built = build(Case(judgments, case.scores))
    for name in WITH_FORMULA:
        values = compute_measures([parse_measure(name)], built.runs, built.positions)[0]
        assert filled(built, name) == pytest.approx(values, abs=1e-12)


def test_a_measure_without_a_formula_has_no_filled_values() -> None:
    built = build(Case({"q": {"a": 1}}, {"q": {"a": 1.0}}))
    assert filled(built, "Judged@10") is None
    assert filled(built, "Rprec") is None


def test_lists_without_any_judged_document_cannot_be_filled() -> None:
    built = build(Case({"q": {"a": 1}, "r": {"a": 1}}, {"q": {"x": 2.0, "y": 1.0}}))
    values = filled(built, "nDCG@10")
    assert values is not None
    assert np.isnan(values[0])
    assert values[1] == 0  # an empty list has nothing to fill
