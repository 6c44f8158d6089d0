"""A search over a trained fusion learns within its own queries, and in one process."""

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.settings import SearchSettings
from fusion_bench.tune.distribution import DistributedObjective, WorkerPool
from fusion_bench.tune.objective import TuningObjective
from fusion_bench.tune.search import SearchResult, run_search
from fusion_bench.tune.trial_selection import choose_trial
from tests.tune.cases import aligned
from tests.tune.problems import problem, system

SETTINGS = SearchSettings(trials=12, batch=4)
KEEP = np.arange(24) < 16
TRAINED = {"method": "prob_fuse", "segments": 2, "folds": 3}


def objective(runs: AlignedRuns) -> TuningObjective:
    return problem(system(fusion=TRAINED), runs=runs)


def search(runs: AlignedRuns) -> tuple[SearchResult, Any]:
    whole = objective(runs)
    result = run_search(whole, KEEP, SETTINGS)
    return result, choose_trial(whole, result, KEEP, "shrinkage")


def relabeled(runs: AlignedRuns, queries: np.typing.NDArray[np.bool_]) -> AlignedRuns:
    """The opposite judgments for these queries."""
    rows = queries[runs.query_index]
    return replace(runs, grades=np.where(rows, 1 - runs.grades, runs.grades))


def test_judgments_of_held_out_queries_change_no_trial_and_no_choice() -> None:
    runs = aligned()
    result, chosen = search(runs)
    again, chosen_again = search(relabeled(runs, ~KEEP))
    assert [(trial.params, trial.value) for trial in again.trials] == [
        (trial.params, trial.value) for trial in result.trials
    ]
    assert chosen_again == chosen
    assert len({trial.value for trial in result.trials}) > 1
    other, _ = search(relabeled(runs, KEEP))
    assert [trial.value for trial in other.trials] != [trial.value for trial in result.trials]


def test_workers_refuse_what_learns_from_all_queries() -> None:
    whole = objective(aligned())
    values: Any = {item.name: getattr(whole, item.name) for item in fields(TuningObjective)}
    distributed = DistributedObjective(**values, pool=WorkerPool([]), parts=())
    assert "--workers 1" in str(distributed.failure_reason(whole.default_params))
    with pytest.raises(ConfigError, match=r"all queries.*workers 1"):
        distributed.evaluate_params([whole.default_params])
