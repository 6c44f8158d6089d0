"""The objective: normalized weights, trials of the lists."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fusion_bench.config.parameters import Params
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.settings import SearchSettings
from fusion_bench.experiment.system import System
from fusion_bench.ranking.system_ranking import rank_candidates
from fusion_bench.tune.objective import TuningObjective, find_free_weights
from fusion_bench.tune.search import run_search
from fusion_bench.tune.sensitivity import reset_means, reset_parameter, sample_uniformly
from fusion_bench.tune.shared_study import search_shared_study
from tests.examples import examples
from tests.tune.cases import aligned
from tests.tune.problems import BLEND, problem, system

RUNS = aligned(12, types=["a", None] * 6)
WEIGHTS = {"fusion.weights": "own"}
GOOD, BAD = "fusion.weights.good", "fusion.weights.bad"
V2 = {"method": "rrf_v2"}
NO_BONUS = {**V2, "bonus": {}}
CLAMPED = {"method": "rrf", "normalize": "three_lists"}
DIVIDED = {"method": "rrf", "normalize": "max_possible"}
MEAN = {"method": "weighted_score", "normalize": "min_max"}
SHARE = {"low": 0, "high": 1}


def blend(retrieval: str, **rest: Any) -> dict[str, Any]:  # noqa: ANN401 - as YAML
    return {**BLEND, "beta": 0.5, "retrieval": retrieval, **rest}


FREE = [
    system(),
    system(blend={"method": "replace", "reranker": "sharp", "depth": 4}),
    system(blend=blend("fused_min_max")),
    system(blend=blend("fused_max_possible")),
    system(blend=blend("reciprocal_rank")),
    system(CLAMPED, blend("reciprocal_rank")),
    system(NO_BONUS, blend("fused_min_max")),
    system(DIVIDED, blend("fused"), min_relevance=0.3),
    system(MEAN, blend("fused"), min_relevance=0.3),
    system(MEAN),
]
BOUND = [
    system(V2),
    system(blend=blend("fused")),
    system(min_relevance=0.01),
    system(CLAMPED, blend("fused_min_max")),
    system({**V2, "bonus_unit": "relative"}),
]


@pytest.mark.parametrize("default", FREE, ids=lambda one: f"{one.fusion} {one.blend}"[:60])
@settings(max_examples=examples(8))
@given(
    st.permutations([1.0, 0.0, 0.125, 0.7, 0.999]),
    st.sampled_from([0.003, 0.25, 1 / 3, 1.37, 1.999]),
)
def test_the_raw_form_and_the_one_form_rank_alike(
    default: System, ratio: list[float], factor: float
) -> None:
    one = problem(default, WEIGHTS, runs=RUNS)
    top = max(ratio[:2])
    assume(ratio[0] or default.fusion.method != "rrf_v2")  # which needs the question's source
    weights = {GOOD: ratio[0] / top * factor, BAD: ratio[1] / top * factor}
    form = one.normalize_weights(weights)
    assert max(form.values()) == 1.0  # type: ignore[type-var]
    raw, neat = (
        rank_candidates(one.build_system(params), RUNS) for params in (weights, exact(weights))
    )
    np.testing.assert_array_equal(raw.positions, neat.positions)
    assert one.normalize_weights(form) == form
    for path in (GOOD, BAD):
        assert form[path] == pytest.approx(exact(weights)[path], rel=5e-4)


def exact(weights: dict[str, float]) -> dict[str, float]:
    return {path: weight / max(weights.values()) for path, weight in weights.items()}


@pytest.mark.parametrize("default", BOUND, ids=lambda one: f"{one.fusion} {one.blend}"[:60])
def test_weights_stay_where_their_scale_counts(default: System) -> None:
    one = problem(default, WEIGHTS, runs=RUNS)
    raw: Params = {GOOD: 0.5, BAD: 0.1}
    assert one.normalize_weights(raw) == raw
    assert not one.free_weights(raw)


@pytest.mark.parametrize(
    ("ranges", "raw", "form"),
    [
        ({GOOD: "own"}, {GOOD: 0.5}, {GOOD: 0.5}),  # the other stands at 1 and says what it means
        ({GOOD: SHARE, BAD: {**SHARE, "step": 0.25}}, {GOOD: 0.5, BAD: 0.25}, None),
        ({GOOD: SHARE, BAD: {"choices": [0.5, 1]}}, {GOOD: 0.25, BAD: 0.5}, None),
        (WEIGHTS, {GOOD: 0.0, BAD: 0.0}, None),
        (WEIGHTS, {GOOD: 0.0, BAD: 0.3}, {GOOD: 0.0, BAD: 1.0}),
        (WEIGHTS, {GOOD: 1.421, BAD: 1.514}, {GOOD: 0.9386, BAD: 1.0}),
        ({GOOD: {"low": 0, "high": 0.4}, BAD: SHARE}, {GOOD: 0.2, BAD: 0.1}, {GOOD: 0.4, BAD: 0.2}),
        ({GOOD: {"low": 2, "high": 9}, BAD: SHARE}, {GOOD: 3, BAD: 0.75}, {GOOD: 2.0, BAD: 0.5}),
        ({"fusion.weights.semantic": SHARE, BAD: SHARE}, {"fusion.weights.semantic": 0.5, BAD: 0.4}, {"fusion.weights.semantic": 1.0, BAD: 0.8}),  # noqa: E501 - a row
    ],
)  # fmt: skip
def test_the_form_keeps_to_the_space(ranges: dict[str, Any], raw: Params, form: Params) -> None:
    one = problem(ranges=ranges, runs=RUNS)
    found = one.normalize_weights(raw)
    assert found == (form or raw)
    assert list(found) == list(raw)
    assert one.contains(found) == one.contains(raw)
    assert one.normalize_weights(found) == found


def test_weights_by_type_are_each_types_own() -> None:
    shares = {"by_query_type": {"a": 1.0, "hybrid": 1.0}}
    typed = system({"method": "rrf", "weights": {"good": shares, "bad": shares}})
    paths = [
        f"by_query_type.{t}.fusion.weights.{s}" for t in ("a", "hybrid") for s in ("good", "bad")
    ]
    one = problem(typed, {path: {"low": 0, "high": 2} for path in paths}, runs=RUNS)
    raw = dict(zip(paths, (0.5, 0.25, 1.0, 2.0), strict=True))
    assert list(one.normalize_weights(raw).values()) == [1.0, 0.5, 0.5, 1.0]

    table = {"a": {"good": 0.5, "bad": 0.5}, "hybrid": {"good": 0.5, "bad": 0.5}}
    one = problem(system(weights_by_type=table), runs=RUNS)
    raw = {"weights_by_type.a.good": 0.9, "weights_by_type.a.bad": 0.3}
    raw |= {"weights_by_type.hybrid.good": 0.0, "weights_by_type.hybrid.bad": 0.2}
    form = one.normalize_weights({**one.default_params, **raw})
    assert [form[path] for path in raw] == [0.75, 0.25, 0.0, 1.0]
    np.testing.assert_array_equal(one.evaluate_params([raw]), one.evaluate_params([form]))


def test_what_is_remembered_of_a_kind_holds_for_all_of_it() -> None:
    methods = {
        "fusion.method": {"choices": ["rrf", "rrf_v2", "weighted_score"]},
        "blend.method": {"choices": ["none", "linear", "replace"]},
    }
    one = problem(system(V2, BLEND), methods, runs=RUNS)
    found = set()
    for params in sample_uniformly(one.parameters, 60, seed=1):
        free = find_free_weights(one.build_system(params), params, one.source_roles)
        assert one.free_weights(params) == free
        found.add(bool(free))
    assert found == {True, False}


@pytest.mark.parametrize("sampler", ["auto", "tpe", "grid"])
def test_every_trial_but_the_default_comes_in_one_form(sampler: str) -> None:
    default = system({"method": "rrf", "weights": {"good": 1.5, "bad": 1.5}})
    one = problem(default, {**WEIGHTS, "fusion.k": {"low": 1, "high": 9}}, runs=RUNS)
    keep = np.ones(len(RUNS.queries), dtype=bool)
    study = run_search(one, keep, SearchSettings(trials=24, sampler=sampler))
    assert study.default_trial.params[GOOD] == 1.5, "as the user wrote it"
    done = [t for t in study.trials[1:] if not t.is_failed]
    assert {t.origin for t in done} == {"sampler"}
    for trial in done:
        assert max(trial.params[GOOD], trial.params[BAD]) == 1.0  # type: ignore[type-var]
        assert trial.value == one.evaluate_params([trial.params]).mean()
    if sampler == "grid":
        tried = [repr(t.params) for t in study.trials if t.origin == "sampler"]
        assert len(set(tried)) == len(tried), "no system is tried under two names"


def test_a_shared_search_has_the_same_form(tmp_path: Path) -> None:
    one = problem(ranges=WEIGHTS, runs=RUNS)
    keep = np.ones(len(RUNS.queries), dtype=bool)
    url = f"sqlite:///{tmp_path / 'study.db'}"
    study = search_shared_study(one, keep, SearchSettings(trials=8, sampler="tpe"), url)
    for trial in study.trials[1:]:
        assert trial.is_failed or max(trial.params[GOOD], trial.params[BAD]) == 1.0  # type: ignore[type-var]
        assert trial.is_failed or trial.value == one.evaluate_params([trial.params]).mean()


LINEAR: Params = {"blend.method": "linear", "blend.retrieval": "fused", "blend.beta": 0.6}


def chosen_problem() -> TuningObjective:
    ranges = {
        **WEIGHTS,
        "fusion.k": {"low": 1, "high": 100},
        "blend.method": {"choices": ["none", "linear"]},
        "blend.beta": {"low": 0, "high": 1, "when": {"blend.method": "linear"}},
    }
    default = system(
        {"method": "rrf", "weights": {"good": 2.0, "bad": 1.0}}, {**BLEND, "beta": 0.6}
    )
    return problem(default, ranges, runs=RUNS)


def test_one_number_alone_goes_back_to_its_default() -> None:
    one = chosen_problem()
    chosen: Params = {GOOD: 1.0, BAD: 0.25, "fusion.k": 60, "blend.method": "none"}
    assert reset_parameter(one, chosen, GOOD) is None, "2 : 1 has its greatest at 1 as well"
    assert reset_parameter(one, chosen, BAD) == {**chosen, BAD: 0.5}
    assert reset_parameter(one, chosen, "fusion.k") is None
    assert reset_parameter(one, chosen, "blend.method") == {**chosen, **LINEAR}
    found = reset_means(one, chosen)
    assert set(found) == {BAD, "blend.method"}
    for path, mean in found.items():
        params = reset_parameter(one, chosen, path)
        assert params is not None
        assert mean == one.evaluate_params([params]).mean()


def test_nothing_goes_back_from_the_default_and_conditions_hold() -> None:
    one = chosen_problem()
    none = problem(system(), WEIGHTS, runs=RUNS)
    assert reset_means(none, none.default_params) == {}
    twice = system({"method": "rrf", "weights": {"good": 2.0, "bad": 2.0}})
    doubled = problem(twice, WEIGHTS, runs=RUNS)
    assert reset_means(doubled, doubled.default_params) == {}, (
        "as written, though not in the one form"
    )
    assert reset_means(doubled, {GOOD: 0.7, BAD: 0.7}) == {}
    chosen = {GOOD: 1.0, BAD: 0.5, "fusion.k": 60, **LINEAR, "blend.beta": 0.9}
    assert reset_parameter(one, chosen, "blend.beta") == {**chosen, "blend.beta": 0.6}
    assert reset_parameter(one, chosen, GOOD) == {**chosen, GOOD: 2.0}, "here the scale counts"


TRIALS = [aligned(seed=seed) for seed in range(3)]
PARAMS = [{"fusion.weights.good": weight} for weight in (0.5, 2.0)]


def objective(count: int) -> TuningObjective:
    counts = {"runs/good": count} if count > 1 else {}
    runs = replace(TRIALS[0], later=tuple(TRIALS[1:count]), repeat_counts=counts)
    return problem(ranges={"fusion.weights.good": {"low": 0.0, "high": 3.0}}, runs=runs)


def test_a_value_is_the_mean_over_trials() -> None:
    alone = [replace(objective(1), runs=runs).evaluate_params(PARAMS) for runs in TRIALS]
    assert np.ptp(alone, axis=0).max() > 0
    expected = np.mean(alone, axis=0)
    assert np.allclose(objective(3).evaluate_params(PARAMS), expected, rtol=0, atol=1e-15)
    keep = np.arange(len(TRIALS[0].queries)) % 3 > 0
    part = objective(3).subset_queries(keep)
    assert np.allclose(part.evaluate_params(PARAMS), expected[:, keep], rtol=0, atol=1e-15)


def test_each_trial_can_be_asked_for() -> None:
    repeated = objective(3)
    system = repeated.build_system(PARAMS[0])
    values = repeated.evaluate_by_repeat(system)
    assert values is not None
    for row, runs in zip(values, TRIALS, strict=True):
        alone = replace(objective(1), runs=runs).evaluate_params(PARAMS[:1])
        assert row.tolist() == alone[0].tolist()
    assert objective(1).evaluate_by_repeat(system) is None


def test_what_cannot_be_computed_on_one_trial_has_no_value() -> None:
    repeated, params = objective(2), {"fusion.weights.good": -1.0}
    assert np.isnan(repeated.evaluate_params([params, PARAMS[0]])[0]).all()
    assert repeated.failure_reason(params)
    with pytest.raises(ConfigError):
        repeated.build_system(params)
