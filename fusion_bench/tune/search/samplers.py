"""Who proposes the next trials: Optuna's samplers, asked and told in batches, or every point.

Optuna runs in memory and knows nothing of files: its own storages cost 3–25 ms a trial.
"""

from __future__ import annotations

import itertools
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

if TYPE_CHECKING:
    import optuna

__all__ = [
    "TrialProposer",
    "check_sampler",
    "distribution_around",
    "make_proposer",
    "optuna_distribution",
    "optuna_sampler",
    "round_params",
    "silence_experimental_warnings",
    "suggest_params",
]

#: What ``grid`` and ``brute_force`` are ready to go through.
MOST_POINTS = 200_000


class TrialProposer(Protocol):
    """Proposes trials and learns what they were worth."""

    def add_trials(self, trials: Sequence[tuple[Params, float]]) -> None:
        """Take note of trials that it did not propose; NaN = could not be computed."""

    def ask(self, count: int) -> list[Params]:
        """Up to ``count`` new trials; fewer where no points are left."""

    def tell(self, values: Sequence[float]) -> None:
        """What the trials of the last :meth:`ask` were worth; NaN = could not be computed."""


def make_proposer(
    parameters: Sequence[Parameter],
    settings: SearchSettings,
    canonical: Callable[[Params], Params] = dict,
) -> TrialProposer:
    """The one that the settings name.

    Args:
        parameters: The space.
        settings: Which, and how.
        canonical: Brings points that are one system into one form; who goes through every point
            tries such a system once.

    Raises:
        ConfigError: It cannot search this space.
        MissingExtraError: It needs a package that is not installed.
    """
    if settings.sampler in {"grid", "brute_force"}:
        return _PointProposer(parameters, settings, canonical)
    check_sampler(parameters, settings.sampler)
    return _OptunaProposer(parameters, optuna_sampler(settings))


def optuna_distribution(parameter: Parameter) -> optuna.distributions.BaseDistribution:
    """The parameter as Optuna has it."""
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
    """The same, wide enough for a value outside: a default's, which need not lie in its space.

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
    """Let Optuna choose the value of each parameter that takes part.

    Numbers come with few digits; Optuna keeps its own, which differ by less than it can tell.
    """
    found: dict[str, Value] = {}
    for one in parameters:
        if one.is_active(found):
            found[one.path] = one.round_value(_suggest_value(trial, one))
    return found


def round_params(params: Params, parameters: Sequence[Parameter]) -> Params:
    """A trial's numbers as they were evaluated, from those that Optuna keeps."""
    known = {one.path: one for one in parameters}
    return {path: known[path].round_value(value) for path, value in params.items()}


def _suggest_value(trial: optuna.Trial, one: Parameter) -> Value:
    if one.kind == "choice":
        return trial.suggest_categorical(one.path, one.choices)
    low, high = one.bounds
    if one.kind == "int":
        step = int(one.step or 1)
        return trial.suggest_int(one.path, int(low), int(high), step=step, log=one.log)
    return trial.suggest_float(one.path, low, high, step=one.step, log=one.log)


def check_sampler(parameters: Sequence[Parameter], sampler: str) -> None:
    """Refuse a sampler that cannot search this space.

    Raises:
        ConfigError: Says which parameter it cannot take, and who can.
        MissingExtraError: It needs a package that is not installed.
    """
    conditional = [one.path for one in parameters if one.when]
    choices = [one.path for one in parameters if one.kind == "choice"]
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
    """Silence what Optuna says of parts that we use on purpose, and nothing else."""
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
        found: optuna.samplers.BaseSampler = made[settings.sampler]()
    return found


class _OptunaProposer:
    """An Optuna sampler through ask and tell."""

    def __init__(
        self, parameters: Sequence[Parameter], sampler: optuna.samplers.BaseSampler
    ) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._parameters = parameters
        self._distributions = {one.path: optuna_distribution(one) for one in parameters}
        self._study = optuna.create_study(direction="maximize", sampler=sampler)
        self._asked: list[optuna.Trial] = []

    def add_trials(self, trials: Sequence[tuple[Params, float]]) -> None:
        """Add finished trials to the study; failed ones teach nothing."""
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
        """Ask for a batch: each proposal knows that the others are under way."""
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


class _PointProposer:
    """Every point of a finite space once, in random order where not all of them are wanted."""

    def __init__(
        self,
        parameters: Sequence[Parameter],
        settings: SearchSettings,
        canonical: Callable[[Params], Params],
    ) -> None:
        levels = {one.path: _parameter_levels(one, settings) for one in parameters}
        points = list(itertools.islice(_all_points(parameters, levels), MOST_POINTS + 1))
        if len(points) > MOST_POINTS:
            raise ConfigError(
                f"sampler {settings.sampler}: the space has more than {MOST_POINTS:,} points: "
                "tune fewer parameters, use larger steps, or another sampler"
            )
        points = list({repr(one): one for one in map(canonical, points)}.values())
        if len(points) > settings.trials:
            order = np.random.default_rng(settings.seed).permutation(len(points))
            points = [points[i] for i in order]
        self._left = iter(points)
        self._done: list[Params] = []

    def add_trials(self, trials: Sequence[tuple[Params, float]]) -> None:
        """Leave out points that were tried already."""
        self._done += [params for params, _ in trials]

    def ask(self, count: int) -> list[Params]:
        """The next points."""
        fresh = (params for params in self._left if params not in self._done)
        return list(itertools.islice(fresh, count))

    def tell(self, values: Sequence[float]) -> None:
        """Nothing is learned."""


def _parameter_levels(one: Parameter, settings: SearchSettings) -> tuple[Value, ...]:
    """The values that are gone through."""
    if one.kind == "choice":
        return one.choices
    low, high = one.bounds
    step = 1.0 if one.kind == "int" and one.step is None else one.step
    whole = settings.sampler == "brute_force" or one.step is not None
    if whole and step is None:
        raise ConfigError(
            f"sampler brute_force goes through every value, and {one.path} has no step: give it "
            "one, or use grid"
        )
    if whole and step is not None:  # on integers, divided once: sums of steps lose the last ones
        values = low + np.arange(int((high - low) / step + 1e-9) + 1) * step
    elif one.log:
        values = np.geomspace(low, high, settings.points)
    else:
        values = np.linspace(low, high, settings.points)
    if one.kind == "int":
        return tuple(dict.fromkeys(int(v) for v in np.rint(values)))
    return tuple(float(f"{v:.12g}") for v in values)


def _all_points(
    parameters: Sequence[Parameter], levels: dict[str, tuple[Value, ...]]
) -> Iterator[Params]:
    """Every point, the last parameter running fastest; inactive parameters take no part."""

    def rest(n: int, chosen: dict[str, Value]) -> Iterator[Params]:
        if n == len(parameters):
            yield dict(chosen)
            return
        one = parameters[n]
        if not one.is_active(chosen):
            yield from rest(n + 1, chosen)
            return
        for value in levels[one.path]:
            yield from rest(n + 1, chosen | {one.path: value})

    return rest(0, {})
