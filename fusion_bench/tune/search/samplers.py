"""Optuna's samplers, asked and told in batches.

Optuna runs in memory: its own storages cost 3–25 ms a trial.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, Literal

from fusion_bench.config.parameters import Parameter, Params, Value
from fusion_bench.errors import ConfigError, MissingExtraError

if TYPE_CHECKING:
    import optuna

#: Optuna's class of each sampler, and what it is made with.
OPTUNA_SAMPLERS: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = {
    "tpe": ("TPESampler", {"multivariate": True, "group": True}),
    "nsga2": ("NSGAIISampler", {"population_size": 32}),  # small, because there are few trials
    "cmaes": ("CmaEsSampler", {}),
    "gp": ("GPSampler", {}),
    "qmc": ("QMCSampler", {"scramble": True}),
    "random": ("RandomSampler", {}),
}


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


def suggest_params(trial: optuna.Trial, parameters: Sequence[Parameter]) -> Params:
    """Let Optuna suggest a value for each active parameter.

    Values are rounded to few digits; Optuna keeps the unrounded ones.
    """
    params: dict[str, Value] = {}
    for parameter in parameters:
        if parameter.is_active(params):
            params[parameter.path] = parameter.round_value(_suggest_value(trial, parameter))
    return params


def _suggest_value(trial: optuna.Trial, parameter: Parameter) -> Value:
    if parameter.kind == "choice":
        return trial.suggest_categorical(parameter.path, parameter.choices)
    limits = vars(optuna_distribution(parameter))
    suggest: Any = trial.suggest_int if parameter.kind == "int" else trial.suggest_float
    value: Value = suggest(parameter.path, **limits)
    return value


def check_sampler(parameters: Sequence[Parameter], sampler: str) -> None:
    """Refuse a sampler that cannot search this space.

    Raises:
        ConfigError: Says which parameter it cannot take, and who can.
        MissingExtraError: It needs a package that is not installed.
    """
    if sampler not in OPTUNA_SAMPLERS:
        raise ConfigError(f"sampler {sampler}: cannot be shared: use it without --storage")
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


def optuna_sampler(name: str, seed: int) -> optuna.samplers.BaseSampler:
    """Optuna's sampler of that name."""
    from optuna import samplers

    kind, options = OPTUNA_SAMPLERS[name]
    with silence_experimental_warnings():
        sampler: optuna.samplers.BaseSampler = getattr(samplers, kind)(seed=seed, **options)
    return sampler


class OptunaProposer:
    """An Optuna sampler, asked and told in batches.

    Args:
        parameters: The space.
        sampler: As :func:`optuna_sampler` makes it.
        directions: ``maximize`` or ``minimize`` for each objective.
    """

    def __init__(
        self,
        parameters: Sequence[Parameter],
        sampler: optuna.samplers.BaseSampler,
        directions: Sequence[Literal["maximize", "minimize"]] = ("maximize",),
    ) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._parameters = parameters
        self._study = optuna.create_study(directions=directions, sampler=sampler)
        self._asked: list[optuna.Trial] = []

    def add_trials(self, trials: Sequence[tuple[Params, float]]) -> None:
        """Add trials that it did not propose, without failed ones (NaN)."""
        import optuna

        space = {parameter.path: optuna_distribution(parameter) for parameter in self._parameters}
        for params, value in trials:
            if not math.isnan(value):
                distributions = {path: space[path] for path in params}
                self._study.add_trial(
                    optuna.create_trial(
                        params=dict(params), distributions=distributions, value=value
                    )
                )

    def ask(self, count: int) -> list[Params]:
        """New parameter sets: each proposal takes account of the running ones."""
        with silence_experimental_warnings():
            self._asked = [self._study.ask() for _ in range(count)]
            return [suggest_params(trial, self._parameters) for trial in self._asked]

    def tell(self, values: Sequence[float | Sequence[float] | None]) -> None:
        """The values of the last :meth:`ask`; None or NaN = could not be computed."""
        from optuna.trial import TrialState

        with silence_experimental_warnings():
            for trial, value in zip(self._asked, values, strict=True):
                if value is None or (isinstance(value, float) and math.isnan(value)):
                    self._study.tell(trial, state=TrialState.FAIL)
                else:
                    self._study.tell(trial, value)
