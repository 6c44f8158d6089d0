"""Quality against effort: depths, the search of a front, and its efficient points."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusion_bench.data.query_splits import QuerySplit, hashed_split
from fusion_bench.experiment.settings import (
    DeclaredCost,
    EffortSettings,
    FrontSettings,
    TuneSettings,
)
from fusion_bench.report.tuning_records import ParetoFront, ParetoPoint
from fusion_bench.tune.held_out import HeldOutEvaluation
from fusion_bench.tune.objective import TuningObjective
from fusion_bench.tune.pareto import (
    ParetoSearch,
    at_depth,
    candidate_params,
    depth_ladder,
    is_efficient,
    max_rerank_depth,
    reranker_names,
    set_in_blends,
)
from fusion_bench.tune.search import OptunaProposer, SearchResult, optuna_sampler, run_search
from tests.tune.cases import aligned
from tests.tune.problems import BLEND, problem, system
from tests.tune.test_rerank_cost import meta

SEARCH = FrontSettings(trials=24, depths=(0, 1, 2, 4, 8, 12, 20))
TUNING = TuneSettings(
    system="tuned",
    trials=12,
    sampler="random",
    folds=0,
    batch=8,
    effort=EffortSettings(price=2.0, seconds=0.01),
    front=SEARCH,
)
RUNS = aligned(60, depth=12)


@pytest.fixture(scope="module")
def base() -> TuningObjective:
    return problem(system(blend=BLEND), runs=RUNS)


def split_of(base: TuningObjective) -> QuerySplit:
    return hashed_split(base.runs.groups, base.runs.types, split_seed="s")


def judge(base: TuningObjective, **changed: Any) -> HeldOutEvaluation:  # noqa: ANN401
    return HeldOutEvaluation(base, split_of(base), TUNING.model_copy(update=changed))


@pytest.fixture(scope="module")
def study(base: TuningObjective) -> SearchResult:
    return run_search(base, split_of(base).tune, TUNING.search_settings())


@pytest.fixture(scope="module")
def front(base: TuningObjective, study: SearchResult) -> ParetoFront:
    return found(ParetoSearch(judge(base)), study)


def found(find: ParetoSearch, study: SearchResult) -> ParetoFront:
    front = find.run(study, study.best_trial)
    assert front is not None
    return front


def role(front: ParetoFront, name: str) -> ParetoPoint:
    (point,) = [point for point in front.points if name in point.roles]
    return point


def by_depth(front: ParetoFront) -> dict[int, ParetoPoint]:
    ordered = sorted(front.points, key=lambda point: point.value)
    return {point.depth: point for point in ordered}


def test_each_point_is_what_its_numbers_are_worth(
    base: TuningObjective, front: ParetoFront
) -> None:
    split = split_of(base)
    default = base.evaluate_params([base.default_params])[0]
    best = max(front.efficient_points, key=lambda point: point.value)
    top = base.evaluate_params([best.params])[0]
    rows = [base.evaluate_params([point.params])[0] for point in front.points]
    evaluation = judge(base)
    families = [
        evaluation.estimate_family([evaluation.pair_values(row, other) for row in rows])
        for other in (default, top)
    ]
    for point, values, *expected in zip(front.points, rows, *families, strict=True):
        assert point.value == pytest.approx(values[split.tune].mean())
        assert point.held_out == pytest.approx(values[split.held_out].mean())
        for said, gain in zip((point.over_default, point.over_best), expected, strict=True):
            assert (said.mean, said.low, said.high) == (gain.difference, gain.low, gain.high)


def test_every_depth_up_to_the_pool_is_there_with_its_effort(front: ParetoFront) -> None:
    points = by_depth(front)
    assert sorted(points) == [0, 1, 2, 4, 5, 8, 12], "5 is the default's; 20 is beyond the pool"
    for depth, point in points.items():
        assert point.candidates == depth
        assert point.cost == pytest.approx(2.0 * depth)
        assert point.seconds == pytest.approx(0.01 * depth)
        assert point.reranker == ("sharp" if depth else None)
    assert points[12].value > points[0].value, "the rerank list is the best list"


def test_no_depth_is_worse_than_what_is_taken_to_it(
    base: TuningObjective, study: SearchResult, front: ParetoFront
) -> None:
    split, points = split_of(base), by_depth(front)
    for depth in points:
        settings = [
            at_depth(base, params, depth)
            for params in candidate_params(base, study, study.best_trial)
        ]
        values = base.evaluate_params([one for one in settings if one is not None])
        assert points[depth].value >= values[:, split.tune].mean(axis=1).max() - 1e-12


def test_default_and_choice_are_there_wherever_they_stand(
    base: TuningObjective, study: SearchResult, front: ParetoFront
) -> None:
    assert role(front, "default").params == dict(base.default_params)
    assert role(front, "default").over_default.mean == 0
    assert role(front, "chosen").params == dict(study.best_trial.params)


def test_nothing_on_the_front_is_beaten_by_any_point(front: ParetoFront) -> None:
    for point in front.points:
        beaten = [
            other
            for other in front.points
            if other.candidates <= point.candidates
            and other.value >= point.value
            and (other.candidates, other.value) != (point.candidates, point.value)
        ]
        assert point.efficient == (not beaten)
    assert any(point.efficient and point.depth == 0 for point in front.points)


def test_held_out_queries_choose_nothing(
    base: TuningObjective, study: SearchResult, front: ParetoFront
) -> None:
    split = split_of(base)
    grades = base.runs.grades.copy()
    hidden = split.held_out[base.runs.query_index]
    grades[hidden] = 1 - np.minimum(grades[hidden], 1)
    other = replace(base, runs=replace(base.runs, grades=grades))
    again = found(ParetoSearch(judge(other)), study)
    chosen = [(p.params, p.value, p.efficient) for p in front.points]
    assert [(p.params, p.value, p.efficient) for p in again.points] == chosen
    assert [p.held_out for p in again.points] != [p.held_out for p in front.points]


def test_a_seed_makes_it_the_same_again_and_a_record_saves_the_work(
    base: TuningObjective, study: SearchResult, front: ParetoFront, tmp_path: Path
) -> None:
    log = tmp_path / "trials-front.jsonl"
    find = ParetoSearch(judge(base), log=log)
    assert found(find, study) == front
    whole = log.read_bytes()
    lines = whole.splitlines(keepends=True)
    assert len(lines) > SEARCH.trials
    log.write_bytes(b"".join(lines[: len(lines) // 2]) + b'{"numb')  # killed in mid-line
    assert found(find, study) == front
    assert log.read_bytes() == whole
    broken = replace(base, runs=replace(base.runs, spaces={"sharp": "order"}))
    values = [json.loads(line)["value"] for line in lines[1:]]
    assert found(ParetoSearch(judge(base), log=log), study).evaluations >= len(values)
    with pytest.raises(Exception, match="another search"):
        found(ParetoSearch(judge(broken), log=log), study)


@pytest.mark.parametrize("method", ["nsga2", "depths"])
def test_other_ways_to_look_for_it(
    base: TuningObjective, study: SearchResult, front: ParetoFront, method: str
) -> None:
    rules = SEARCH.model_copy(update={"method": method})
    other = found(ParetoSearch(judge(base, front=rules)), study)
    assert other.method == method
    assert sorted(by_depth(other)) == sorted(by_depth(front))
    fewer = method == "depths"
    assert other.evaluations == front.evaluations - (SEARCH.trials if fewer else 0)


def test_the_sampler_is_told_value_and_effort(monkeypatch: pytest.MonkeyPatch) -> None:
    """A space whose whole front is known: x is worth x and takes x."""
    made: list[optuna.Study] = []
    create = optuna.create_study

    def create_and_keep(**how: Any) -> optuna.Study:  # noqa: ANN401
        made.append(create(**how))
        return made[-1]

    monkeypatch.setattr(optuna, "create_study", create_and_keep)
    base = problem(system(blend=BLEND), {"blend.beta": {"low": 0, "high": 1}})
    sampler = optuna_sampler("tpe", 1)
    proposer = OptunaProposer(base.parameters, sampler, ["maximize", "minimize"])
    asked: list[float] = []
    for _ in range(3):
        batch = [float(str(params["blend.beta"])) for params in proposer.ask(7)]
        proposer.tell([(x, x) if x > 0.1 else None for x in batch])
        asked += batch
    (study,) = made
    told = [trial.values for trial in study.trials if trial.values is not None]
    assert told == [[x, x] for x in asked if x > 0.1]
    assert len(study.best_trials) == len(told), "every one of them is efficient"


def test_ctrl_c_keeps_what_was_found(base: TuningObjective, study: SearchResult) -> None:
    def stop(done: int, total: int) -> None:
        assert done <= total
        if done >= 20:
            raise KeyboardInterrupt

    cut = found(ParetoSearch(judge(base), on_progress=stop), study)
    assert cut.interrupted
    assert role(cut, "default").params == dict(base.default_params)


def test_no_front_without_a_reranker_or_where_none_is_asked_for(
    base: TuningObjective, study: SearchResult
) -> None:
    plain = problem(runs=RUNS)
    other = run_search(
        plain, split_of(plain).tune, TUNING.search_settings().model_copy(update={"trials": 2})
    )
    assert ParetoSearch(judge(plain)).run(other, other.best_trial) is None
    none = ParetoSearch(judge(base, front=FrontSettings(method="none")))
    assert none.run(study, study.best_trial) is None


def test_query_types_get_one_depth_together() -> None:
    runs = aligned(60, depth=12, types=["a", "b"] * 30)
    blend = {"by_query_type": {"a": BLEND, "hybrid": {**BLEND, "depth": 3}}}
    base = problem(system(blend=blend), runs=runs)
    study = run_search(base, split_of(base).tune, TUNING.search_settings())
    front = found(ParetoSearch(judge(base)), study)
    points = by_depth(front)
    assert set(points) >= {0, 1, 4, 12}
    typed = points[12].config["by_query_type"]
    assert {one["blend"]["depth"] for one in typed.values()} == {12}
    assert points[12].candidates == 12
    default = role(front, "default")
    assert default.depth == 5, "the deepest"
    assert default.candidates == pytest.approx(4.0, abs=0.2)


def test_rerankers_that_the_space_allows_are_compared_by_what_is_known_of_all() -> None:
    runs = replace(two_rerankers(), spaces={"sharp": "unbounded", "blunt": "unbounded"})
    ranges = {"blend.reranker": {"choices": ("sharp", "blunt")}, "blend.beta": "own"}
    base = problem(system(blend=BLEND), ranges, runs=runs)
    study = run_search(base, split_of(base).tune, TUNING.search_settings())
    effort = EffortSettings(price=9.0, rerankers={"blunt": DeclaredCost(price=0.1, seconds=0.5)})
    priced = found(ParetoSearch(judge(base, effort=effort)), study)
    assert priced.axes == ("cost",)
    assert {one.reranker for one in priced.efforts} == {"sharp", "blunt"}
    assert {point.reranker for point in priced.points} == {"sharp", "blunt", None}
    costs = [point.cost for point in priced.efficient_points]
    assert costs == sorted(costs, key=lambda cost: cost or 0.0)
    values = [point.value for point in priced.efficient_points]
    assert values == sorted(values)

    counted = found(ParetoSearch(judge(base, effort=EffortSettings())), study)
    assert counted.axes == ("candidates",)
    for name in ("sharp", "blunt"):
        one = [p for p in counted.points if p.reranker == name]
        best = max(one, key=lambda point: (point.value, -point.candidates))
        better_none = any(p.value >= best.value for p in counted.points if p.reranker is None)
        assert best.efficient != better_none, "one's candidates are not the other's"


def two_rerankers() -> Any:  # noqa: ANN401
    rng = np.random.default_rng(3)
    blunt = RUNS.rerank[0] + 0.8 * rng.normal(size=RUNS.rerank.shape[1])
    ranks = np.concatenate(
        [
            (-blunt[a:b]).argsort().argsort() + 1
            for a, b in zip(RUNS.offsets, RUNS.offsets[1:], strict=False)
        ]
    )
    return replace(
        RUNS,
        rerankers=("sharp", "blunt"),
        rerank=np.array([RUNS.rerank[0], blunt]),
        rerank_ranks=np.array([RUNS.rerank_ranks[0], ranks], dtype=RUNS.rerank_ranks.dtype),
    )


def test_a_ledger_prices_by_the_call(base: TuningObjective, study: SearchResult) -> None:
    """One unit a call of up to 50: every depth costs the same, so the deepest is worth it."""
    ledger = meta(searches=100, cost=0.2, call_ms={"p50": 60, "p95": 120})
    front = found(ParetoSearch(judge(base), {"sharp": ledger}), study)
    points = by_depth(front)
    assert [points[d].cost for d in (1, 4, 12)] == pytest.approx([2.0] * 3)
    assert [points[d].seconds for d in (1, 4, 12)] == pytest.approx([0.06] * 3)
    assert points[0].cost == 0.0
    assert front.efforts[0].cost == "ledger"
    assert front.efforts[0].declared_price == 2.0


def test_a_depth_without_scores_is_left_out(base: TuningObjective, study: SearchResult) -> None:
    rerank = base.runs.rerank.copy()
    ranks = base.runs.rerank_ranks.copy()
    low = base.runs.ranks[0] == 12  # the last of the good source, which fusion rarely puts on top
    rerank[0, low], ranks[0, low] = np.nan, 0
    runs = replace(base.runs, rerank=rerank, rerank_ranks=ranks)
    points = by_depth(found(ParetoSearch(judge(replace(base, runs=runs))), study))
    assert 12 not in points
    assert {0, 1} <= set(points)


TYPED = {"by_query_type": {"a": BLEND, "b": "none", "hybrid": {**BLEND, "depth": 3}}}


def test_another_depth_changes_the_depth_and_nothing_else() -> None:
    base = problem(system(blend=BLEND))
    params = at_depth(base, base.default_params, 7)
    assert params is not None
    found = base.build_system(params)
    assert found.blend.model_dump() == {**base.system.blend.model_dump(), "depth": 7}
    assert max_rerank_depth(found) == 7
    same = at_depth(base, base.default_params, max_rerank_depth(base.system))
    assert same is not None
    values = base.evaluate_params([base.default_params, same])
    assert (values[0] == values[1]).all()


def test_every_query_type_that_reranks_gets_the_depth() -> None:
    base = problem(system(blend=TYPED), runs=aligned(types=["a", "b"] * 12))
    params = at_depth(base, base.default_params, 4)
    assert params is not None
    found = base.build_system(params)
    assert found.by_query_type is not None
    own = {name: one.blend for name, one in found.by_query_type.items()}
    assert own["a"].model_dump()["depth"] == own["hybrid"].model_dump()["depth"] == 4
    assert own["b"].method == "none"
    none = at_depth(base, base.default_params, 0)
    assert none is not None
    assert max_rerank_depth(base.build_system(none)) == 0


def test_a_depth_in_the_space_is_replaced_under_whatever_name() -> None:
    ranges = {"blend.depth": {"choices": (2, 6)}, "blend.beta": "own"}
    base = problem(system(blend=BLEND), ranges)
    params = at_depth(base, {"blend.depth": 2, "blend.beta": 0.5}, 6)
    assert params == {"blend.depth": 6, "blend.beta": 0.5}


def test_another_reranker_is_another_reranker() -> None:
    base = problem(system(blend=BLEND))
    found = base.build_system(set_in_blends(base, base.default_params, "reranker", "other"))
    assert found.blend.reranker_name == "other"
    ranges = {"blend.reranker": {"choices": ("sharp", "other")}}
    assert reranker_names(problem(system(blend=BLEND), ranges)) == ("other", "sharp")
    assert reranker_names(problem()) == ()


@pytest.mark.parametrize(
    ("ranges", "expected"),
    [
        (None, (0, 1, 2, 3, 5, 7, 10)),
        ({"blend.depth": {"choices": (2, 6)}}, (0, 2, 5, 6, 8)),
        ({"blend.depth": {"low": 4, "high": 7, "int": True}}, (0, 4, 5, 6, 7, 8)),
        ({"blend.depth": {"low": 2, "high": 8, "int": True, "step": 3}}, (0, 2, 5, 8)),
    ],
)
def test_depths_are_those_of_the_space_and_none_beyond_the_pool(
    ranges: dict[str, dict[str, object]] | None, expected: tuple[int, ...]
) -> None:
    base = problem(system(blend=BLEND), ranges)
    also = [max_rerank_depth(base.system)] if ranges is None else [5, 8]
    assert depth_ladder(base, None, also) == expected


Point = tuple[tuple[int, int], int]
POINTS = st.lists(st.tuples(st.tuples(st.integers(0, 4), st.integers(0, 4)), st.integers(0, 5)))


def beats(one: Point, other: Point) -> bool:
    pairs = zip(one[0], other[0], strict=True)
    return one != other and all(a <= b for a, b in pairs) and one[1] >= other[1]


@given(POINTS)
def test_what_is_on_the_front_is_what_nothing_beats(points: list[Point]) -> None:
    effort = np.array([effort for effort, _ in points], dtype=float).reshape(len(points), 2)
    found = is_efficient(effort, np.array([value for _, value in points], dtype=float))
    assert found.tolist() == [not any(beats(p, one) for p in points) for one in points]
