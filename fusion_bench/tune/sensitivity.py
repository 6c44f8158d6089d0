"""Sensitivity of a choice: ablation, importance, the plateau.

Unlike an importance over trials, it also measures values that the sampler soon gave up.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from fusion_bench.config.parameters import Parameter, Params, Value
from fusion_bench.data.ordering import FloatArray
from fusion_bench.data.query_splits import QuerySplit
from fusion_bench.report.tuning_records import Fold, Importance, ParameterInfo, Plateau
from fusion_bench.tune.objective import TuningObjective
from fusion_bench.tune.search import Trial, optuna_distribution
from fusion_bench.tune.trial_selection import CrossValidation, evaluate_in_batches, within_one_error


def reset_means(objective: TuningObjective, chosen: Params) -> Mapping[str, float]:
    """Mean of the measure with one parameter at a time back at the default's value.

    Args:
        objective: On the queries that were tuned on.
        chosen: What was chosen.

    Returns:
        Path → mean, of the parameters that differ from the default and that it has; NaN = such a
        system cannot be computed.
    """
    reset = {
        parameter.path: params
        for parameter in objective.parameters
        if (params := reset_parameter(objective, chosen, parameter.path)) is not None
    }
    if not reset:
        return {}
    means = objective.evaluate_params(list(reset.values())).mean(axis=1).tolist()
    return dict(zip(reset, means, strict=True))


def reset_parameter(objective: TuningObjective, chosen: Params, path: str) -> Params | None:
    """The choice with one parameter back at its default; None = it is there, or has none.

    Where it is a choice that others take part under, those that no longer do go with it, and those
    that now do stand as in the default, or as their method has them.
    """
    chosen = objective.normalize_weights(chosen)
    # The default's weights as the choice would have them: by the ratio that they had.
    free = objective.free_weights(chosen)
    weights = {p: v for p, v in objective.default_params.items() if p in free}
    form = objective.normalize_weights({**chosen, **weights})
    default = {**objective.default_params, **{path: form[path] for path in weights}}
    if path not in chosen or path not in default or chosen[path] == default[path]:
        return None
    wanted: dict[str, Value] = {**default, **chosen, path: default[path]}
    params: dict[str, Value] = {}
    for parameter in objective.parameters:
        if parameter.path in wanted and parameter.is_active(params):
            params[parameter.path] = wanted[parameter.path]
    return params


def sample_uniformly(parameters: Sequence[Parameter], count: int, *, seed: int) -> list[Params]:
    """Draw parameter sets uniformly, logarithmic ranges uniformly by the logarithm.

    Args:
        parameters: Each after those that its conditions look at.
        count: How many.
        seed: Of ``random.Random``, whose ``random()`` Python promises never to change.
    """
    source = random.Random(seed)  # noqa: S311 - a sample, no secret
    sample: list[dict[str, Value]] = [{} for _ in range(count)]
    for params in sample:
        for parameter in parameters:
            if parameter.is_active(params):
                params[parameter.path] = parameter.value_at(source.random())
    return list(sample)


#: Fewer trials tell nothing.
LEAST_TRIALS = 20


def parameter_importances(
    parameters: Sequence[Parameter], trials: Sequence[Trial]
) -> tuple[Importance, ...]:
    """Share of each parameter that takes part in every trial, the greatest first.

    Source: Watanabe, Bansal and Hutter, "PED-ANOVA: Efficiently Quantifying Hyperparameter
    Importance in Arbitrary Subspaces", IJCAI 2023.

    Args:
        parameters: The space.
        trials: Those that could not be computed are left out.

    Returns:
        Shares adding up to 1; empty where there are too few trials, or none differs.
    """
    done = [
        trial
        for trial in trials
        # The default may lie outside a narrowed space.
        if not trial.is_failed
        and all(p.contains(trial.params[p.path]) for p in parameters if p.path in trial.params)
    ]
    varied = [
        parameter
        for parameter in parameters
        if all(parameter.path in trial.params for trial in done)
        and len({repr(trial.params[parameter.path]) for trial in done}) > 1
    ]
    if len(done) < LEAST_TRIALS or not varied or len({trial.value for trial in done}) < 2:
        return ()
    if len(varied) == 1:
        return (Importance(path=varied[0].path, share=1.0),)
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    space = {parameter.path: optuna_distribution(parameter) for parameter in varied}
    study = optuna.create_study(direction="maximize")
    for trial in done:
        params = {path: trial.params[path] for path in space}
        study.add_trial(optuna.create_trial(params=params, distributions=space, value=trial.value))
    evaluator = optuna.importance.PedAnovaImportanceEvaluator()
    shares = optuna.importance.get_param_importances(study, evaluator=evaluator)
    total = sum(shares.values())
    known = shares.items() if total > 0 else ()
    return tuple(Importance(path=path, share=share / total) for path, share in known)


#: Parameter sets drawn for the plateau.
SAMPLE: Final = 100
#: What a record keeps of a parameter as it is.
RANGE: Final = ("path", "kind", "low", "high", "log", "choices")


def parameter_records(
    objective: TuningObjective, split: QuerySplit, chosen: Trial
) -> tuple[ParameterInfo, ...]:
    """The space, and the mean on the tuning queries with each parameter reset alone.

    Args:
        objective: On all queries.
        split: Which of them were tuned on.
        chosen: The chosen trial.
    """
    free = objective.free_weights(chosen.params)
    means = reset_means(objective.subset_queries(split.tune), chosen.params)
    return tuple(
        ParameterInfo(
            **{name: getattr(parameter, name) for name in RANGE},
            condition=" and ".join(
                f"{path} is {' or '.join(map(str, allowed))}" for path, allowed in parameter.when
            ),
            default=objective.default_params.get(parameter.path),
            ratio=parameter.path in free,
            reset=means.get(parameter.path),
        )
        for parameter in objective.parameters
    )


def fold_records(
    objective: TuningObjective, cross: CrossValidation | None, default: FloatArray
) -> tuple[Fold, ...]:
    """Records of the choice without each fold, and of its gain there.

    Args:
        objective: On all queries.
        cross: The nested cross-validation; None = not asked for.
        default: Shape (Q,): values of the default.
    """
    if cross is None:
        return ()
    records = []
    for k, trial in enumerate(cross.trials):
        unseen = cross.fold == k
        seen = (cross.fold >= 0) & ~unseen
        values = objective.evaluate_params([trial.params])[0]
        records.append(
            Fold(
                # A fold that kept a default of 2 : 2 agrees with one that chose 1 : 1.
                params=dict(objective.normalize_weights(trial.params)),
                difference=float((values - default)[seen].mean()),
                unseen=float((cross.values - default)[unseen].mean()),
                queries=int(unseen.sum()),
            )
        )
    return tuple(records)


def plateau_record(
    objective: TuningObjective, split: QuerySplit, tuned: FloatArray, seed: int
) -> Plateau | None:
    """Record the share of a sample that is within one error of the chosen trial.

    It says how many settings the tuning queries do not tell apart, not how many are as good.
    Near 0: a narrow peak; the held-out queries tell whether it is more than luck.

    Args:
        objective: On all queries.
        split: Which of them were tuned on.
        tuned: Shape (Q,): values of the chosen trial.
        seed: Of the sample.
    """
    part, keep = objective.subset_queries(split.tune), split.tune
    sample = sample_uniformly(part.parameters, SAMPLE, seed=seed)
    values = evaluate_in_batches(part, sample)
    values = values[np.isfinite(values).all(axis=1)]
    if not len(values):
        return None
    near = within_one_error(values, tuned[keep], objective.runs.group_codes[keep])
    return Plateau(share=float(near.mean()), sample=len(values))
