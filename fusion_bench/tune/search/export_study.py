"""A finished search as a study in an Optuna database."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import replace

import optuna
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from fusion_bench.config.parameters import Parameter, Value
from fusion_bench.errors import ConfigError, FusionBenchError
from fusion_bench.tune.search.samplers import optuna_distribution, silence_experimental_warnings
from fusion_bench.tune.search.search import SearchResult
from fusion_bench.tune.search.shared_study import explain_damage, open_storage
from fusion_bench.tune.search.trial_log import Trial
from fusion_bench.tune.space.objective import TuningObjective


def export_search(result: SearchResult, objective: TuningObjective, url: str, name: str) -> int:
    """Write a finished search to an Optuna storage, all trials at once.

    Args:
        result: The search.
        objective: What was tuned.
        url: Of the database, such as ``sqlite:///study.db``; optuna-dashboard reads it.
        name: Of the study there. The trials that an earlier call wrote there are kept.

    Returns:
        How many trials were written: all of them.

    Raises:
        ConfigError: There is a study of that name with other trials, or the database cannot be
            reached.
    """
    trials = [_frozen_trial(trial, objective) for trial in result.trials]
    with open_storage(url) as storage, explain_damage(url):
        study = optuna.create_study(
            storage=storage, study_name=name, direction="maximize", load_if_exists=True
        )
        stored = study.get_trials()
        is_start = len(stored) <= len(trials) and all(map(_is_same, stored, trials))
        if not is_start or study.direction != optuna.study.StudyDirection.MAXIMIZE:
            raise ConfigError(
                f"export: the database has another study {name!r} already: remove it, or write "
                "elsewhere"
            )
        study.add_trials(trials[len(stored) :])
    return len(trials)


def _is_same(stored: FrozenTrial, trial: FrozenTrial) -> bool:
    """Whether a stored trial is what an export of another one stores."""
    fields = ("state", "values", "params", "user_attrs")
    return all(getattr(stored, name) == getattr(trial, name) for name in fields)


def build_study(trials: Iterable[Trial], objective: TuningObjective, name: str) -> Study:
    """A finished search as a study of Optuna in memory.

    Args:
        trials: Its trials.
        objective: What was tuned.
        name: Of the study.
    """
    with silence_experimental_warnings():
        storage = optuna.storages.InMemoryStorage()
        study = optuna.create_study(storage=storage, study_name=name, direction="maximize")
        study.add_trials([_frozen_trial(trial, objective) for trial in trials])
    return study


def _frozen_trial(trial: Trial, objective: TuningObjective) -> FrozenTrial:
    """A finished trial as Optuna keeps it, with the whole configuration beside its parameters."""
    ranges = {
        parameter.path: _range_around(parameter, trial.params[parameter.path])
        for parameter in objective.parameters
        if parameter.path in trial.params
    }
    distributions = {path: optuna_distribution(p) for path, p in ranges.items() if p is not None}
    attributes: dict[str, object] = {"origin": trial.origin, "number": trial.number}
    with contextlib.suppress(FusionBenchError):  # where its method refuses these values
        attributes["config"] = objective.build_system(trial.params).resolved_config
    return optuna.create_trial(
        params={path: trial.params[path] for path in distributions},
        distributions=distributions,
        value=None if trial.is_failed else trial.value,
        state=TrialState.FAIL if trial.is_failed else TrialState.COMPLETE,
        user_attrs=attributes,
    )


def _range_around(parameter: Parameter, value: Value) -> Parameter | None:
    """The parameter, wide enough for a value outside its range, such as a default.

    None = no range holds it: a threshold that is not set, a choice that is not offered.
    """
    if parameter.contains(value):
        return parameter
    if parameter.kind == "choice" or isinstance(value, str | bool) or value is None:
        return None
    if parameter.kind == "int" and not float(value).is_integer():
        return None
    low, high = min(parameter.bounds[0], value), max(parameter.bounds[1], value)
    log = parameter.log and low > 0
    return replace(parameter, low=low, high=high, step=None, log=log)
