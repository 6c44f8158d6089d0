"""Values that the console remembers are those of a fresh evaluation, in any order of movements."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.alignment import align
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.run import Run
from fusion_bench.experiment.system import System
from fusion_bench.measures import parse_measure
from fusion_bench.ranking.system_scores import ShardLimits, evaluate_systems
from fusion_bench.serving.console import setting
from fusion_bench.serving.console.setting import SystemEvaluator

SOURCES = ("a", "b", "c")
MEASURES = tuple(map(parse_measure, ("nDCG@10", "RR@10", "R@100")))
QUERIES, DOCUMENTS, LONGEST = 24, 30, 12


@cache
def made_runs() -> AlignedRuns:
    """Lists of 0 to 12 documents with many equal scores, some below 0, and a rerank list."""
    rng = np.random.default_rng(5)
    names = [f"q{q:02}" for q in range(QUERIES)]

    def make_run(name: str, longest: int) -> Run:
        lists = {
            q: {f"d{d:02}": float(rng.integers(-3, 9)) for d in rng.permutation(DOCUMENTS)[:size]}
            for q, size in zip(names, rng.integers(0, longest + 1, QUERIES), strict=True)
        }
        roles = frozenset({"question"} if name == "a" else ())
        return Run.from_dict(name, {q: found for q, found in lists.items() if found}, roles=roles)

    qrels = {
        q: {f"d{d:02}": int(rng.integers(0, 4)) for d in rng.permutation(DOCUMENTS)[:9]}
        for q in names
    }
    runs = [make_run(name, LONGEST) for name in SOURCES]
    reranker = make_run("r", DOCUMENTS)
    return align(Qrels.from_dict(qrels), runs, rerankers=[reranker], spaces={"r": "unbounded"})


WEIGHT = st.sampled_from([0.0, 0.5, 1.0, 2.0])
#: What a hand may move, and where to.
CONTROLS: dict[str, st.SearchStrategy[Any]] = {
    "method": st.sampled_from(["rrf", "rrf_v2", "weighted_score", "weighted_sum"]),
    "normalize": st.sampled_from(["none", "min_max", "z_score", "borda"]),
    "missing": st.sampled_from(["skip", "zero", "min"]),
    "b": WEIGHT,
    "c": WEIGHT,
    "depth": st.sampled_from([None, 1, 4, 9]),
    "beta": st.sampled_from([None, 0.0, 0.3, 1.0]),
}
MOVEMENTS = st.lists(
    st.sampled_from(list(CONTROLS)).flatmap(lambda path: st.tuples(st.just(path), CONTROLS[path])),
    max_size=12,
)


def make_system(values: dict[str, Any]) -> System:
    method = values["method"]
    fusion = {"method": method, "weights": {"b": values["b"], "c": values["c"]}}
    if method.startswith("weighted"):
        is_sum = method == "weighted_sum" and values["missing"] == "skip"
        fusion |= {"normalize": values["normalize"]}
        fusion |= {} if is_sum else {"missing": values["missing"]}
    blend = {"method": "linear", "reranker": "r", "depth": 5, "beta": values["beta"]}
    parts = {} if values["beta"] is None else {"blend": blend | {"missing": "below"}}
    return System("moved", SOURCES, fusion=fusion, depth=values["depth"], **parts)


@pytest.mark.parametrize("native", ["0", "1"])
def test_any_order_of_movements(native: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few kinds and values are kept and the shards are small, so that caches come and go."""
    monkeypatch.setenv("FUSION_BENCH_NATIVE", native)
    monkeypatch.setattr(setting, "SHARDS", ShardLimits(candidates=150))
    monkeypatch.setattr(setting, "MOST_DERIVED", 4)
    monkeypatch.setattr(setting, "VALUES_KEPT", 3)

    @given(st.fixed_dictionaries(CONTROLS), MOVEMENTS)
    def check(values: dict[str, Any], movements: list[tuple[str, Any]]) -> None:
        evaluator = SystemEvaluator(replace(made_runs()), MEASURES)
        for moved in ({}, *({path: value} for path, value in movements)):
            values |= moved
            system = make_system(values)
            [fresh] = evaluate_systems([system], replace(made_runs()), MEASURES)
            np.testing.assert_array_equal(evaluator.evaluate(system), fresh.values)

    check()
