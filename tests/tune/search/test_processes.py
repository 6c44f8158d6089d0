from __future__ import annotations

import multiprocessing
import os
import signal

import numpy as np
import pytest

from fusion_bench.config.parameters import Params
from fusion_bench.errors import FusionBenchError
from fusion_bench.experiment.tune_settings import SearchSettings
from fusion_bench.tune.search import processes as workers
from fusion_bench.tune.search.processes import evaluators
from fusion_bench.tune.search.search import run_search
from tests.tune.cases import aligned
from tests.tune.problems import BLEND, problem, system

ONE = problem(system(blend=BLEND), runs=aligned(24))


def die(_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


TRIALS: list[Params] = [{"fusion.k": k, "blend.beta": 0.3} for k in (1, 5, 60, 200, 900)]


@pytest.mark.parametrize("count", [1, 2])
def test_the_number_of_processes_changes_nothing(count: int) -> None:
    with evaluators(ONE, count) as evaluate:
        assert np.array_equal(evaluate(TRIALS), ONE.evaluate_params(TRIALS))
        assert np.array_equal(evaluate(TRIALS[:1]), ONE.evaluate_params(TRIALS[:1]))


def test_a_trial_that_one_part_cannot_compute_is_none() -> None:
    # The better source's scores fall below 0 for some queries, where x / max is refused.
    one = problem(
        system({"method": "weighted_score", "normalize": "min_max"}),
        {"fusion.normalize.method": {"choices": ["min_max", "max"]}},
        runs=aligned(24, depth=2),
    )
    trials: list[Params] = [{"fusion.normalize.method": name} for name in ("max", "min_max")]
    with evaluators(one, 2) as evaluate:
        found = evaluate(trials)
    assert np.isnan(found[0]).all()
    assert np.array_equal(found[1], one.evaluate_params(trials)[1])


def test_a_search_in_several_processes_finds_the_same() -> None:
    keep = np.ones(24, dtype=bool)
    settings = SearchSettings(trials=16, batch=8)
    a, b = (run_search(ONE, keep, settings, workers=count) for count in (1, 2))
    assert a.trials == b.trials


def test_a_process_that_is_killed_is_replaced() -> None:
    before = set(multiprocessing.active_children())
    with evaluators(ONE, 2) as evaluate:
        evaluate(TRIALS)
        (victim, *_) = set(multiprocessing.active_children()) - before
        assert victim.pid is not None
        os.kill(victim.pid, signal.SIGKILL)
        victim.join()
        assert np.array_equal(evaluate(TRIALS), ONE.evaluate_params(TRIALS))
        assert victim.pid not in {child.pid for child in multiprocessing.active_children()}


def test_processes_that_die_for_ever_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "RETRIES", 1)
    monkeypatch.setattr(workers, "_start", die)
    with evaluators(ONE, 2) as evaluate, pytest.raises(FusionBenchError, match="fewer --workers"):
        evaluate(TRIALS)


def test_what_runs_inside_a_process_is_the_problem_itself() -> None:
    before = signal.getsignal(signal.SIGINT)
    try:
        workers._start(ONE)
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN  # the asking process ends it
        assert np.array_equal(workers._evaluate(TRIALS), ONE.evaluate_params(TRIALS))
        workers._problem = None
        with pytest.raises(FusionBenchError, match="without its problem"):
            workers._evaluate(TRIALS)
    finally:
        workers._problem = None
        signal.signal(signal.SIGINT, before)


def test_a_process_that_died_between_two_batches_is_replaced_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    helper = workers._Helper(ONE, np.arange(24))
    try:
        monkeypatch.setattr(helper._executor, "_broken", "killed while nobody looked")
        assert np.array_equal(helper.start(TRIALS).result(), ONE.evaluate_params(TRIALS))
    finally:
        helper.close()
