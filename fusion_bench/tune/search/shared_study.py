"""One search by many processes, through a database that Optuna keeps.

Every process runs the same command and starts trials until enough are finished. The trial of a
process without heartbeat fails, and another process repeats it. Only a search that one process
begins and ends repeats itself by its seed.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import numpy as np
import optuna
from numpy.typing import NDArray
from optuna.trial import FrozenTrial, TrialState

from fusion_bench.errors import ConfigError
from fusion_bench.experiment.tune_settings import SearchSettings
from fusion_bench.tune.search import samplers
from fusion_bench.tune.search.optuna_storage import open_storage
from fusion_bench.tune.search.search import SearchResult, TrialCallback, search_fingerprint
from fusion_bench.tune.search.trial_log import Trial
from fusion_bench.tune.space.objective import TuningObjective

#: What a trial notes: where its parameters come from, and the trial that its heartbeat is of.
ORIGIN, STARTED = "fusion_bench:origin", "fusion_bench:started"


def search_shared_study(
    objective: TuningObjective,
    keep: NDArray[np.bool_],
    settings: SearchSettings,
    url: str,
    *,
    on_trial: TrialCallback | None = None,
    heartbeat: tuple[int, int] = (10, 60),
) -> SearchResult:
    """Take part in a search until it is done: the trials of all processes, the default first.

    Args:
        objective: What is tuned.
        keep: Shape (Q,): the queries that may be looked at.
        settings: How; the same in every process, or it is another search.
        url: Of the database, as SQLAlchemy reads it.
        on_trial: Called after each trial of this process with it and the best so far.
        heartbeat: Seconds between two heartbeats, and until a process counts as dead.

    Raises:
        ConfigError: No such database, or the sampler or the default cannot be used.
    """
    part, interrupted = objective.subset_queries(keep), False
    deadline = time.monotonic() + (settings.timeout or math.inf)
    if (reason := part.failure_reason(part.default_params)) is not None:
        raise ConfigError(f"tune: the default cannot be computed: {reason}")
    if settings.sampler in {"grid", "brute_force"}:
        raise ConfigError(f"sampler {settings.sampler}: cannot be shared: use it without --storage")
    samplers.check_sampler(part.parameters, settings.sampler)
    default = part.default_params
    first = Trial(0, default, float(part.evaluate_params([default]).mean()), "default")
    with open_storage(url, heartbeat=heartbeat) as storage:
        study = _join_study(part, settings, storage)
        worker = _StudyWorker(part, settings.trials - 1, study, on_trial, first)
        try:
            worker.fail_dead_trials(heartbeat[1])
            worker.run_trials(deadline)
        except KeyboardInterrupt:
            interrupted = True
        finished = map(worker.convert_trial, worker.finished_trials())
        trials = (first, *(replace(trial, number=n) for n, trial in enumerate(finished, 1)))
    return SearchResult(trials, interrupted)


def _join_study(
    objective: TuningObjective, settings: SearchSettings, storage: optuna.storages.RDBStorage
) -> optuna.Study:
    """The study of this search; the process that makes it queues the presets."""
    sampler = samplers.optuna_sampler(settings)
    name = f"fusion_bench-{search_fingerprint(objective, settings)[:40]}"
    options: Any = {"storage": storage, "study_name": name, "sampler": sampler}
    try:
        study = optuna.create_study(direction="maximize", **options)
    except optuna.exceptions.DuplicatedStudyError:
        sampler.reseed_rng()  # or two processes would try the same points
        return optuna.load_study(**options)
    for params in objective.preset_params[: settings.trials - 1]:
        if objective.contains(params):
            study.enqueue_trial(dict(params), user_attrs={ORIGIN: "seed"})
    return study


@dataclass(eq=False)
class _StudyWorker:
    """One process's part in a search for so many trials."""

    objective: TuningObjective
    trials: int
    study: optuna.Study
    on_trial: TrialCallback | None
    best: Trial

    def fail_dead_trials(self, grace: float) -> None:
        """Fail the trials that never had a heartbeat: Optuna fails only those that had one."""
        latest = datetime.now() - timedelta(seconds=grace)
        for trial in self.study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
            has_heartbeat = trial.user_attrs.get(STARTED) == trial.number
            if not has_heartbeat and trial.datetime_start and trial.datetime_start < latest:
                self.study.tell(trial.number, state=TrialState.FAIL, skip_if_finished=True)

    def run_trials(self, deadline: float) -> None:
        """Evaluate trials until enough are finished, or time is up."""
        while len(self.finished_trials()) < self.trials and time.monotonic() < deadline:
            evaluated: list[Trial] = []
            try:
                self.study.optimize(partial(self._evaluate, evaluated), 1)
            except (AssertionError, ValueError):
                if not evaluated:
                    raise
                continue  # another process failed this trial: this one was suspended for too long
            self.best = max(self.best, evaluated[0], key=lambda trial: trial.value)
            if self.on_trial is not None:
                self.on_trial(evaluated[0], self.best)

    def finished_trials(self) -> list[FrozenTrial]:
        """Of all processes; a pruned trial is one that could not be computed."""
        return self.study.get_trials(False, (TrialState.COMPLETE, TrialState.PRUNED))

    def convert_trial(self, trial: FrozenTrial) -> Trial:
        """A trial of the database, its parameters as they were evaluated."""
        params = samplers.round_params(trial.params, self.objective.parameters)
        value = math.nan if trial.value is None else trial.value
        origin = trial.user_attrs.get(ORIGIN, "sampler")
        return Trial(trial.number, self.objective.normalize_weights(params), value, origin)

    def _evaluate(self, evaluated: list[Trial], trial: optuna.Trial) -> float:
        trial.set_user_attr(STARTED, trial.number)
        params = samplers.suggest_params(trial, self.objective.parameters)
        params = self.objective.normalize_weights(params)
        value = float(self.objective.evaluate_params([params]).mean())
        origin = trial.user_attrs.get(ORIGIN, "sampler")
        evaluated.append(Trial(trial.number, params, value, origin))
        if math.isnan(value):
            raise optuna.TrialPruned
        return value
