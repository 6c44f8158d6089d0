"""Policies: which system answers which query."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.alignment import align
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.records import Query
from fusion_bench.data.run import Run
from fusion_bench.errors import AlignmentError, ConfigError
from fusion_bench.experiment.system import System
from fusion_bench.explain.explanation import explain_ranking
from fusion_bench.measures import parse_measure
from fusion_bench.methods.policies import CrossFittedPolicy, QueryFeatures, policies
from fusion_bench.methods.policies._base import entropy, margin, variation
from fusion_bench.methods.policies.regression import Regression
from fusion_bench.methods.policies.rules import _relative_gap as relative_gap
from fusion_bench.ranking.final_lists import rank_queries
from fusion_bench.ranking.plain_systems import (
    choose_variants,
    fit_system,
    needs_fitting,
    plain_system_of,
    plain_systems,
    query_features,
    variant_values,
)
from fusion_bench.ranking.system_scores import evaluate_systems
from fusion_bench.report.explanation_page import build_explanation_page, trace_record
from fusion_bench.tune.space import build_search_space
from tests.methods.fuse.trained_cases import make_judgments, make_lists, make_runs

#: q1: the keyword list has one clear winner; q2: it is flat, and the semantic list is sure.
LISTS = {
    "bm25": {"q1": {"a": 9.0, "b": 1.0, "c": 0.9}, "q2": {"d": 5.0, "e": 5.0, "f": 4.9}},
    "dense": {"q1": {"a": 0.80, "b": 0.74}, "q2": {"x": 0.90, "y": 0.50}},
}
ROLES = {"bm25": frozenset({"keyword"}), "dense": frozenset({"semantic"})}
RERANK = {"q1": {"b": 1.0, "a": 0.5}, "q2": {"y": 1.0, "x": 0.5}}


def runs_of(roles: dict[str, frozenset[str]] = ROLES) -> AlignedRuns:
    return align(
        Qrels.from_dict({"q1": {"a": 1}, "q2": {"y": 1}}),
        [Run.from_dict(name, lists, roles=roles[name]) for name, lists in LISTS.items()],
        rerankers=[Run.from_dict("reranker", RERANK)],
        spaces={"reranker": "unit"},
    )


def weights_of(policy: dict[str, Any], **options: Any) -> list[dict[str, float] | None]:  # noqa: ANN401
    codes, variants = choose_variants(
        System("s", ["bm25", "dense"], policy=policy, **options), runs_of()
    )
    return [variants[code].weights for code in codes.tolist()]


def test_a_sharp_keyword_list_leans_to_keywords_and_a_flat_one_to_meaning() -> None:
    sharp, flat = weights_of({"method": "entropy_alpha"})
    assert sharp == {"bm25": 0.89, "dense": 0.11}  # entropy .06
    assert flat == {"bm25": 0.27, "dense": 0.73}  # entropy ln 2 / ln 3 = .63


def test_margins_scale_the_keyword_weight_down_to_a_floor() -> None:
    near, clear = weights_of(
        {"method": "margin_silencing"}, fusion={"method": "rrf", "weights": {"keyword": 0.5}}
    )
    assert near == {"bm25": 0.3, "dense": 1.0}  # 1 − .06 / .15 = .6 of .5
    assert clear == {"bm25": 0.0, "dense": 1.0}  # .4 is beyond .15: silenced
    _, clear = weights_of({"method": "margin_silencing", "floor": 0.25})
    assert clear == {"bm25": 0.25, "dense": 1.0}


def test_alpha_of_the_fusion_gives_way_to_the_weights() -> None:
    system = System(
        "s",
        ["bm25", "dense"],
        fusion={"method": "tm2c2", "alpha": 0.5},
        policy={"method": "margin_silencing"},
    )
    plain, _ = plain_system_of(system, runs_of(), "q1")
    data = plain.fusion.model_dump()
    assert data["weights"] == {"bm25": 0.3, "dense": 0.5}
    assert data.get("alpha") is None
    assert plain.policy is None


def test_lists_that_differ_get_another_fusion_and_no_reranker() -> None:
    policy = {
        "method": "overlap_rules",
        "below": {"fusion": {"method": "comb_sum"}, "rerank": False},
        "above": {"weights": {"semantic": 2}},
    }
    blend = {"method": "replace", "reranker": "reranker", "missing": "below"}
    system = System("s", ["bm25", "dense"], blend=blend, policy=policy)
    above, below = (plain_system_of(system, runs_of(), query)[0] for query in ("q1", "q2"))
    assert (above.fusion.method, above.blend.method) == ("rrf", "replace")
    assert above.fusion.model_dump()["weights"] == {"semantic": 2.0}
    assert (below.fusion.method, below.blend.method) == ("comb_sum", "none")


@pytest.mark.parametrize(("threshold", "reranked"), [(0.0, []), (0.5, ["q2"]), (1.1, ["q1", "q2"])])
def test_only_ambiguous_queries_are_reranked(threshold: float, reranked: list[str]) -> None:
    system = System(
        "s",
        ["bm25"],
        fusion={"method": "weighted_score", "normalize": "none"},
        blend={"method": "replace", "reranker": "reranker", "missing": "below"},
        policy={"method": "rerank_when_ambiguous", "threshold": threshold},
    )
    runs = runs_of()
    plain = {query: plain_system_of(system, runs, query)[0] for query in runs.queries}
    assert [query for query in plain if plain[query].blend.method == "replace"] == reranked


def test_parts_cover_every_query_and_every_way_of_ranking_agrees() -> None:
    runs, system = runs_of(), System("s", ["bm25", "dense"], policy="margin_silencing")
    index = np.concatenate([rows for rows, _, _ in plain_systems(system, runs)])
    assert sorted(index.tolist()) == [0, 1]
    [scores] = evaluate_systems([system], runs, [parse_measure("RR@10")])
    expected = np.zeros(2)
    for rows, ranking in rank_queries(system, runs):
        relevant = ranking.runs.grades > 0
        for row in rows.tolist():
            query = ranking.runs.queries.index(runs.queries[row])
            position = ranking.positions[relevant & (ranking.runs.query_index == query)]
            expected[row] = 1 / position[0]
    assert scores.values[0].tolist() == expected.tolist()


def test_parameters_of_the_policy_are_tuned_and_written() -> None:
    system = System("s", ["bm25", "dense"], policy="entropy_alpha")
    paths = {parameter.path for parameter in build_search_space(system, None, ROLES)}
    assert {"policy.steepness", "policy.midpoint", "policy.low", "policy.high"} <= paths
    assert "policy" not in System("s", ["bm25"]).resolved_config
    written = System("s", ["bm25"], policy="entropy_alpha")
    assert written.resolved_config["policy"]["method"] == "entropy_alpha"
    assert repr(written) == "System('s', ['bm25'], policy='entropy_alpha')"
    assert sorted(policies.load_built_in())[0] == "entropy_alpha"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"policy": "entropi"}, "entropi"),
        ({"policy": {"method": "entropy_alpha", "low": 0.8, "high": 0.2}}, "low must not be above"),
        ({"policy": {"method": "overlap_rules"}}, "below and above must differ"),
        (
            {"policy": {"method": "overlap_rules", "below": {"fusion": "nope"}}},
            "nope",
        ),
        ({"policy": "rerank_when_ambiguous"}, "needs a blend with a reranker, given 'none'"),
        (
            {"policy": "entropy_alpha", "weights_by_type": "conv-03-05"},
            "policy and weights_by_type exclude each other",
        ),
    ],
)
def test_refuses(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        System("s", ["bm25", "dense"], **options)


def test_weights_and_variants_that_fit_no_fusion_or_source() -> None:
    system = System("s", ["bm25", "dense"], fusion="comb_max", policy="entropy_alpha")
    with pytest.raises(ConfigError, match=r"'s':.*'entropy_alpha'"):
        list(plain_systems(system, runs_of()))
    policy = {"method": "overlap_rules", "below": {"weights": {"graph": 2}}}
    [(location, error)] = System("s", list(LISTS), policy=policy).find_misfits(ROLES, [])
    assert location == ("policy",)
    assert "graph" in str(error)
    policy = {"method": "overlap_rules", "below": {"weights": {"dense": 3}, "rerank": False}}
    with pytest.raises(ConfigError, match=r"rerank:.*'no"):
        System("s", ["bm25", "dense"], policy=policy)


@pytest.mark.parametrize("method", ["entropy_alpha", "margin_silencing"])
def test_roles_tell_the_sources_apart(method: str) -> None:
    roles = dict.fromkeys(LISTS, frozenset({"semantic"}))
    system = System("s", list(LISTS), policy=method)
    [(location, error)] = system.find_misfits(roles, [])
    assert location == ("policy",)
    assert "(sources: bm25 (semantic), dense (semantic))" in str(error)


def test_a_policy_reads_the_list_of_a_stage() -> None:
    stage = {"runs": ["dense"], "fusion": "rrf"}
    system = System("s", ["bm25", "inner"], stages={"inner": stage}, policy="margin_silencing")
    plain, alone = plain_system_of(system, runs_of(), "q1")
    assert set(alone.sources) >= {"bm25", "inner"}
    # The stage's scores are 1/61 and 1/62: no margin to speak of.
    assert plain.fusion.model_dump()["weights"] == {"bm25": 1.0, "inner": 1.0}
    [scores] = evaluate_systems([system], runs_of(), [parse_measure("RR@10")])
    assert scores.values[0].tolist() == [1.0, 1 / 3]  # q2: x, e, y, d: x ties with e, y with d


@pytest.mark.parametrize(
    ("policy", "query", "variant", "reason"),
    [
        ("entropy_alpha", "q2", {"weights": {"bm25": 0.27, "dense": 0.73}}, "scores is 0.6309, so"),
        (
            "margin_silencing",
            "q1",
            {"weights": {"bm25": 0.6, "dense": 1.0}},
            "top score is 0.06 above the mean of the next 10, so other weights are multiplied",
        ),
        (
            {"method": "overlap_rules", "threshold": 0.5, "below": {"weights": {"dense": 3}}},
            "q2",
            {"weights": {"dense": 3.0}},
            "below, because the overlap of the first 10 documents is 0, below 0.5",
        ),
        (
            {"method": "overlap_rules", "measure": "rbo", "above": {"rerank": False}},
            "q1",
            {},
            "",
        ),
        (
            "rerank_when_ambiguous",
            "q1",
            {},
            "reranked, because the gap of the first 10 fused scores is 0.03127, below 0.3",
        ),
        (
            {"method": "rerank_when_ambiguous", "threshold": 0.01},
            "q1",
            {"rerank": False},
            "not reranked, because the gap of the first 10 fused scores is 0.03127, not below 0.01",
        ),
    ],
)
def test_explain_names_what_was_picked_and_why(
    policy: Any,  # noqa: ANN401
    query: str,
    variant: dict[str, Any],
    reason: str,
) -> None:
    blend = {"method": "replace", "reranker": "reranker", "missing": "below"}
    system = System("s", ["bm25", "dense"], blend=blend, policy=policy)
    explanation = explain_ranking(system, runs_of(), query)
    trace = explanation.policy
    assert trace is not None
    if reason:
        assert (trace.variant, reason in trace.reason) == (variant, True), trace
    page = build_explanation_page(explanation, explanation.traces, with_terms=False)
    [finding] = [item for item in page.sections[0].findings if item.key == "policy"]
    assert finding.text == f"policy {trace.method} picks: {trace.changes} ({trace.reason})"
    record = trace_record(explanation, explanation.traces[0])
    assert record["policy"]["variant"] == trace.variant


def test_a_trained_policy_says_that_its_model_did_not_learn_from_the_query() -> None:
    system = System("s", ["bm25", "dense"], policy={"method": "regression", "folds": 2})
    trace = explain_ranking(system, runs_of(), "q1").policy
    assert trace is not None
    assert trace.reason.startswith("predicted to be best ")
    assert trace.changes.startswith("weights bm25 ")


# ── features against the obvious loop, and worked examples


Lists = dict[str, dict[str, float]]
NAN = float("nan")
DOCUMENTS = [f"d{n}" for n in range(8)]


def features_of(*lists: Lists, queries: dict[str, Query] | None = None) -> QueryFeatures:
    """The features of lists, each query → document → score."""
    names = sorted({query for source in lists for query in source})
    runs = align(
        Qrels.from_dict({query: {"x": 1} for query in names}),
        [Run.from_dict(f"s{n}", source) for n, source in enumerate(lists)],
        queries=queries,
    )

    def refuse() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        raise AssertionError("this feature needs no fused list")

    return QueryFeatures(runs, np.ones(len(lists)), refuse)


def ranked(source: dict[str, float], depth: int) -> list[str]:
    """Documents by score, ties by the greater id first, as runs are read."""
    return sorted(source, key=lambda d: (source[d], d), reverse=True)[:depth]


scores = st.integers(-5, 5).map(float)
one_list = st.dictionaries(st.sampled_from(DOCUMENTS), scores, min_size=1)
one_source = st.fixed_dictionaries({"q1": one_list}, optional={"q2": one_list})


@given(first=one_source, second=one_source, depth=st.integers(1, 5))
def test_overlaps_are_those_of_the_slow_loop(first: Lists, second: Lists, depth: int) -> None:
    features = features_of(first, second)
    overlaps, biased = features.overlaps(depth), features.rank_overlaps(depth)
    for q, query in enumerate(features.runs.queries):
        a, b = (ranked(source.get(query, {}), depth) for source in (first, second))
        assert overlaps[q] == pytest.approx(len({*a} & {*b}) / max(len(a), len(b), 1))
        weights = [0.9**d for d in range(depth)]
        shared = [len({*a[: d + 1]} & {*b[: d + 1]}) / (d + 1) for d in range(depth)]
        expected = sum(w * s for w, s in zip(weights, shared, strict=True)) / sum(weights)
        assert biased[q] == pytest.approx(expected)


@given(source=one_source, depth=st.integers(2, 6))
def test_features_of_scores_are_those_of_the_slow_loop(source: Lists, depth: int) -> None:
    features = features_of(source)
    for q, query in enumerate(features.runs.queries):
        top = [source[query][d] for d in ranked(source.get(query, {}), depth)]
        assert features.lengths[0, q] == len(source.get(query, {}))
        assert features.entropies(depth)[0, q] == pytest.approx(slow_entropy(top))
        mean = sum(top) / len(top)
        deviation = math.sqrt(sum((x - mean) ** 2 for x in top) / len(top))
        assert features.variations(depth)[0, q] == pytest.approx(
            deviation / abs(mean) if mean else 0.0
        )
        expected = top[0] - sum(top[1:]) / (len(top) - 1) if len(top) > 1 else 0.0
        assert features.margins(depth - 1)[0, q] == pytest.approx(expected)


def slow_entropy(top: list[float]) -> float:
    if len(top) == 1:
        return 0.0
    if min(top) == max(top):
        return 1.0
    scaled = [(x - min(top)) / (max(top) - min(top)) for x in top]
    shares = [x / sum(scaled) for x in scaled if x > 0]
    return -sum(p * math.log(p) for p in shares) / math.log(len(top))


@pytest.mark.parametrize(
    ("function", "top", "expected"),
    [
        (entropy, [NAN, NAN], 1.0),
        (entropy, [3.0, NAN], 0.0),
        (entropy, [3.0, 3.0], 1.0),
        (entropy, [2.0, 2.0, 0.0, NAN], math.log(2) / math.log(3)),
        (margin, [NAN, NAN], 0.0),
        (margin, [NAN, 0.6], 0.0),
        (margin, [0.8, NAN], 0.0),
        (margin, [0.8, 0.6, 0.4, NAN], 0.3),
        (variation, [NAN, NAN], 0.0),
        (variation, [3.0, 1.0], 0.5),
        (variation, [1.0, -1.0], 0.0),
        (relative_gap, [NAN, NAN], 1.0),
        (relative_gap, [1.0, NAN], 1.0),
        (relative_gap, [2.0, 2.0], 0.0),
        (relative_gap, [8.0, 4.0, 2.0, 0.0], 0.5),
    ],
)
def test_worked_examples(function: object, top: list[float], expected: float) -> None:
    assert callable(function)
    assert float(function(np.array(top))) == pytest.approx(expected)


def test_a_single_source_agrees_with_itself_and_words_need_texts() -> None:
    features = features_of({"q1": {"d1": 1.0}})
    assert features.overlaps().tolist() == [1.0]
    assert features.rank_overlaps().tolist() == [1.0]
    lists = {"q1": {"d1": 1.0}, "q2": {"d1": 1.0}}
    known = {"q1": Query("q1", text="two words")}
    with pytest.raises(AlignmentError, match=r"'q2'.*'text'"):
        features_of(lists, queries=known).count_words()
    known["q2"] = Query("q2", text="")
    features = features_of(lists, queries=known)
    assert features.count_words().tolist() == [2.0, 0.0]
    assert features.runs.between(1, 2).words == (0,)
    assert features.runs.subset(np.array([True, False])).words == (2,)


# ── the trained policy: out of fold, and equal to the normal equations


NDCG = parse_measure("nDCG@10")


def judged_runs(seed: int = 3, queries: int = 20) -> AlignedRuns:
    return make_runs(make_lists(seed, queries=queries), make_judgments(seed, queries=queries))


def system(**options: object) -> System:
    return System("s", ["a", "b", "c"], policy={"method": "regression", "ridge": 1.0, **options})


def test_the_coefficients_solve_the_normal_equations() -> None:
    rng = np.random.default_rng(0)
    matrix, values = rng.normal(size=(30, 4)), rng.normal(size=(3, 30))
    fitted = Regression(ridge=2.0).fit(matrix, values, [f"q{n}" for n in range(30)])
    x = (matrix - matrix.mean(axis=0)) / matrix.std(axis=0)
    for row, y, mean in zip(fitted.coefficients, values, fitted.means, strict=True):
        beta = np.array(row)
        assert mean == pytest.approx(y.mean())
        assert x.T @ (y - y.mean() - x @ beta) == pytest.approx(2.0 * beta)


def test_a_large_ridge_chooses_the_best_and_learned_queries_are_refused() -> None:
    rng = np.random.default_rng(1)
    matrix, values = rng.normal(size=(30, 4)), rng.normal(size=(3, 30))
    fitted = Regression(ridge=1e12).fit(matrix, values, [])
    best = int(values.mean(axis=1).argmax())
    assert fitted.predict_codes(matrix).tolist() == [best] * 30
    fitted = Regression().fit(np.eye(3), np.eye(3), ["q1", "q2", "q3"])
    fitted.check_queries(["q9"])
    with pytest.raises(AlignmentError, match=r"query 'q2' .* fitted on"):
        fitted.check_queries(["q9", "q2"])


def test_judgments_of_a_query_change_no_choice_for_it() -> None:
    runs = judged_runs()
    expected = fit_system(system(), runs)
    codes, variants = choose_variants(expected, runs)
    assert isinstance(expected.policy, CrossFittedPolicy)
    fold = expected.policy.fold_of_query
    for k in set(fold.values()):
        mine = np.array([fold[query] == k for query in runs.queries])
        grades = np.where(mine[runs.query_index], 2 - runs.grades, runs.grades)
        changed = replace(runs, grades=grades)
        again, _ = choose_variants(fit_system(system(), changed), changed)
        assert again[mine].tolist() == codes[mine].tolist()
    assert len(variants) == 7  # the own weights, and three sources times two factors


def test_variants_are_valued_as_the_system_that_they_make() -> None:
    runs = judged_runs()
    policy = Regression()
    variants = policy.variants(query_features(system(), runs))
    values = variant_values(system(), variants, runs, NDCG)
    plain = [system().with_variant(variant) for variant in variants]
    for row, scores in zip(values, evaluate_systems(plain, runs, [NDCG]), strict=True):
        assert row.tolist() == scores.values[0].tolist()


def test_evaluation_fits_it_and_unseen_queries_get_the_model_of_all() -> None:
    runs, later = judged_runs(), judged_runs(9, 4)
    later = replace(later, queries=tuple(f"new{q}" for q in range(4)))
    assert needs_fitting(system())
    fitted = fit_system(system(), runs)
    assert not needs_fitting(fitted)
    assert fit_system(fitted, later) is fitted
    codes, _ = choose_variants(fitted, later)
    assert isinstance(fitted.policy, CrossFittedPolicy)
    matrix = Regression().feature_matrix(query_features(system(), later))
    assert codes.tolist() == fitted.policy.models[-1].predict_codes(matrix).tolist()
    [scores] = evaluate_systems([system()], runs, [NDCG])
    [again] = evaluate_systems([fitted], runs, [NDCG])
    assert scores.values.tolist() == again.values.tolist()


def test_unfitted_unjudged_and_textless_are_refused() -> None:
    runs = judged_runs()
    with pytest.raises(AlignmentError, match="not fitted"):
        choose_variants(system(), runs)
    with pytest.raises(AlignmentError, match=r"'s':.*'regression'"):
        fit_system(system(), replace(runs, grades=np.zeros_like(runs.grades)))
    with pytest.raises(AlignmentError, match="'q00' has no text"):
        fit_system(system(words=True), runs)
    texts = replace(runs, words=tuple(range(len(runs.queries))))
    assert not needs_fitting(fit_system(system(words=True), texts))
