"""Tolerances that the values of a baseline cannot fall by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fusion_bench.evaluation.prepared_dataset import EvaluationSet
from fusion_bench.experiment.gate_limits import locate_check
from fusion_bench.gate.baselines.record import CollectionBaseline
from fusion_bench.gate.inputs import GateInputs
from fusion_bench.measures.bounds import is_bounded
from fusion_bench.stats.comparison import NOISE
from fusion_bench.stats.intervals import exact_mean


def find_unreachable_limits(
    inputs: GateInputs, pairs: Iterable[tuple[EvaluationSet, CollectionBaseline]]
) -> Iterator[str]:
    """Why a check on all queries of a collection could not fail; nothing where each can.

    A baseline whose mean is 0 has nothing to lose, and is no reason.

    Args:
        inputs: The experiment with its policy.
        pairs: Each collection with the values of its baseline.
    """
    for task, record in pairs:
        values = record.value_arrays()
        # The policy's measures begin with those of the checks.
        for (key, tolerance), measure in zip(
            inputs.policy.checks.items(), task.measures, strict=False
        ):
            if not is_bounded(measure.name) or measure.name not in values:
                continue
            mean = exact_mean(values[measure.name])
            for field, limit in tolerance.stated_limits.items():
                if 0 < mean <= limit + NOISE:
                    where = inputs.source.where((*locate_check(inputs.source, key), field))
                    yield (
                        f"{where}: {limit:g} checks nothing: {measure.name} of "
                        f"{record.collection} is {mean:.4f} in the baseline, and cannot fall by "
                        "more: give less"
                    )
