"""A search of quality against effort by Optuna's multi-objective samplers, in batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from fusion_bench.config.parameters import Parameter, Params
from fusion_bench.tune.search.samplers import silence_experimental_warnings, suggest_params

if TYPE_CHECKING:
    import optuna

#: Of NSGA-II: small, because there are few trials.
POPULATION = 32

#: Parameter sets → (value, effort) of each; None = could not be computed.
EvaluatePairs = Callable[[Sequence[Params]], Sequence[tuple[float, float] | None]]


def search_tradeoffs(
    parameters: Sequence[Parameter],
    evaluate: EvaluatePairs,
    *,
    method: str,
    trials: int,
    batch: int,
    seed: int,
) -> None:
    """Search for parameter sets of great value and little effort.

    Args:
        parameters: The space.
        evaluate: Evaluates parameter sets and keeps the results.
        method: ``tpe`` (Ozaki et al. 2022, "Multiobjective tree-structured Parzen estimator", JAIR
            73) or ``nsga2`` (Deb et al. 2002, "A fast and elitist multiobjective genetic
            algorithm: NSGA-II").
        trials: How many.
        batch: Asked for and evaluated together.
        seed: Makes it exactly repeatable.
    """
    import optuna
    from optuna.trial import TrialState

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    with silence_experimental_warnings():
        study = optuna.create_study(
            directions=["maximize", "minimize"], sampler=_multi_objective_sampler(method, seed)
        )
        for start in range(0, trials, batch):
            asked = [study.ask() for _ in range(min(batch, trials - start))]
            pairs = evaluate([suggest_params(trial, parameters) for trial in asked])
            for trial, pair in zip(asked, pairs, strict=True):
                if pair is None:
                    study.tell(trial, state=TrialState.FAIL)
                else:
                    study.tell(trial, pair)


def _multi_objective_sampler(method: str, seed: int) -> optuna.samplers.BaseSampler:
    from optuna import samplers

    if method == "nsga2":
        return samplers.NSGAIISampler(seed=seed, population_size=POPULATION)
    return samplers.TPESampler(seed=seed, multivariate=True, group=True)
