"""The rules that choose in sample, or on one half of the queries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from benchmarks.studies.choice_rules.grid import (
    CONSTANTS,
    OPENSEARCH_66,
    OPENSEARCH_82,
    RANX,
    RRF,
    SETTINGS,
    TENTHS,
    Setting,
)
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.stats.intervals import estimate_mean

#: Of RelyLoop and of Qdrant's articles alike.
RESAMPLES, BOOTSTRAP_SEED, LEAST_QUERIES = 1_000, 42, 5
#: Of each search: a third of the grid. RelyLoop has 1,000, more than the grid has settings.
TRIALS: Final = 100
PLACES: Final[Mapping[Setting, int]] = {each: n for n, each in enumerate(SETTINGS)}
FAMILIES: Final = tuple(dict.fromkeys(each.family for each in SETTINGS))


@dataclass(frozen=True)
class Choice:
    """What a rule made of some values.

    Attributes:
        setting: Its place in the grid.
        ships: Whether the default is to be replaced by it.
        claimed: The gain over the default that the rule prints.
    """

    setting: int
    ships: bool
    claimed: float


#: Values of all settings (T, Q), place of the default, seed → the choice.
Rule = Callable[[FloatArray, int, int], Choice]


def last_of_best(means: FloatArray, places: Sequence[int]) -> int:
    """The setting of the greatest mean, the last of equal ones, as ``score >= best_score``."""
    kept = means[list(places)]
    return places[len(kept) - 1 - int(np.argmax(kept[::-1]))]


def first_of_best(means: FloatArray, places: Sequence[int]) -> int:
    """The setting of the greatest mean, the first of equal ones."""
    return places[int(np.argmax(means[list(places)]))]


def _claim(values: FloatArray, default: int, setting: int) -> float:
    return float(values[setting].mean() - values[default].mean())


def ship_best(
    places: Sequence[int], pick: Callable[[FloatArray, Sequence[int]], int] = first_of_best
) -> Rule:
    """The best mean of some settings in sample ships, where it is not the default's."""

    def rule(values: FloatArray, default: int, _seed: int) -> Choice:
        setting = pick(values.mean(axis=1), places)
        claimed = _claim(values, default, setting)
        return Choice(setting, setting != default and claimed > 0, claimed)

    return rule


@lru_cache(maxsize=4)
def bootstrap_indices(queries: int) -> IntArray:
    """(1000, Q): the draws of both tools, whose seed is fixed."""
    rng = np.random.default_rng(BOOTSTRAP_SEED)
    return rng.integers(0, queries, size=(RESAMPLES, queries))


def bootstrap_interval(values: FloatArray) -> tuple[float, float]:
    """The percentile interval of a mean."""
    means = values[bootstrap_indices(len(values))].mean(axis=1)
    low, high = np.percentile(means, [2.5, 97.5]).tolist()
    return low, high


def search_with_tpe(means: FloatArray, seed: int, trials: int = TRIALS) -> int:
    """The setting of Optuna's best trial: its default TPE, the grid's axes as parameters."""
    return _search(tuple(means.tolist()), seed, trials)


@lru_cache(maxsize=1)  # two rules share a search
def _search(means: tuple[float, ...], seed: int, trials: int) -> int:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)

    def objective(trial: optuna.Trial) -> float:
        family = trial.suggest_categorical("family", FAMILIES)
        tenths = trial.suggest_int("tenths", TENTHS[0], TENTHS[-1])
        k = CONSTANTS[trial.suggest_int("k", 0, len(CONSTANTS) - 1)] if family == RRF else None
        setting = PLACES[Setting(family, tenths, k)]
        trial.set_user_attr("setting", setting)
        return means[setting]

    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))
    study.optimize(objective, n_trials=trials)
    return int(study.best_trial.user_attrs["setting"])


def ship_best_trial(values: FloatArray, default: int, seed: int) -> Choice:
    """Optuna's best trial ships, with a bootstrap interval of its own values beside it.

    The interval is not compared with anything, so it stops nothing.
    """
    setting = search_with_tpe(values.mean(axis=1), seed)
    claimed = _claim(values, default, setting)
    return Choice(setting, setting != default and claimed > 0, claimed)


def ship_above_interval(values: FloatArray, default: int, seed: int) -> Choice:
    """The same, held back where that interval holds the default's mean."""
    choice = ship_best_trial(values, default, seed)
    mine = values[choice.setting]
    is_enough = len(mine) >= LEAST_QUERIES
    is_clear = is_enough and bootstrap_interval(mine)[0] > values[default].mean()
    return Choice(choice.setting, choice.ships and bool(is_clear), choice.claimed)


def split_halves(queries: int, seed: int) -> tuple[IntArray, IntArray]:
    """Two random halves."""
    order = np.random.default_rng(seed).permutation(queries)
    return order[: queries // 2], order[queries // 2 :]


def ship_confirmed(values: FloatArray, default: int, seed: int) -> Choice:
    """The winner of one half ships where its mean on the other is above the default's."""
    chosen, judged = split_halves(values.shape[1], seed)
    setting = first_of_best(values[:, chosen].mean(axis=1), range(len(values)))
    claimed = _claim(values[:, judged], default, setting)
    return Choice(setting, setting != default and claimed > 0, claimed)


def ship_confirmed_and_clear(values: FloatArray, default: int, seed: int) -> Choice:
    """The same, where the bootstrap interval of its gain on all queries is above 0 too."""
    choice = ship_confirmed(values, default, seed)
    is_clear = bootstrap_interval(values[choice.setting] - values[default])[0] > 0
    return Choice(choice.setting, choice.ships and is_clear, choice.claimed)


def ship_by_bootstrap(values: FloatArray, default: int, _seed: int) -> Choice:
    """The winner ships where the bootstrap interval of its gain is above 0, in sample."""
    setting = first_of_best(values.mean(axis=1), range(len(values)))
    gains = values[setting] - values[default]
    return Choice(setting, bootstrap_interval(gains)[0] > 0, float(gains.mean()))


def ship_by_t(values: FloatArray, default: int, _seed: int) -> Choice:
    """The winner ships where the paired t interval of its gain is above 0, in sample."""
    setting = first_of_best(values.mean(axis=1), range(len(values)))
    estimate = estimate_mean(values[setting] - values[default])
    return Choice(setting, estimate.low > 0, estimate.mean)


WHOLE: Final = tuple(range(len(SETTINGS)))
#: Key → rule, in the order of the issue; the last one, ``ours``, is in ``tuned``.
RULES: Final[Mapping[str, Rule]] = {
    "best mean": ship_best(WHOLE),
    "best mean, ranx's grid": ship_best(RANX, last_of_best),
    "best mean, OpenSearch's 66": ship_best(OPENSEARCH_66),
    "best mean, OpenSearch's 82": ship_best(OPENSEARCH_82),
    "best trial": ship_best_trial,
    "best trial above its interval": ship_above_interval,
    "other half": ship_confirmed,
    "other half and bootstrap": ship_confirmed_and_clear,
    "bootstrap": ship_by_bootstrap,
    "t interval": ship_by_t,
}
