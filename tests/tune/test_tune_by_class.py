"""Numbers by query type: found where types differ, and judged against one set for all."""

from dataclasses import replace

import numpy as np
import pytest

from fusion_bench.config.query_types import BY_INTENT, BY_TYPE, ClassKey
from fusion_bench.data.ordering import BoolArray
from fusion_bench.data.query_splits import hashed_split
from fusion_bench.data.records import Query
from fusion_bench.experiment.settings import TuneSettings
from fusion_bench.experiment.system import System
from fusion_bench.ranking.system_scores import evaluate_systems
from fusion_bench.report.tuning_records import PerTypeResult
from fusion_bench.stats.unjudged import UnjudgedDifference
from fusion_bench.tune.held_out import HeldOutEvaluation
from fusion_bench.tune.objective import TuningObjective
from fusion_bench.tune.search import SearchResult, Trial, run_search
from fusion_bench.tune.tuning_run import tune_by_class
from tests.tune.cases import aligned
from tests.tune.problems import problem

TUNING = TuneSettings(system="tuned", trials=20, sampler="random")
QUERIES = 160


def opposed() -> TuningObjective:
    """Type ``a`` is answered by one source alone, type ``b`` by the other."""
    runs = aligned(QUERIES, types=["ab"[q % 2] for q in range(QUERIES)])
    swap = np.array([t == "b" for t in runs.types])[runs.query_index]
    return problem(
        runs=replace(
            runs,
            ranks=np.where(swap, runs.ranks[::-1], runs.ranks),
            scores=np.where(swap, runs.scores[::-1], runs.scores),
        )
    )


def run(
    base: TuningObjective, key: ClassKey = BY_TYPE
) -> tuple[HeldOutEvaluation, Trial, PerTypeResult | None, list[tuple[str, BoolArray]]]:
    judge = HeldOutEvaluation(
        base, hashed_split(base.runs.groups, base.runs.types, split_seed="s"), TUNING
    )
    chosen = run_search(base, judge.split.tune, TUNING.search_settings()).best_trial
    asked: list[tuple[str, BoolArray]] = []

    def by_itself(name: str, part: TuningObjective, keep: BoolArray) -> SearchResult:
        asked.append((name, keep))
        return run_search(part, keep, TUNING.search_settings())

    by_class = tune_by_class(judge, chosen, by_itself, key)
    if by_class is None:
        return judge, chosen, None, asked
    [gain] = judge.estimate_family([judge.pair_values(by_class.values, by_class.overall)])
    default = base.evaluate_params([base.default_params])[0]
    return judge, chosen, judge.class_record(by_class, default, gain), asked


def test_types_that_differ_are_worth_their_own_numbers() -> None:
    judge, _, found, asked = run(opposed())
    assert found is not None
    assert found.verdict == "ship"
    assert set(found.params) == {"a", "b"}
    good = {name: params["fusion.weights.good"] for name, params in found.params.items()}
    bad = {name: params["fusion.weights.bad"] for name, params in found.params.items()}
    assert float(good["a"] or 0) > float(bad["a"] or 0)
    assert float(good["b"] or 0) < float(bad["b"] or 0)
    for name, keep in asked:
        assert {judge.objective.runs.types[q] for q in np.flatnonzero(keep)} == {name}
        assert not (keep & judge.split.held_out).any()


def test_unjudged_documents_may_contradict_the_numbers_by_type() -> None:
    judge, chosen, found, _ = run(opposed())
    assert found is not None
    by_class = tune_by_class(
        judge, chosen, lambda _, part, keep: run_search(part, keep, TUNING.search_settings())
    )
    assert by_class is not None
    default = judge.objective.evaluate_params([judge.objective.default_params])[0]
    against = UnjudgedDifference(0.5, 0.1, judged_only=None, filled=-0.1)
    record = judge.class_record(by_class, default, found.over_global, against)
    assert record.verdict == "unjudged decide"
    assert record.unjudged == against.record


def test_the_system_that_is_written_has_the_values_that_were_judged() -> None:
    judge, chosen, found, _ = run(opposed())
    assert found is not None
    base = judge.objective
    system = System.model_validate({"name": "typed", **found.config})
    assert system.query_classes == ("a", "b", "hybrid")
    values = evaluate_systems([system], base.runs, [base.measure])[0].values[0]
    overall = base.evaluate_params([chosen.params])[0]
    mask = judge.split.held_out
    assert (values - overall)[mask].mean() == pytest.approx(found.over_global.difference)
    default = base.evaluate_params([base.default_params])[0]
    assert (values - default)[mask].mean() == pytest.approx(found.gain.difference)


def test_intents_that_differ_are_worth_their_own_numbers() -> None:
    base = opposed()
    runs = replace(
        base.runs,
        types=(None,) * QUERIES,
        records=tuple(
            Query(query, intent=kind)
            for query, kind in zip(base.runs.queries, base.runs.types, strict=True)
        ),
    )
    judge, _, found, asked = run(replace(base, runs=runs), BY_INTENT)
    assert found is not None
    assert (found.verdict, found.key, found.field) == ("ship", "by_intent", "intent")
    assert [name for name, _ in asked] == ["a", "b"]
    system = System.model_validate({"name": "by intent", **found.config})
    assert system.class_key is BY_INTENT
    assert system.query_classes == ("a", "b", "default")
    values = evaluate_systems([system], runs, [base.measure])[0].values[0]
    default = base.evaluate_params([base.default_params])[0]
    mask = judge.split.held_out
    assert (values - default)[mask].mean() == pytest.approx(found.gain.difference)


def test_types_that_do_not_differ_are_not_worth_it() -> None:
    base = problem(runs=aligned(QUERIES, types=["ab"[q % 2] for q in range(QUERIES)]))
    _, _, found, _ = run(base)
    assert found is not None
    assert found.verdict != "ship"


def test_a_type_with_too_few_queries_keeps_the_numbers_for_all() -> None:
    types = ["a" if q < 156 else "b" for q in range(QUERIES)]
    judge, chosen, found, asked = run(problem(runs=aligned(QUERIES, types=types)))
    assert found is not None
    assert [name for name, _ in asked] == ["a"]
    system = System.model_validate({"name": "typed", **found.config})
    assert system.of_class("hybrid").fusion == judge.objective.build_system(chosen.params).fusion


@pytest.mark.parametrize("types", [None, ["a"] * QUERIES])
def test_without_types_there_is_nothing_to_tune_by(types: list[str] | None) -> None:
    _, _, found, asked = run(problem(runs=aligned(QUERIES, types=types)))
    assert found is None
    assert asked == []


def test_what_cannot_differ_by_type_stays_as_it_was_chosen() -> None:
    base = opposed()
    ranges = {"depth.good": {"low": 1, "high": 8, "int": True}, "fusion.weights": "own"}
    wider = problem(base.system, ranges, runs=base.runs)
    _, chosen, found, _ = run(wider)
    assert found is not None
    assert all(
        set(one) == {"fusion.weights.good", "fusion.weights.bad"} for one in found.params.values()
    )
    assert found.config["depth"]["good"] == chosen.params["depth.good"]
