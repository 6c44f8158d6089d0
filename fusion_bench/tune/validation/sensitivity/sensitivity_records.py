"""Records of how much the parameters of a search matter."""

from __future__ import annotations

from typing import Final

import numpy as np

from fusion_bench.data.ordering import FloatArray
from fusion_bench.report.tuning_records.sensitivity import Fold, Plateau
from fusion_bench.report.tuning_records.trials import ParameterInfo
from fusion_bench.tune.search.trial_log import Trial
from fusion_bench.tune.space.objective import TuningObjective
from fusion_bench.tune.validation.cross_validation import CrossValidation
from fusion_bench.tune.validation.sensitivity.ablation import reset_means
from fusion_bench.tune.validation.sensitivity.random_sample import sample_uniformly
from fusion_bench.tune.validation.splits import QuerySplit
from fusion_bench.tune.validation.trial_selection import evaluate_in_batches, within_one_error

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
    """What was chosen without each fold, and what it gains there.

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
    """Of a sample that could be computed, the share within one error of the chosen trial.

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
    near = within_one_error(values, tuned[keep], objective.group_codes[keep])
    return Plateau(share=float(near.mean()), sample=len(values))
