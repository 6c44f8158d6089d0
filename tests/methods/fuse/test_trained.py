"""What every trained fusion promises: it never scores a query that it learned from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.errors import AlignmentError, ConfigError
from fusion_bench.methods.fuse import CrossFitted, Trainable, fusions
from fusion_bench.methods.fuse._trained import deal_folds
from tests.methods.fuse.trained_cases import (
    OPTIONS,
    TRAINED,
    make_judgments,
    make_lists,
    make_runs,
    scores_by_document,
)

EVERY = pytest.mark.parametrize("method", TRAINED)
LISTS, JUDGMENTS = make_lists(1), make_judgments(1)
GROUPS = {query: f"g{int(query[1:]) // 2}" for query in JUDGMENTS}


def trained(method: str, **options: object) -> Trainable:
    fusion = fusions.build({"method": method, **OPTIONS.get(method, {}), **options})
    assert isinstance(fusion, Trainable)
    return fusion


def runs() -> AlignedRuns:
    return make_runs(LISTS, JUDGMENTS, groups=GROUPS)


@EVERY
def test_what_is_not_fitted_has_no_scores(method: str) -> None:
    with pytest.raises(AlignmentError, match=f"^{method} is not fitted"):
        trained(method).fuse(runs())


@EVERY
def test_refuses_what_it_was_fitted_on(method: str) -> None:
    view = runs()
    seen = np.arange(len(view.queries)) < 6
    model = trained(method).fit(view.subset(seen))
    assert model.fitted_on == set(view.queries[:6])
    with pytest.raises(AlignmentError, match=f"{method}: query 'q05' "):
        model.fuse(view.subset(np.arange(len(view.queries)) >= 5))
    with pytest.raises(AlignmentError, match="fitted on"):
        model.score_terms(view.subset(seen))
    unseen = view.subset(~seen)
    assert np.isfinite(model.fuse(unseen)).all()


@EVERY
def test_refuses_a_source_that_it_never_saw(method: str) -> None:
    view = runs()
    half = np.arange(len(view.queries)) < 6
    model = trained(method).fit(view.subset(half).restrict(["a", "b"]))
    with pytest.raises(AlignmentError, match=rf"{method}: source 'c' is none .* \(a, b\)"):
        model.fuse(view.subset(~half))


@EVERY
def test_judgments_of_a_fold_do_not_change_its_scores(method: str) -> None:
    view = runs()
    before = trained(method, folds=3).cross_fit(view)
    for k in range(3):
        fold = {query for query, number in before.fold_of_query.items() if number == k}
        changed = {
            query: {d: 2 - grade for d, grade in grades.items()} if query in fold else grades
            for query, grades in JUDGMENTS.items()
        }
        other = make_runs(LISTS, changed, groups=GROUPS)
        after = trained(method, folds=3).cross_fit(other)
        in_fold = np.isin(view.queries, sorted(fold))
        rows = in_fold[view.query_index]
        np.testing.assert_array_equal(before.fuse(view)[rows], after.fuse(other)[rows])
        assert (before.fuse(view) != after.fuse(other)).any(), "the judgments have no effect at all"


@EVERY
def test_neither_other_queries_nor_the_order_of_sources_matter(method: str) -> None:
    view = runs()
    fitted = trained(method).cross_fit(view)
    together = scores_by_document(view, fitted.fuse(view))
    for q in range(len(view.queries)):
        part = view.between(q, q + 1)
        alone = scores_by_document(part, fitted.fuse(part))
        assert alone.items() <= together.items()
    other = make_runs(LISTS, JUDGMENTS, groups=GROUPS, order=("c", "a", "b"))
    again = trained(method).cross_fit(other)
    assert scores_by_document(other, again.fuse(other)) == together


@EVERY
def test_unknown_queries_go_to_a_model_fitted_on_all(method: str) -> None:
    view = runs()
    fitted = trained(method).cross_fit(view)
    strange = replace(view, queries=tuple(f"new{query}" for query in view.queries))
    np.testing.assert_array_equal(fitted.fuse(strange), trained(method).fit(view).fuse(strange))


@EVERY
def test_terms_add_up_and_a_fingerprint_tells_fits_apart(method: str) -> None:
    view = runs()
    fitted = trained(method).cross_fit(view)
    np.testing.assert_array_equal(fitted.score_terms(view).scores, fitted.fuse(view))
    other = trained(method, fold_seed=1).cross_fit(view)
    again = trained(method).cross_fit(runs())
    assert again.model_dump_json() == fitted.model_dump_json() != other.model_dump_json()
    assert len(fitted.model_dump_json()) < 400


@EVERY
def test_needs_two_groups_and_a_relevant_document(method: str) -> None:
    one = make_runs(LISTS, JUDGMENTS, groups=dict.fromkeys(JUDGMENTS, "g"))
    with pytest.raises(AlignmentError, match="2 groups, given 1"):
        trained(method).cross_fit(one)
    nothing = {query: dict.fromkeys(grades, 0) for query, grades in JUDGMENTS.items()}
    with pytest.raises(AlignmentError, match="from relevant documents"):
        trained(method).cross_fit(make_runs(LISTS, nothing))
    with pytest.raises(AlignmentError, match="from relevant documents"):
        trained(method).cross_fit(make_runs(LISTS, JUDGMENTS, binary_relevance=3))


@pytest.mark.parametrize("folds", [1, 0, 2.5, "x"])
def test_refuses_a_number_of_folds_that_is_none(folds: object) -> None:
    with pytest.raises(ConfigError, match=r"^folds: "):
        fusions.build({"method": "pos_fuse", "folds": folds})


def test_folds_keep_groups_and_know_no_order() -> None:
    groups = [f"g{n % 7}" for n in range(20)]
    folds = deal_folds(groups, 3, 0, "m")
    assert folds == deal_folds(groups[::-1], 3, 0, "m")
    assert sorted(set(folds.values())) == [0, 1, 2]
    assert folds != deal_folds(groups, 3, 1, "m")
    assert sorted(deal_folds(groups, 50, 0, "m").values()) == list(range(7))
    fitted = trained("pos_fuse", folds=3).cross_fit(runs())
    assert isinstance(fitted, CrossFitted)
    for query, group in GROUPS.items():
        for other, its_group in GROUPS.items():
            if group == its_group:
                assert fitted.fold_of_query[query] == fitted.fold_of_query[other]
