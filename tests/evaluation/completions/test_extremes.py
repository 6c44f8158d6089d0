"""Extremes over completions equal those of the slow loop over every completion."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusion_bench.checks import completed_measures
from fusion_bench.checks.completed_measures import build_model
from fusion_bench.checks.completions import CompletionModel
from fusion_bench.measures import parse_measure
from tests.evaluation.completions.cases import (
    SCALE,
    Case,
    cases,
    make_top,
    of_last_query,
    slow_differences,
)

NAMES = {"exp": "nDCG(dcg='exp-log2')"}


def make_model(name: str, case: Case, cutoff: int) -> CompletionModel:
    top = make_top(*case, cutoff)
    model = build_model(parse_measure(f"{NAMES.get(name, name)}@{cutoff}"), top, SCALE)
    assert model is not None
    return model


@pytest.mark.parametrize("name", ["nDCG", "exp", "RR", "Success", "P", "R", "AP"])
@settings(max_examples=40, deadline=None)
@given(case=cases(), cutoff=st.integers(1, 6))
def test_both_ends_and_effects_of_grades(name: str, case: Case, cutoff: int) -> None:
    model = make_model(name, case, cutoff)
    slow = slow_differences(name, *case, cutoff)
    ends = model.find_extremes()
    assert ends.is_exact
    assert of_last_query(ends.low) == pytest.approx(min(slow.values()), abs=1e-12)
    assert of_last_query(ends.high) == pytest.approx(max(slow.values()), abs=1e-12)
    assert ends.low[0] == ends.high[0] == 0
    for values, grades in ((ends.low, ends.low_grades), (ends.high, ends.high_grades)):
        assert model.differences(grades) == pytest.approx(values, abs=1e-12)
        check_effects(model, name, case, cutoff, grades)


def check_effects(
    model: CompletionModel, name: str, case: Case, cutoff: int, grades: np.ndarray
) -> None:
    """Each grade of one document in turn, by the slow loop."""
    top = make_top(*case, cutoff)
    ids = [top.runs.vocabulary[code] for code in top.document.tolist()]
    unknown = {
        document: grade
        for document, grade, query, judged in zip(
            ids, grades.tolist(), top.query.tolist(), top.judged.tolist(), strict=True
        )
        if query == 1 and not judged
    }
    slow = {
        frozenset(added): value for added, value in slow_differences(name, *case, cutoff).items()
    }
    effects = model.grade_effects(grades)
    assert not effects[top.judged].any()
    for row, document in enumerate(ids):
        if document in unknown and top.query[row] == 1 and not top.judged[row]:
            values = [slow[frozenset({**unknown, document: g}.items())] for g in SCALE]
            assert effects[row] == pytest.approx(max(values) - min(values), abs=1e-12)


@settings(max_examples=40, deadline=None)
@given(case=cases(), cutoff=st.integers(1, 6))
def test_no_completion_lies_beyond_the_bound_of_average_precision(case: Case, cutoff: int) -> None:
    slow = slow_differences("AP", *case, cutoff)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(completed_measures, "MOST_ENUMERATED", 0)
        ends = make_model("AP", case, cutoff).find_extremes()
        alone = make_model("AP", (case[0], case[1], ["z"]), cutoff).find_extremes()
    assert of_last_query(ends.low) <= min(slow.values()) + 1e-12
    assert of_last_query(ends.high) >= max(slow.values()) - 1e-12
    assert not ends.is_exact or len(slow) == 1
    # A document beyond the other list leaves one list alone, for which the bound is exact.
    single = slow_differences("AP", case[0], case[1], [], cutoff)
    assert of_last_query(alone.high) == pytest.approx(max(single.values()), abs=1e-12)


@pytest.mark.parametrize("name", ["Judged@5", "nDCG(judged_only=True)@5"])
def test_other_measures_have_no_model(name: str) -> None:
    top = make_top({"a": 1}, ["a", "b"], ["b"], 5)
    assert build_model(parse_measure(name), top, SCALE) is None
