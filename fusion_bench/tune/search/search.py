"""The search: the default and the presets first, then a sampler in batches.

The trials depend only on the objective, the settings and the seed; the clock decides only when to
stop. A resumed search goes through the same trials again and looks up their values.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fusion_bench.config.parameters import Params
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.tune_settings import SearchSettings
from fusion_bench.tune.search.samplers import make_proposer
from fusion_bench.tune.search.trial_log import Trial, TrialLog, TrialOrigin
from fusion_bench.tune.space.objective import TuningObjective

#: Settings that may differ when a search is resumed: they decide when it ends.
RESUMABLE_SETTINGS: Final = {"trials", "timeout"}

TrialCallback = Callable[[Trial, Trial], None]


@dataclass(frozen=True, eq=False)
class SearchResult:
    """The trials of a search.

    Attributes:
        trials: In the order in which they were asked for; the default is the first.
        interrupted: It was stopped before it was done.
    """

    trials: tuple[Trial, ...]
    interrupted: bool = False

    @property
    def default_trial(self) -> Trial:
        """The system as it is written."""
        return self.trials[0]

    @property
    def best_trial(self) -> Trial:
        """The best; of equally good ones the first, so that nothing changes without a gain."""
        return max((t for t in self.trials if not t.is_failed), key=lambda trial: trial.value)


def run_search(
    objective: TuningObjective,
    keep: NDArray[np.bool_],
    settings: SearchSettings,
    *,
    on_trial: TrialCallback | None = None,
    log: Path | None = None,
) -> SearchResult:
    """Search a space on some of the queries.

    Args:
        objective: What is tuned.
        keep: Shape (Q,): the queries that may be looked at; the others are not even loaded.
        settings: Of the search.
        on_trial: Called after each trial with it and the best so far.
        log: Where finished trials are written, and looked up when the search was cut short.

    Raises:
        ConfigError: The default itself cannot be computed, the sampler cannot search this space,
            or the log belongs to another search.
    """
    part = objective.subset_queries(keep)
    if (reason := part.failure_reason(part.default_params)) is not None:
        raise ConfigError(f"tune: the default cannot be computed: {reason}")
    record = TrialLog(log, search_fingerprint(part, settings)) if log is not None else None
    run = _TrialRecorder(part, record, on_trial)
    interrupted = False
    started = time.monotonic()
    try:
        _ask_and_tell(run, part, settings, started)
    except KeyboardInterrupt:
        if not run.trials:
            raise
        interrupted = True
    return SearchResult(tuple(run.trials), interrupted)


def search_fingerprint(objective: TuningObjective, settings: SearchSettings) -> str:
    """SHA-256 of all that decides the trials of a search."""
    rules = settings.model_dump(mode="json", exclude=RESUMABLE_SETTINGS)
    return hashlib.sha256(repr((objective.fingerprint, sorted(rules.items()))).encode()).hexdigest()


def mean_values(
    objective: TuningObjective, batch: Sequence[Params], log: TrialLog | None
) -> list[float]:
    """The mean of each parameter set, from the log where it has it."""
    logged = [None if log is None else log.find_value(params) for params in batch]
    new = [params for params, value in zip(batch, logged, strict=True) if value is None]
    means = iter(objective.evaluate_params(new).mean(axis=1).tolist() if new else ())
    return [next(means) if value is None else value for value in logged]


def _ask_and_tell(
    run: _TrialRecorder, objective: TuningObjective, settings: SearchSettings, started: float
) -> None:
    seeds = [params for params in objective.preset_params if params != objective.default_params]
    run.evaluate_trials([objective.default_params], "default")
    run.evaluate_trials(seeds[: settings.trials - 1], "seed")
    proposer = make_proposer(objective.parameters, settings, objective.normalize_weights)
    proposer.add_trials([(t.params, t.value) for t in run.trials if objective.contains(t.params)])

    def in_time() -> bool:
        return settings.timeout is None or time.monotonic() - started < settings.timeout

    while in_time() and len(run.trials) < settings.trials:
        proposed = proposer.ask(min(settings.batch, settings.trials - len(run.trials)))
        if not proposed:
            break
        proposer.tell([trial.value for trial in run.evaluate_trials(proposed, "sampler")])


class _TrialRecorder:
    """Evaluates batches and records their trials."""

    def __init__(
        self,
        objective: TuningObjective,
        log: TrialLog | None,
        on_trial: TrialCallback | None,
    ) -> None:
        self.trials: list[Trial] = []
        self._objective = objective
        self._log = log
        self._on_trial = on_trial
        self._best: Trial | None = None

    def evaluate_trials(self, proposed: Sequence[Params], origin: TrialOrigin) -> list[Trial]:
        """Evaluate what the log does not have, record it, and call back.

        Weights are normalized where only their ratio counts, except in the default.
        """
        batch = proposed
        if origin != "default":
            batch = [self._objective.normalize_weights(params) for params in proposed]
        values = mean_values(self._objective, batch, self._log)
        start = len(self.trials)
        done = [
            Trial(number, dict(params), value, origin)
            for number, (params, value) in enumerate(zip(batch, values, strict=True), start)
        ]
        self.trials += done  # before the log, so that Ctrl-C between the two loses nothing
        if self._log is not None:
            self._log.add_trials(done)
        for trial in done:
            self._notify(trial)
        return done

    def _notify(self, trial: Trial) -> None:
        if self._best is None or trial.value > self._best.value:
            self._best = trial
        if self._on_trial is not None:
            self._on_trial(trial, self._best)
