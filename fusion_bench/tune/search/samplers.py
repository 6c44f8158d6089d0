"""Proposers of the next trials: Optuna's samplers, asked and told in batches, or every point.

Optuna runs in memory: its own storages cost 3–25 ms a trial.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from fusion_bench.config.parameters import Parameter, Params, Value
from fusion_bench.errors import ConfigError, MissingExtraError
from fusion_bench.experiment.tune_settings import SearchSettings
from fusion_bench.tune.search.grid import PointProposer

if TYPE_CHECKING:
    import optuna


class TrialProposer(Protocol):
    """Proposes parameter sets and learns their values."""

    def add_trials(self, trials: Sequence[tuple[Params, float]]) -> None:
        """Add trials that it did not propose; NaN = could not be computed."""

    def ask(self, count: int) -> list[Params]:
        """Up to ``count`` new trials; fewer where no points are left."""

    def tell(self, values: Sequence[float]) -> None:
        """The values of the last :meth:`ask`; NaN = could not be computed."""


def make_proposer(
    parameters: Sequence[Parameter],
    settings: SearchSettings,
    normalize: Callable[[Params], Params] = dict,
) -> TrialProposer:
    """The proposer that the settings name.

    Args:
        parameters: The space.
        settings: Which, and how.
        normalize: Maps equal systems to equal parameters, so that ``grid`` tries each system once.

    Raises:
        ConfigError: It cannot search this space.
        MissingExtraError: It needs a package that is not installed.
    """
    if settings.sampler in {"grid", "brute_force"}:
        return PointProposer(parameters, settings, normalize)
    check_sampler(parameters, settings.sampler)
    return _OptunaProposer(parameters, optuna_sampler(settings))


def optuna_distribution(parameter: Parameter) -> optuna.distributions.BaseDistribution:
    """The parameter as an Optuna distribution."""
    from optuna import distributions

    if parameter.kind == "choice":
        return distributions.CategoricalDistribution(parameter.choices)
    low, high = parameter.bounds
    if parameter.kind == "int":
        step = int(parameter.step or 1)
        return distributions.IntDistribution(int(low), int(high), log=parameter.log, step=step)
    return distributions.FloatDistribution(low, high, log=parameter.log, step=parameter.step)


def distribution_around(
    parameter: Parameter, value: Value
) -> optuna.distributions.BaseDistribution | None:
    """The same, wide enough for a value outside the range, such as a default.

    None = no range holds it: a threshold that is not set, a choice that is not offered.
    """
    if parameter.contains(value):
        return optuna_distribution(parameter)
    if parameter.kind == "choice" or isinstance(value, str | bool) or value is None:
        return None
    if parameter.kind == "int" and not float(value).is_integer():
        return None
    low, high = min(parameter.bounds[0], value), max(parameter.bounds[1], value)
    log = parameter.log and low > 0
    return optuna_distribution(replace(parameter, low=low, high=high, step=None, log=log))


def suggest_params(trial: optuna.Trial, parameters: Sequence[Parameter]) -> Params:
    """Let Optuna suggest a value for each active parameter.

    Values are rounded to few digits; Optuna keeps the unrounded ones.
    """
    params: dict[str, Value] = {}
    for parameter in parameters:
        if parameter.is_active(params):
            params[parameter.path] = parameter.round_value(_suggest_value(trial, parameter))
    return params


def round_params(params: Params, parameters: Sequence[Parameter]) -> Params:
    """A trial's parameters as they were evaluated, from those that Optuna keeps."""
    known = {parameter.path: parameter for parameter in parameters}
    return {path: known[path].round_value(value) for path, value in params.items()}


def _suggest_value(trial: optuna.Trial, parameter: Parameter) -> Value:
    if parameter.kind == "choice":
        return trial.suggest_categorical(parameter.path, parameter.choices)
    low, high = parameter.bounds
    if parameter.kind == "int":
        step = int(parameter.step or 1)
        return trial.suggest_int(parameter.path, int(low), int(high), step=step, log=parameter.log)
    return trial.suggest_float(parameter.path, low, high, step=parameter.step, log=parameter.log)


def check_sampler(parameters: Sequence[Parameter], sampler: str) -> None:
    """Refuse a sampler that cannot search this space.

    Raises:
        ConfigError: Says which parameter it cannot take, and who can.
        MissingExtraError: It needs a package that is not installed.
    """
    conditional = [p.path for p in parameters if p.when]
    choices = [p.path for p in parameters if p.kind == "choice"]
    if conditional and sampler in {"cmaes", "gp", "qmc"}:
        raise ConfigError(
            f"sampler {sampler} searches fixed spaces only, and {conditional[0]} takes part only "
            "under a condition: use tpe or random, or fix the method"
        )
    if choices and sampler == "cmaes":
        raise ConfigError(
            f"sampler cmaes searches numbers only, and {choices[0]} is a choice: use tpe, or list "
            "the numbers under tune.parameters"
        )
    if sampler == "gp" and find_spec("torch") is None:
        raise MissingExtraError("torch", extra="gp", purpose="the sampler gp")


@contextmanager
def silence_experimental_warnings() -> Iterator[None]:
    """Silence Optuna's warnings about experimental parts, and nothing else."""
    from optuna.exceptions import ExperimentalWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        yield


def optuna_sampler(settings: SearchSettings) -> optuna.samplers.BaseSampler:
    """Optuna's sampler of that name."""
    from optuna import samplers

    made: dict[str, Any] = {
        "tpe": lambda: samplers.TPESampler(seed=settings.seed, group=True),
        "cmaes": lambda: samplers.CmaEsSampler(seed=settings.seed),
        "gp": lambda: samplers.GPSampler(seed=settings.seed),
        "qmc": lambda: samplers.QMCSampler(seed=settings.seed, scramble=True),
        "random": lambda: samplers.RandomSampler(seed=settings.seed),
    }
    with silence_experimental_warnings():
        sampler: optuna.samplers.BaseSampler = made[settings.sampler]()
    return sampler


class _OptunaProposer:
    """An Optuna sampler through ask and tell."""

    def __init__(
        self, parameters: Sequence[Parameter], sampler: optuna.samplers.BaseSampler
    ) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._parameters = parameters
        self._distributions = {p.path: optuna_distribution(p) for p in parameters}
        self._study = optuna.create_study(direction="maximize", sampler=sampler)
        self._asked: list[optuna.Trial] = []

    def add_trials(self, trials: Sequence[tuple[Params, float]]) -> None:
        """Add finished trials to the study, without failed ones."""
        import optuna

        for params, value in trials:
            if not np.isnan(value):
                self._study.add_trial(
                    optuna.create_trial(
                        params=dict(params),
                        distributions={path: self._distributions[path] for path in params},
                        value=value,
                    )
                )

    def ask(self, count: int) -> list[Params]:
        """Ask for a batch: each proposal takes account of the running ones."""
        with silence_experimental_warnings():
            self._asked = [self._study.ask() for _ in range(count)]
            return [suggest_params(trial, self._parameters) for trial in self._asked]

    def tell(self, values: Sequence[float]) -> None:
        """Tell them in the order in which they were asked."""
        from optuna.trial import TrialState

        with silence_experimental_warnings():
            for trial, value in zip(self._asked, values, strict=True):
                if np.isnan(value):
                    self._study.tell(trial, state=TrialState.FAIL)
                else:
                    self._study.tell(trial, value)
