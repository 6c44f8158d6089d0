"""The systems that try compares, and the score space of a reranker."""

from dataclasses import replace
from typing import Any

import pytest

from fusion_bench.config.models import parse_model
from fusion_bench.data.run import Run, assign_roles
from fusion_bench.errors import ConfigError
from fusion_bench.evaluation.starter_systems import build_starter_systems, guess_score_space
from fusion_bench.experiment.system import System
from fusion_bench.methods.blend.formulas import Linear, PositionAware
from fusion_bench.methods.fuse.rrf import RRFv2
from fusion_bench.methods.fuse.weighted_score import WeightedScore


def run(name: str, *scores: float) -> Run:
    return Run.from_dict(name, {"q": {f"d{i}": score for i, score in enumerate(scores)}})


BM25, DENSE = run("bm25", 9, 4, 0), run("dense", 0.9, -0.2)
QUESTION = replace(DENSE, roles=frozenset({"question"}))
COHERE = run("cohere", 0.5, 0.4, 0.3)
FUSIONS = ["rrf v1", "rrf v2", "raw scores", "min-max", "z-score"]
BLENDS = ["replace", "linear 0.7", "bands", "bands 1/rank"]


def test_the_card_is_compared() -> None:
    made = build_starter_systems([BM25, QUESTION], [COHERE])
    lists = ["bm25", "dense"]
    reranked = [f"{name} replace" for name in lists]
    reranked += [f"{name} {blend}" for name in FUSIONS for blend in BLENDS]
    assert list(made.systems) == [*lists, *FUSIONS, *reranked]
    assert made.baseline == "rrf v1"
    systems = {n: parse_model(System, {**keys, "name": n}) for n, keys in made.systems.items()}
    for name, system in systems.items():
        assert system.reranker_names == (frozenset({"cohere"}) if name in reranked else frozenset())
    bands, linear = systems["rrf v2 bands"], systems["z-score linear 0.7"].blend
    assert bands.fusion == RRFv2() == RRFv2(k=60, weights={"question": 2}, bonus={1: 0.05, 3: 0.02})
    blend = PositionAware(reranker="cohere", depth=3, missing="below", retrieval="fused")
    assert bands.blend == blend
    assert (blend.tiers, blend.rest) == ({3: 0.75, 10: 0.60}, 0.40)
    by_rank = blend.model_copy(update={"retrieval": "reciprocal_rank"})
    assert systems["raw scores bands 1/rank"].blend == by_rank
    assert isinstance(linear, Linear)
    assert (linear.beta, linear.retrieval, linear.missing) == (0.7, "reciprocal_rank", "below")
    raw = systems["raw scores"].fusion
    assert isinstance(raw, WeightedScore)
    assert (raw.weights, raw.normalize.method, raw.missing) == ({}, "none", "skip")


@pytest.mark.parametrize(("lists", "rows"), [(2, 29), (3, 31), (6, 37)])
def test_there_are_as_many_systems_as_the_lists_ask_for(lists: int, rows: int) -> None:
    others = [run(f"list{i}", 2, 1) for i in range(lists - 1)]
    assert len(build_starter_systems([QUESTION, *others], [COHERE]).systems) == rows


def test_rrf_v2_is_left_out_without_a_question() -> None:
    made = build_starter_systems([BM25, DENSE])
    assert made.lacks_question
    assert "rrf v2" not in made.systems
    assert "--role NAME=question" in made.choices[0]
    assert not build_starter_systems([BM25, QUESTION]).lacks_question


def test_names_are_explained_in_words_of_their_systems() -> None:
    made = build_starter_systems([BM25, QUESTION], [COHERE])
    question, *notes = made.notes
    assert question.endswith("rrf v2 counts it ×2.")
    assert [note.partition(":")[0] for note in notes] == [
        *("rrf v1", "rrf v2", "raw scores", "min-max", "z-score", "rrf v1 replace"),
        *("rrf v1 linear 0.7", "rrf v1 bands", "rrf v1 bands 1/rank"),
    ]
    assert notes[1].endswith("question ×2, bonus .05 at rank 1 and .02 at ranks 2–3.")
    assert ", first 3 reordered by .7 × cohere + .3 × 1/rank." in notes[6]
    assert notes[7].endswith(" weighs .75 at ranks 1–3, .6 at ranks 4–10 and .4 below.")


def test_one_list_and_a_reranker_need_no_fusion() -> None:
    made = build_starter_systems([BM25], [COHERE])
    assert list(made.systems) == ["bm25", "bm25 replace"]
    assert (made.baseline, made.lacks_question) == ("bm25", False)


def test_several_rerankers_are_named() -> None:
    made = build_starter_systems([BM25], [COHERE, run("ltr", 2, 1)])
    assert list(made.systems) == ["bm25", "bm25 replace cohere", "bm25 replace ltr"]


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        ([BM25], "at least two lists"),
        ([], "at least two lists"),
        ([BM25, run("rrf v1", 1)], "'rrf v1' names both"),
    ],
)
def test_what_cannot_be_compared_is_refused(runs: list[Run], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build_starter_systems(runs)


# ── roles that a call gives, or that names imply


def with_roles(name: str, *roles: str) -> Run:
    return replace(run(name, 2, 1), roles=frozenset(roles))


@pytest.mark.parametrize(
    ("lists", "given", "asked"),
    [
        (["query", "bm25"], {}, ["query"]),
        (["Original", "question", "bm25"], {}, ["Original", "question"]),
        (["a", "b"], {}, []),
        (["a", "b"], {"b": "question"}, ["b"]),
        (["a", "b"], {"b": ["question", "semantic"]}, ["b"]),
        (["question", "b"], {"b": "question"}, ["b"]),
        (["question", "b"], {"question": "hyde"}, []),
        (["queries", "b"], {}, []),
    ],
)
def test_a_name_implies_the_question_if_no_role_does(
    lists: list[str], given: dict[str, str | list[str]], asked: list[str]
) -> None:
    runs = assign_roles({name: with_roles(name) for name in lists}, given)
    assert [name for name, each in runs.items() if "question" in each.roles] == asked


def test_declared_roles_win_over_names() -> None:
    runs = {"query": with_roles("query"), "dense": with_roles("dense", "question")}
    assert assign_roles(runs) == runs
    of_another = {"query": with_roles("query", "hyde")}
    assert assign_roles(of_another) == of_another
    assert assign_roles(runs, {"dense": "semantic"})["query"].roles == {"question"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"c": "question"}, "unknown list 'c'"),
        ({"a": [""]}, "a: give a role"),
        ({"a": [1]}, "role"),
    ],
)
def test_roles_of_no_list_or_of_no_name_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        assign_roles({"a": run("a", 1)}, given)


# ── what a rerank list's numbers mean, by their values


@pytest.mark.parametrize(
    ("lists", "space"),
    [
        ([[0.9, 0.5, 0.0], [1.0]], "unit"),
        ([[0.0, 0.0]], "unit"),
        ([[-0.1, -2.5], [-30.0, -31.0]], "log_prob"),
        ([[4.5, 0.1, -9.0]], "logit"),
        ([[17.5, 0.1, -9.0]], "unbounded"),
        ([[0.5, 12.0]], "unbounded"),
        ([[3, 2, 1], [2, 1]], "order"),
        ([[1, 1 / 2, 1 / 3], [1, 1 / 2]], "order"),
        ([[-1, -2, -3], [-1]], "order"),
        ([[3, 2, 1], [2.5, 1]], "unbounded"),
        ([[1.0], [1.0]], "unit"),
    ],
)
def test_the_first_rule_that_fits_decides(lists: list[list[float]], space: str) -> None:
    ranked = {
        f"q{q}": {f"d{d}": float(score) for d, score in enumerate(scores)}
        for q, scores in enumerate(lists)
    }
    assert guess_score_space(Run.from_dict("r", ranked))[0] == space
