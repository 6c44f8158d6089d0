"""Importance of parameters, by Optuna's PED-ANOVA."""

from __future__ import annotations

from collections.abc import Sequence

from fusion_bench.config.parameters import Parameter
from fusion_bench.report.tuning_records.sensitivity import Importance
from fusion_bench.tune.search.samplers import optuna_distribution
from fusion_bench.tune.search.trial_log import Trial

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
