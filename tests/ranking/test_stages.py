"""Systems of several stages, and of sources that depend on the query."""

from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusion_bench.data.aligned_runs import AlignedRuns, Ties
from fusion_bench.data.alignment import align
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.run import Run
from fusion_bench.errors import AlignmentError, ConfigError
from fusion_bench.evaluation.assessment import assess_system
from fusion_bench.evaluation.explanation import explain_ranking
from fusion_bench.experiment.experiment import read_experiment
from fusion_bench.experiment.system import System
from fusion_bench.measures import parse_measure
from fusion_bench.methods.fuse import CrossFitted
from fusion_bench.ranking import final_lists
from fusion_bench.ranking.batch_engine import evaluate_batch
from fusion_bench.ranking.final_lists import FinalLists, align_all_queries, make_final_lists
from fusion_bench.ranking.plain_systems import fit_system, needs_fitting, plain_systems
from fusion_bench.ranking.system_ranking import system_spec
from fusion_bench.ranking.system_scores import evaluate_systems
from fusion_bench.report.explanation_page import trace_record
from fusion_bench.tune.objective import source_roles
from fusion_bench.tune.space import apply_parameters, declared_parameters, read_parameter
from tests.contract.cases import SPACES, random_dataset
from tests.ranking.systems.switched_cases import (
    LISTS,
    NAMES,
    QRELS,
    QUERIES,
    RERANK,
    ROLES,
    aligned,
    final_scores,
    is_on,
    make_run,
)

STAGES: list[dict[str, Any]] = [
    {"runs": ["bm25", "dense"]},
    {"runs": ["dense", "bm25"], "fusion": {"method": "rrf", "k": 1}, "depth": 3, "top_k": 2},
    {"runs": ["bm25", "dense"], "fusion": {"method": "rrf", "normalize": "three_lists"}},
    {
        "runs": ["bm25", "dense", "hyde"],
        "fusion": {"method": "weighted_score", "normalize": "min_max", "missing": "zero"},
        "min_relevance": 0.3,
    },
    {
        "runs": ["bm25", "dense"],
        "blend": {"method": "replace", "reranker": "reranker", "depth": 2, "missing": "below"},
    },
]
OUTER: list[dict[str, Any]] = [
    {"fusion": {"method": "rrf", "weights": {"inner": 2}}},
    {"fusion": {"method": "weighted_score", "normalize": "min_max"}, "depth": {"inner": 3}},
    {"blend": {"method": "linear", "reranker": "reranker", "beta": 0.4, "missing": "zero"}},
]


def lists_of(final: FinalLists) -> list[tuple[str, str, float]]:
    return list(zip(final.query_ids, final.document_ids, final.scores.tolist(), strict=True))


@given(
    seed=st.integers(0, 10_000),
    stage=st.sampled_from(STAGES),
    outer=st.sampled_from(OUTER),
    ties=st.sampled_from(["trec", "first_seen"]),
)
def test_a_stage_is_the_list_that_its_system_would_write(
    seed: int, stage: dict[str, Any], outer: dict[str, Any], ties: Ties
) -> None:
    data, rerank = random_dataset(seed)
    runs = [Run.from_dict(name, dict(lists)) for name, lists in data.items()]
    reranker = Run.from_dict("reranker", dict(rerank))
    together = align_all_queries(runs, rerankers=[reranker], ties=ties, spaces=SPACES)

    with patch.object(final_lists, "separate_ties", lambda scores, *_: scores):
        # a file has equal scores a hair apart, so that a sort keeps its order: a stage need not
        inner = make_final_lists(System("inner", **stage), together).to_run()
    apart = align_all_queries([*runs, inner], rerankers=[reranker], ties=ties, spaces=SPACES)
    expected = make_final_lists(System("s", ["inner", "hyde"], **outer), apart)

    staged = System("s", ["inner", "hyde"], stages={"inner": stage}, **outer)
    known = {name: i for i, name in enumerate(together.queries)}
    made = sorted(lists_of(make_final_lists(staged, together)), key=lambda r: known[r[0]])
    assert made == sorted(lists_of(expected), key=lambda r: known[r[0]])


def view(seed: int = 3) -> AlignedRuns:
    data, rerank = random_dataset(seed)
    roles = {"bm25": ["question", "keyword"], "dense": ["question", "semantic"], "hyde": ["hyde"]}
    runs = [Run.from_dict(n, dict(d), roles=frozenset(roles[n])) for n, d in data.items()]
    qrels = Qrels.from_dict({query: {"d1": 1, "d3": 2} for query in rerank})
    return align(qrels, runs, rerankers=[Run.from_dict("reranker", dict(rerank))], spaces=SPACES)


def test_a_stage_has_the_roles_that_its_sources_share() -> None:
    system = System(
        "s",
        ["inner", "hyde"],
        stages={"inner": {"runs": ["bm25", "dense"]}},
        fusion={"method": "rrf_v2", "weights": {"question": 3}},
    )
    [(_, plain, part)] = plain_systems(system, view())
    assert part.roles[part.sources.index("inner")] == {"question"}
    assert plain.fusion.source_weights(["inner", "hyde"], part.roles[-1:] + part.roles[2:3])[0] == 3


def test_the_batch_engine_counts_a_staged_system() -> None:
    runs, measures = view(), [parse_measure("nDCG@10"), parse_measure("RR@10")]
    system = System("s", ["inner", "hyde"], stages={"inner": STAGES[1]})
    [scores] = evaluate_systems([system], runs, measures)
    assert scores.evaluation_path == "counted"
    [(_, plain, part)] = plain_systems(system, runs)
    [result] = evaluate_batch([system_spec(plain)], plain.active_runs(part), measures)
    assert np.array_equal(scores.values, result.values)  # type: ignore[union-attr]


@pytest.mark.parametrize("stage", STAGES)
def test_terms_add_up_in_every_stage(stage: dict[str, Any]) -> None:
    runs = view()
    middle = {"runs": ["inner", "hyde"], "stages": {"inner": stage}}
    system = System("s", ["middle", "bm25"], stages={"middle": middle})
    explanation = explain_ranking(system, runs, runs.queries[0])
    [second] = explanation.stages
    [third] = second.stages
    for each in (explanation, second, third):
        assert each.traces
        assert all(trace.recomputed_score == trace.score for trace in each.traces)
    top = next(trace for trace in explanation.traces if trace.terms[0].rank)
    record = trace_record(explanation, top)
    assert record["stages"]["middle"]["rank"] == top.terms[0].rank
    assert set(record["stages"]["middle"]["stages"]) == {"inner"}


def test_parameters_of_stages_have_their_paths() -> None:
    runs = view()
    system = System("s", ["inner", "hyde"], stages={"inner": {"runs": ["bm25", "dense"]}})
    roles = source_roles(system, runs)
    paths = [parameter.path for parameter in declared_parameters(system)]
    assert "stages.inner.fusion.k" in paths
    assert "stages.inner.fusion.weights.dense" in paths
    changed = apply_parameters(
        system, {"stages.inner.fusion.k": 7, "fusion.k": 9, "stages.inner.depth": 5}, roles
    )
    assert read_parameter(changed, "stages.inner.fusion.k", roles) == 7
    assert (changed.fusion.model_dump()["k"], changed.stages["inner"].depth) == (9, 5)  # type: ignore[index]


def test_what_a_system_with_stages_reads() -> None:
    stage = {"runs": ["bm25", "dense"], "blend": {"method": "replace", "reranker": "r"}}
    system = System("s", ["bm25", "inner"], stages={"inner": stage})
    assert system.base_runs == ("bm25", "dense")
    assert system.reranker_names == {"r"}
    assert System.model_validate(system.model_dump()) == system
    assert "stages" not in System("s", ["bm25"]).resolved_config


EXPERIMENT = """
dataset: x
baseline: plain
systems:
  plain: {runs: [a, b]}
  staged: {runs: [inner, c], stages: {inner: %s}}
"""


def test_a_stage_may_name_a_system_of_the_experiment(tmp_path: Path) -> None:
    (tmp_path / "e.yaml").write_text(EXPERIMENT % "plain")
    system = read_experiment(tmp_path / "e.yaml")[0].systems["staged"]
    assert system.stages is not None
    assert system.stages["inner"].runs == ("a", "b")
    assert system.base_runs == ("a", "b", "c")


@pytest.mark.parametrize(
    ("stage", "message"),
    [
        ("plane", "staged: stage 'inner':"),
        ("staged", "staged: stage 'inner':"),
        ("{runs: []}", r"stages\.inner\.runs:"),
        ("{runs: [a], colour: red}", r"stages\.inner\.colour:"),
    ],
)
def test_stages_that_cannot_be(stage: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "e.yaml").write_text(EXPERIMENT % stage)
    with pytest.raises(ConfigError, match=message):
        read_experiment(tmp_path / "e.yaml")


@pytest.mark.parametrize(
    ("stages", "location", "message"),
    [
        ({"bm25": {"runs": ["dense"]}}, ("stages", "bm25"), "name of a run"),
        ({"bm25": {"runs": ["dnse"]}}, ("stages", "bm25", "runs", 0), "unknown run 'dnse'"),
    ],
)
def test_stages_that_do_not_fit_a_dataset(
    stages: dict[str, Any], location: tuple[str | int, ...], message: str
) -> None:
    system = System("s", ["bm25", "dense"], stages=stages)
    misfits = dict(system.find_misfits(dict.fromkeys(["bm25", "dense"], frozenset()), []))
    assert message in str(misfits[location])


def test_an_error_in_a_stage_names_system_and_stage() -> None:
    qrels = Qrels.from_dict({"q": {"d": 1}})
    lists = [Run.from_dict(name, {"q": {"d": -1.0, "e": -2.0}}) for name in ("bm25", "dense")]
    inner = {"runs": ["bm25", "dense"], "fusion": {"method": "comb_sum", "normalize": "max"}}
    middle = {"runs": ["inner"], "stages": {"inner": inner}}
    system = System("outer", ["middle"], stages={"middle": middle})
    message = r"^system 'outer': stage 'middle': stage 'inner': normalize: max cannot scale"
    with pytest.raises(AlignmentError, match=message):
        evaluate_systems([system], align(qrels, lists), [parse_measure("nDCG@10")])


def test_a_stage_that_nothing_reads_is_refused() -> None:
    with pytest.raises(ConfigError, match="stage 'inner' "):
        System("s", ["bm25"], stages={"inner": {"runs": ["dense"]}})


def test_trained_fusions_are_fitted_in_every_stage() -> None:
    runs = view()
    stage: dict[str, Any] = {
        "runs": ["bm25", "dense"],
        "fusion": {"method": "pos_fuse", "folds": 2},
    }
    system = System("s", ["inner", "hyde"], stages={"inner": stage})
    fitted = fit_system(system, runs)
    assert not needs_fitting(fitted)
    [(_, _, part)] = plain_systems(fitted, runs)
    alone = make_final_lists(System("inner", **stage), runs)
    row = part.sources.index("inner")
    assert np.array_equal(np.sort(part.scores[row][part.ranks[row] > 0]), np.sort(alone.scores))


def test_nothing_is_trained_on_what_is_trained() -> None:
    stage = {"runs": ["bm25", "dense"], "fusion": "pos_fuse"}
    system = System("s", ["inner", "hyde"], stages={"inner": stage}, fusion="pos_fuse")
    with pytest.raises(ConfigError, match=r"'s':.*'inner'"):
        fit_system(system, view())


# ── sources that are off for some queries: the obvious loop over queries is the oracle


def rrf_by_hand(query: str, weights: dict[str, float], *, divide: bool) -> dict[str, float]:
    on = [name for name in NAMES if is_on(name, QUERIES[query])]
    scores: dict[str, float] = {}
    for name in on:
        ranked = sorted(LISTS[name][query], key=lambda d: (-LISTS[name][query][d], d))
        for rank, document in enumerate(ranked, start=1):
            term = weights.get(name, 1.0) / (60 + rank)
            scores[document] = scores.get(document, 0.0) + term
    greatest = sum(weights.get(name, 1.0) / 61 for name in on)
    return {document: score / (greatest if divide else 1) for document, score in scores.items()}


@pytest.mark.parametrize("normalize", ["none", "max_possible"])
def test_rrf_counts_only_the_sources_that_are_on(normalize: str) -> None:
    weights = {"dense": 2.0, "meta": 3.0, "synergy": 0.5}
    fusion = {"method": "rrf", "weights": weights, "normalize": normalize}
    system = System("s", NAMES, fusion)
    scores = final_scores(system, aligned())
    for query in QUERIES:
        expected = rrf_by_hand(query, weights, divide=normalize == "max_possible")
        assert scores[query] == pytest.approx(expected, rel=1e-12)


SYSTEMS: dict[str, dict[str, Any]] = {
    "rrf": {"fusion": {"method": "rrf", "weights": {"dense": 2, "synergy": 0.5}}},
    "one k a source": {"fusion": {"method": "rrf", "k": {"meta": 10, "dense": 30}}},
    "weight of a role": {"fusion": {"method": "rrf", "weights": {"notes": 3}}},
    "three lists": {"fusion": {"method": "rrf", "normalize": "three_lists"}},
    "rrf_v2": {"fusion": {"method": "rrf_v2", "normalize": "max_possible"}},
    "convex": {"fusion": {"method": "convex", "weights": {"meta": 2}}},
    "weighted_sum": {"fusion": {"method": "weighted_sum", "normalize": "min_max"}},
    "a scale a source": {
        "fusion": {
            "method": "weighted_sum",
            "normalize": {"method": "by_source", "sources": {"meta": "l2", "dense": "min_max"}},
        }
    },
    "borda": {"fusion": "borda"},
    "condorcet": {"fusion": "condorcet"},
    "log_odds": {"fusion": "log_odds"},
    "comb_mnz": {"fusion": "comb_mnz"},
    "threshold": {"fusion": {"method": "rrf", "normalize": "max_possible"}, "min_relevance": 0.5},
    "blend": {
        "fusion": {"method": "rrf", "weights": {"meta": 2}},
        "blend": {
            "method": "linear",
            "beta": 0.4,
            "reranker": "ce",
            "retrieval": "fused_max_possible",
        },
        "depth": {"meta": 3},
        "top_k": 5,
    },
}


def keep_keys(keys: dict[str, Any], on: list[str]) -> dict[str, Any]:
    """The keys of a system without what is said of sources that are off."""
    present = {*on, *(role for name in on for role in ROLES[name])}

    def keep(part: dict[str, Any], *fields: str) -> dict[str, Any]:
        return {
            key: {name: v for name, v in value.items() if name in present}
            if key in fields and isinstance(value, dict)
            else value
            for key, value in part.items()
        }

    kept = keep(keys, "depth")
    if isinstance(kept["fusion"], dict):
        kept["fusion"] = fusion = keep(kept["fusion"], "weights", "k")
        if isinstance(fusion.get("normalize"), dict):
            fusion["normalize"] = keep(fusion["normalize"], "sources")
    return kept


@pytest.mark.parametrize("keys", SYSTEMS.values(), ids=SYSTEMS.keys())
def test_a_query_is_ranked_as_by_a_system_of_the_sources_that_are_on(keys: dict[str, Any]) -> None:
    together = final_scores(System("s", NAMES, **keys), aligned())
    for query in QUERIES:
        on = [name for name in NAMES if is_on(name, QUERIES[query])]
        cut = keep_keys(keys, on)
        qrels = Qrels.from_dict({query: QRELS.to_dict()[query]})
        lists = [Run.from_dict(n, {query: LISTS[n][query]}, roles=make_run(n).roles) for n in on]
        alone = align(qrels, lists, rerankers=[RERANK], spaces={"ce": "unit"})
        assert together[query] == final_scores(System("s", on, **cut), alone)[query]


@pytest.mark.parametrize("keys", SYSTEMS.values(), ids=SYSTEMS.keys())
def test_every_path_gives_the_same_values(keys: dict[str, Any]) -> None:
    system, runs = System("s", NAMES, **keys), aligned()
    measures = [parse_measure(name) for name in ("nDCG@5", "RR@10", "R@100")]
    [scores] = evaluate_systems([system], runs, measures)
    assessed = assess_system(system, runs, measures)
    assert scores.values.tolist() == assessed.values.tolist()


def test_a_stage_is_off_where_all_of_its_sources_are_off() -> None:
    inner = {"runs": ["meta", "synergy"], "fusion": "rrf"}
    fusion = {"method": "rrf", "weights": {"inner": 3}, "normalize": "max_possible"}
    scores = final_scores(
        System("s", ["dense", "inner"], fusion, stages={"inner": inner}), aligned()
    )
    lists = final_scores(System("inner", ["meta", "synergy"], "rrf"), aligned())
    for query in QUERIES:
        expected: dict[str, float] = {}
        for weight, ranked in ((1, LISTS["dense"][query]), (3, lists[query])):
            for rank, document in enumerate(sorted(ranked, key=lambda d: (ranked[d], d))[::-1], 1):
                expected[document] = expected.get(document, 0.0) + weight / (60 + rank)
        greatest = (4 if lists[query] else 1) / 61
        expected = {document: score / greatest for document, score in expected.items()}
        assert scores[query] == pytest.approx(expected, rel=1e-12)


def test_alpha_stays_the_weight_of_its_source() -> None:
    system = System(
        "s", ["dense", "meta"], {"method": "weighted_sum", "alpha": 0.7, "normalize": "none"}
    )
    scores = final_scores(system, aligned())
    for query, known in QUERIES.items():
        if not is_on("meta", known):
            weighed = {document: 0.7 * score for document, score in LISTS["dense"][query].items()}
            assert scores[query] == pytest.approx(weighed)


def test_a_query_without_any_source_gets_an_empty_list() -> None:
    scores = final_scores(System("s", ["meta", "synergy"], "rrf"), aligned())
    assert [bool(scores[query]) for query in QUERIES] == [
        is_on("meta", known) or is_on("synergy", known) for known in QUERIES.values()
    ]


def test_rrf_v2_needs_a_question_for_every_query() -> None:
    meta = make_run("meta")
    question = Run.from_dict("asked", LISTS["meta"], roles=frozenset({"question"}))
    assert meta.switch is not None
    runs = align(QRELS, [make_run("bm25"), question.switched(meta.switch)], queries=QUERIES)
    with pytest.raises(ConfigError, match=r"18.*'q01'\): rrf_v2"):
        final_scores(System("s", ["bm25", "asked"], "rrf_v2"), runs)


# ── numbers by intent: each query is ranked as by the plain system of its intent


INTENT_WEIGHTS = {"dense": 2, "meta": {"by_intent": {"meta": 4, "synergy": 0.5, "default": 1}}}
BY_INTENT: dict[str, dict[str, Any]] = {
    "a weight": {"fusion": {"method": "rrf", "weights": INTENT_WEIGHTS}},
    "whole": {
        "by_intent": {
            "meta": {"fusion": {"method": "rrf_v2", "normalize": "max_possible"}},
            "default": {"fusion": "convex", "blend": {"method": "replace", "reranker": "ce"}},
        }
    },
    "a method": {"fusion": {"by_intent": {"rules": "rrf", "default": "comb_sum"}}},
    "a blend": {
        "blend": {
            "method": "linear",
            "reranker": "ce",
            "beta": {"by_intent": {"synergy": 0.1, "default": 0.9}},
        }
    },
}


def plain_system(whole: System, intent: str | None) -> System:
    """As the rule says: the numbers of the intent, or of ``default``."""
    configs = whole.by_intent
    assert configs is not None
    config = configs[intent if intent in configs else "default"]
    return System("plain", NAMES, config.fusion, config.blend)


@pytest.mark.parametrize("keys", BY_INTENT.values(), ids=BY_INTENT.keys())
def test_a_query_is_ranked_by_the_numbers_of_its_intent(keys: dict[str, Any]) -> None:
    system, runs = System("s", NAMES, **keys), aligned()
    together = final_scores(system, runs)
    for query, known in QUERIES.items():
        alone = final_scores(plain_system(system, known.intent), runs)
        assert together[query] == alone[query]


@pytest.mark.parametrize("keys", BY_INTENT.values(), ids=BY_INTENT.keys())
def test_the_batch_engine_gives_the_same_values(keys: dict[str, Any]) -> None:
    system, runs = System("s", NAMES, **keys), aligned()
    measures = [parse_measure("nDCG@5")]
    plain = [plain_system(system, known.intent) for known in QUERIES.values()]
    [together] = evaluate_systems([system], runs, measures)
    alone = evaluate_systems(plain, runs, measures)
    assert together.values[0].tolist() == [row.values[0, q] for q, row in enumerate(alone)]


def test_the_yaml_of_a_system_builds_it_again() -> None:
    system = System("s", NAMES, **BY_INTENT["a weight"])
    assert system.query_classes == ("default", "meta", "synergy")
    assert System.model_validate({"name": "s", **system.resolved_config}) == system
    assert "by_intent" not in System("s", NAMES).resolved_config


def test_an_explanation_names_the_intent() -> None:
    system, runs = System("s", NAMES, **BY_INTENT["a weight"]), aligned()
    explained = {
        query: explain_ranking(system, runs, query) for query in ("q00", "q01", "q02", "q03")
    }
    assert [item.intent for item in explained.values()] == ["meta", "synergy", "default", "default"]
    assert {item.query_type for item in explained.values()} == {None}
    assert explained["q02"].switched_off == {
        "meta": "intent is rules",
        "synergy": "intent is rules",
    }
    assert "language is ja" in explained["q03"].switched_off["synergy"]


def test_a_trained_fusion_learns_from_the_queries_of_its_intent() -> None:
    parts = {"meta": {"fusion": "logistic_regression"}, "default": {"fusion": "rrf"}}
    fitted = fit_system(System("s", NAMES, by_intent=parts), aligned())
    assert fitted.by_intent is not None
    learned = fitted.by_intent["meta"].fusion
    assert isinstance(learned, CrossFitted)
    asked = {query for query, known in QUERIES.items() if known.intent == "meta"}
    assert set(learned.fold_of_query) == asked


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"by_intent": {"meta": {}}}, "by_intent: intent"),
        (
            {"by_intent": {"default": {}}, "by_query_type": {"hybrid": {}}},
            "by_query_type exclude",
        ),
        (
            {"by_intent": {"default": {}}, "weights_by_type": "conv-03-05"},
            "by_intent exclude",
        ),
        ({"fusion": {"k": {"by_intent": {"meta": 1}}}}, "with a value"),
    ],
)
def test_systems_that_break_a_rule(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        System("s", NAMES, **keys)
