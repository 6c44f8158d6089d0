"""Methods that learn from judged queries."""

import sys
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import positions
from fusion_bench.errors import AlignmentError, ConfigError, MissingExtraError
from fusion_bench.measures import compute_measures, parse_measure
from fusion_bench.methods.fuse import CrossFitted, Trainable, fusions
from fusion_bench.methods.fuse._trained import deal_folds
from fusion_bench.methods.fuse.learned import (
    GRID,
    FittedLinearFusion,
    _Ascent,
    candidate_features,
    fit_logistic,
)
from tests.examples import examples
from tests.methods.fuse.trained_cases import (
    OPTIONS,
    SOURCES,
    TRAINED,
    make_judgments,
    make_lists,
    make_runs,
    scores_by_document,
)
from tests.oracle import trained_methods as oracle

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
def test_refuses_what_it_was_or_was_not_fitted_to(method: str) -> None:
    with pytest.raises(AlignmentError, match=f"^{method} is not fitted"):
        trained(method).fuse(runs())
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
    half = np.arange(len(view.queries)) < 6
    model = trained(method).fit(view.subset(half).restrict(["a", "b"]))
    with pytest.raises(AlignmentError, match=rf"{method}: .* on a, b, and not on source 'c'"):
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
def test_unknown_queries_go_to_a_model_of_all_whose_terms_add_up(method: str) -> None:
    view = runs()
    fitted = trained(method).cross_fit(view)
    strange = replace(view, queries=tuple(f"new{query}" for query in view.queries))
    np.testing.assert_array_equal(fitted.fuse(strange), trained(method).fit(view).fuse(strange))
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


# ── fusions learned over features: what they minimize or maximize, and that they are repeatable


RUNS = make_runs(make_lists(9, queries=20), make_judgments(9, queries=20))


def fit(runs: AlignedRuns, **config: object) -> FittedLinearFusion:
    fusion = fusions.build(config)
    assert isinstance(fusion, Trainable)
    model = fusion.fit(runs)
    assert isinstance(model, FittedLinearFusion)
    return model


def unseen(runs: AlignedRuns) -> AlignedRuns:
    return make_runs(
        {
            name: {f"new{q}": docs for q, docs in lists.items()}
            for name, lists in make_lists(9, queries=20).items()
        },
        {f"new{query}": {"d1": 1} for query in runs.queries},
    )


def test_features_say_what_each_list_says() -> None:
    lists = {"b": {"q": {"x": 3.0, "y": 1.0}}, "a": {"q": {"y": 9.0, "z": 8.0, "w": 4.0}}}
    runs = make_runs(lists, {"q": {"x": 1}})
    features = candidate_features(runs, ("c", "b", "a"))
    assert features.labels[:3] == ("1/rank", "rrf", "score")
    assert features.labels[-2:] == ("agreement", "best rank")
    assert [None if s is None else runs.sources[s] for s in features.sources[:7:3]] == [
        "a",
        "b",
        None,
    ]
    [y] = [n for n, d in enumerate(runs.documents) if runs.vocabulary[d] == "y"]
    expected = [1, 1, 1, 1 / 2, 61 / 62, 0, 0, 0, 0, 2 / 3, 1]
    np.testing.assert_allclose(features.values[:, y], expected)
    assert ((features.values >= 0) & (features.values <= 1)).all()


@pytest.mark.parametrize("penalty", [0.01, 1.0, 100.0])
def test_logistic_regression_minimizes_the_penalized_loss(penalty: float) -> None:
    random = np.random.default_rng(3)
    rows = np.vstack([np.ones(200), random.normal(size=(4, 200))])
    labels = (random.random(200) < 1 / (1 + np.exp(-(rows[1] - 2 * rows[2] - 1)))).astype(float)
    weights = np.array([1e-6, *[penalty] * 4])

    def loss(w: np.typing.NDArray[np.float64]) -> float:
        odds = w @ rows
        return float((np.logaddexp(0, odds) - labels * odds).sum() + (weights * w**2).sum() / 2)

    expected = minimize(loss, np.zeros(5), method="BFGS", options={"gtol": 1e-8}).x
    np.testing.assert_allclose(fit_logistic(rows, labels, weights), expected, atol=1e-5)


@pytest.mark.parametrize("label", [0.0, 1.0])
def test_logistic_regression_of_one_class_is_finite(label: float) -> None:
    rows = np.vstack([np.ones(50), np.linspace(0, 1, 50)])
    fitted = fit_logistic(rows, np.full(50, label), np.array([1e-6, 1.0]))
    assert np.isfinite(fitted).all()
    assert np.sign(fitted[0]) == (1 if label else -1)


def test_logistic_scores_average_to_the_share_of_relevant_ones_and_shrink() -> None:
    model = fit(RUNS, method="logistic_regression")
    chance = 1 / (1 + np.exp(-model.fuse(unseen(RUNS))))
    relevant = RUNS.judged & (RUNS.grades >= 1)
    assert chance.mean() == pytest.approx(relevant.mean(), abs=1e-6)
    sizes = [
        np.abs(fit(RUNS, method="logistic_regression", l2=l2).weights).sum()
        for l2 in (0.1, 10.0, 1e6)
    ]
    assert sizes[0] > sizes[1] > sizes[2]
    assert sizes[2] < 1e-3


def mean_ndcg(weights: np.typing.NDArray[np.float64]) -> float:
    features = candidate_features(RUNS, RUNS.sources)
    ranks = positions(weights @ features.values, RUNS.offsets)
    return float(compute_measures([parse_measure("nDCG@10")], RUNS, ranks).mean())


def test_coordinate_ascent_ends_where_no_single_weight_can_be_better() -> None:
    model = fit(RUNS, method="coordinate_ascent", rounds=50)
    weights = np.array(model.weights)
    assert {round(10 * weight) for weight in model.weights} <= set(GRID)
    labels = candidate_features(RUNS, RUNS.sources).labels
    start = np.array([label == "rrf" for label in labels], dtype=float)
    best = mean_ndcg(weights)
    assert best > mean_ndcg(start)
    for f, value in product(range(len(weights)), GRID):
        other = weights.copy()
        other[f] = value / 10
        assert mean_ndcg(other) <= best + 1e-9


@pytest.mark.parametrize("measure", ["nDCG@10", "AP", "RR@3", "P@2", "R@5"])
def test_counting_and_sorting_give_the_same_mean(measure: str) -> None:
    features = np.round(candidate_features(RUNS, RUNS.sources).values, 1)  # many ties
    ascent = _Ascent(RUNS, features, parse_measure(measure))
    assert ascent.counted is not None
    for f in range(len(features)):
        counted = ascent.mean(features[f])
        ranks = positions(features[f], RUNS.offsets)
        expected = compute_measures([parse_measure(measure)], RUNS, ranks).mean()
        assert counted == expected
        ascent.counted = None
        assert ascent.mean(features[f]) == expected
        ascent = _Ascent(RUNS, features, parse_measure(measure))


def test_coordinate_ascent_stays_reciprocal_rank_fusion_where_nothing_is_better() -> None:
    lists = {name: {f"q{q}": {"x": 2.0, "y": 1.0} for q in range(4)} for name in "ab"}
    runs = make_runs(lists, {f"q{q}": {"x": 1} for q in range(4)})
    model = fit(runs, method="coordinate_ascent")
    labels = candidate_features(runs, runs.sources).labels
    assert model.weights == tuple(float(label == "rrf") for label in labels)


@pytest.mark.parametrize("measure", ["nDCG@x", "colour", "infAP", 3])
def test_coordinate_ascent_refuses_a_measure_that_it_cannot_compute(measure: object) -> None:
    with pytest.raises(ConfigError, match=r"^measure: "):
        fusions.build({"method": "coordinate_ascent", "measure": measure})


def test_lambdamart_is_the_same_in_every_run_and_for_every_query_alone() -> None:
    fusion = fusions.build({"method": "lambdamart", "trees": 10, "least_leaf": 2})
    assert isinstance(fusion, Trainable)
    model, again = fusion.fit(RUNS), fusion.fit(RUNS)
    assert model == again
    view = unseen(RUNS)
    together = model.fuse(view)
    assert len(np.unique(together)) > 5
    for q in range(len(view.queries)):
        rows = slice(int(view.offsets[q]), int(view.offsets[q + 1]))
        np.testing.assert_array_equal(model.fuse(view.between(q, q + 1)), together[rows])


def test_lambdamart_without_lightgbm_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    fusion = fusions.build("lambdamart")
    assert isinstance(fusion, Trainable)
    with pytest.raises(MissingExtraError, match=r"lambdamart.*\[learned\]"):
        fusion.fit(RUNS)


# ── fusions that count relevant documents, against the slow obvious loop


CONFIGS: list[dict[str, Any]] = [
    {"method": "prob_fuse", "segments": 3},
    {"method": "prob_fuse", "segments": 25, "unjudged": "skip"},
    {"method": "prob_fuse", "segments": 1},
    {"method": "pos_fuse"},
    {"method": "slide_fuse", "window": 2},
    {"method": "slide_fuse", "window": 0},
    {"method": "slide_fuse", "window": 30},
    {"method": "map_fuse"},
    {"method": "bayes_fuse"},
]


def fit_half(config: dict[str, Any], runs: AlignedRuns) -> tuple[AlignedRuns, Any]:
    fusion = fusions.build(config)
    assert isinstance(fusion, Trainable)
    first = np.arange(len(runs.queries)) < 6
    return runs.subset(~first), fusion.fit(runs.subset(first))


@pytest.mark.parametrize("config", CONFIGS, ids=str)
@settings(max_examples=examples(15))
@given(seed=st.integers(0, 10_000), relevance=st.integers(1, 2), depth=st.integers(1, 15))
def test_equals_the_slow_loop(
    config: dict[str, Any], seed: int, relevance: int, depth: int
) -> None:
    lists, grades = make_lists(seed, depth=depth), make_judgments(seed)
    view, model = fit_half(config, make_runs(lists, grades, binary_relevance=relevance))
    seen = {query: grades[query] for query in list(grades)[:6]}
    ranked = {name: {q: list(documents) for q, documents in lists[name].items()} for name in lists}
    learn = oracle.TRAINED[config["method"]]
    score = {
        name: learn({q: ranked[name][q] for q in seen}, seen, relevance, config) for name in SOURCES
    }
    for (query, document), value in scores_by_document(view, model.fuse(view)).items():
        expected = 0.0
        for name in SOURCES:
            documents = ranked[name][query]
            place = documents.index(document) + 1 if document in documents else None
            expected += score[name](place, len(documents))
        assert value == pytest.approx(expected, rel=1e-12, abs=1e-14)


@settings(max_examples=examples(15))
@given(seed=st.integers(0, 10_000), depth=st.integers(1, 60))
def test_seg_fuse_equals_the_slow_loop(seed: int, depth: int) -> None:
    lists = make_lists(seed, depth=depth, documents=70)
    grades = make_judgments(seed, documents=70)
    view, model = fit_half({"method": "seg_fuse"}, make_runs(lists, grades))
    seen = {query: grades[query] for query in list(grades)[:6]}
    for (query, document), value in scores_by_document(view, model.fuse(view)).items():
        expected = 0.0
        for name in SOURCES:
            ranked = lists[name][query]
            if document in ranked:
                low, high = min(ranked.values()), max(ranked.values())
                x = (ranked[document] - low) / (high - low) if high > low else 1.0
                documents = {q: list(lists[name][q]) for q in seen}
                place = list(ranked).index(document) + 1
                chance = oracle.seg_fuse_probability(documents, seen, 1, place)
                expected += chance * (x + 1)
        assert value == pytest.approx(expected, rel=1e-12, abs=1e-14)
