"""Fusion in stages: equal to fusing the stage first, writing its list, and fusing that."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusion_bench.data.aligned_runs import AlignedRuns, Ties
from fusion_bench.data.alignment import align
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.run import Run
from fusion_bench.errors import AlignmentError, ConfigError
from fusion_bench.experiment.experiment import read_experiment
from fusion_bench.experiment.system import System
from fusion_bench.explain.explanation import explain_ranking, trace_record
from fusion_bench.measures import parse_measure
from fusion_bench.ranking.batch_engine import evaluate_batch
from fusion_bench.ranking.final_lists import FinalLists, align_all_queries, make_final_lists
from fusion_bench.ranking.plain_systems import fit_system, needs_fitting, plain_systems
from fusion_bench.ranking.system_ranking import system_spec
from fusion_bench.ranking.system_scores import evaluate_systems
from fusion_bench.tune.objective import source_roles
from fusion_bench.tune.space import apply_parameters, declared_parameters, read_parameter
from tests.contract.cases import SPACES, random_dataset

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


@settings(max_examples=60)
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
    together = align_all_queries(runs, rerankers=[reranker], ties=ties)

    inner = make_final_lists(System("inner", **stage), together, SPACES).to_run()
    apart = align_all_queries([*runs, inner], rerankers=[reranker], ties=ties)
    expected = make_final_lists(System("s", ["inner", "hyde"], **outer), apart, SPACES)

    staged = System("s", ["inner", "hyde"], stages={"inner": stage}, **outer)
    known = {name: i for i, name in enumerate(together.queries)}
    made = sorted(lists_of(make_final_lists(staged, together, SPACES)), key=lambda r: known[r[0]])
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
    [scores] = evaluate_systems([system], runs, measures, spaces=SPACES)
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
        ("plane", r"staged: stage 'inner': unknown system 'plane' \(known: plain, staged\)"),
        ("staged", "staged: stage 'inner': 'staged' would be a stage of itself"),
        ("{runs: []}", r"stages\.inner\.runs: .*at least 1"),
        ("{runs: [a], colour: red}", r"stages\.inner\.colour: unknown key 'colour'"),
    ],
)
def test_stages_that_cannot_be(stage: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "e.yaml").write_text(EXPERIMENT % stage)
    with pytest.raises(ConfigError, match=message):
        read_experiment(tmp_path / "e.yaml")


@pytest.mark.parametrize(
    ("stages", "location", "message"),
    [
        ({"bm25": {"runs": ["dense"]}}, ("stages", "bm25"), "has the name of a run"),
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
        evaluate_systems([system], align(qrels, lists), [parse_measure("nDCG@10")], spaces={})
    policy = {"method": "overlap_rules", "threshold": 0.2, "below": {"weights": {"inner": 2}}}
    chosen = System("chosen", ["inner", "dense"], stages={"inner": inner}, policy=policy)
    with pytest.raises(AlignmentError, match=r"^system 'chosen':.*'inner':"):
        evaluate_systems([chosen], align(qrels, lists), [parse_measure("nDCG@10")], spaces={})


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
    fitted = fit_system(system, runs, SPACES)
    assert not needs_fitting(fitted)
    [(_, _, part)] = plain_systems(fitted, runs, SPACES)
    alone = make_final_lists(System("inner", **stage), runs, SPACES)
    row = part.sources.index("inner")
    assert np.array_equal(np.sort(part.scores[row][part.ranks[row] > 0]), np.sort(alone.scores))


def test_nothing_is_trained_on_what_is_trained() -> None:
    stage = {"runs": ["bm25", "dense"], "fusion": "pos_fuse"}
    system = System("s", ["inner", "hyde"], stages={"inner": stage}, fusion="pos_fuse")
    with pytest.raises(ConfigError, match=r"'s':.*'inner'"):
        fit_system(system, view(), SPACES)
