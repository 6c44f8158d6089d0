"""The search: the default and the presets first, then a sampler in batches.

The trials depend only on the objective, the settings and the seed; the clock decides only when to
stop. A resumed search goes through the same trials again and looks up their values.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fusion_bench.config.parameters import Params
from fusion_bench.data.fingerprint import Fingerprint
from fusion_bench.data.ordering import BoolArray
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.tune_settings import SearchSettings
from fusion_bench.measures.bounds import is_bounded
from fusion_bench.tune.search.grid import EXHAUSTIVE_SAMPLERS, grid_points
from fusion_bench.tune.search.samplers import OptunaProposer, check_sampler, optuna_sampler
from fusion_bench.tune.search.trial_lines import UNLIMITED
from fusion_bench.tune.search.trial_log import Trial, TrialLog, TrialOrigin
from fusion_bench.tune.space.objective import TuningObjective

#: Settings that may differ when a search is resumed: they decide when it ends.
RESUMABLE_SETTINGS: Final = {"trials", "timeout"}

TrialCallback = Callable[[Trial, Trial], None]


def ignore_trial(_trial: Trial, _best: Trial) -> None:
    """The callback that does nothing."""


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
    keep: BoolArray,
    settings: SearchSettings,
    *,
    on_trial: TrialCallback = ignore_trial,
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
    part = select_queries(objective, keep)
    record = open_trial_log(log, part, settings)
    interrupted = False
    try:
        _evaluate_trials(part, settings, record, on_trial)
    except KeyboardInterrupt:
        if not record.trials:
            raise
        interrupted = True
    return SearchResult(tuple(record.trials), interrupted)


def select_queries(objective: TuningObjective, keep: BoolArray) -> TuningObjective:
    """The objective on the queries where ``keep``, shape (Q,), is true.

    Raises:
        ConfigError: The default cannot be computed there.
    """
    part = objective.subset_queries(keep)
    if (reason := part.failure_reason(part.default_params)) is not None:
        raise ConfigError(f"tune: the default cannot be computed: {reason}")
    return part


def open_trial_log(
    path: Path | None, objective: TuningObjective, settings: SearchSettings
) -> TrialLog:
    """The log of a search.

    Args:
        path: The file; None = in memory only.
        objective: On the queries that are searched on.
        settings: Of the search.

    Raises:
        FusionBenchError: The file belongs to another search, or a line was edited.
    """
    if path is None:
        return TrialLog()
    limits = (0.0, 1.0) if is_bounded(objective.measure.name) else UNLIMITED
    return TrialLog(path, search_fingerprint(objective, settings), limits)


def search_fingerprint(objective: TuningObjective, settings: SearchSettings) -> Fingerprint:
    """All that decides the trials of a search and their values."""
    rules = settings.model_dump(mode="json", exclude=RESUMABLE_SETTINGS)
    return objective.fingerprint | Fingerprint.of_settings(rules)


def _evaluate_trials(
    part: TuningObjective,
    settings: SearchSettings,
    log: TrialLog,
    on_trial: TrialCallback,
) -> None:
    """The default, the presets, and what the sampler proposes."""
    deadline = time.monotonic() + (settings.timeout or math.inf)
    best: Trial | None = None

    def evaluate(batch: Sequence[Params], origin: TrialOrigin) -> list[float]:
        nonlocal best
        done = log.evaluate_params(part, batch, origin)
        for trial in done:
            best = max(best or trial, trial, key=lambda trial: trial.value)
            on_trial(trial, best)
        return [trial.value for trial in done]

    def room() -> int:
        """How many trials the next batch has."""
        in_time = time.monotonic() < deadline
        return min(settings.batch, settings.trials - len(log.trials)) if in_time else 0

    default = part.default_params
    evaluate([default], "default")  # as it is written, its weights not normalized
    presets = [params for params in part.preset_params if params != default]
    evaluate(list(map(part.normalize_weights, presets[: settings.trials - 1])), "seed")
    tried = [(t.params, t.value) for t in log.trials if part.contains(t.params)]
    if settings.sampler in EXHAUSTIVE_SAMPLERS:
        known = [params for params, _ in tried]
        points = grid_points(part.parameters, settings, part.normalize_weights)
        fresh = (params for params in points if params not in known)
        while batch := list(itertools.islice(fresh, room())):
            evaluate(batch, "sampler")
        return
    check_sampler(part.parameters, settings.sampler)
    proposer = OptunaProposer(part.parameters, optuna_sampler(settings.sampler, settings.seed))
    proposer.add_trials(tried)
    while count := room():
        proposer.tell(evaluate(list(map(part.normalize_weights, proposer.ask(count))), "sampler"))
