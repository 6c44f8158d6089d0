"""What a policy asks of every collection: checks, guards and golden queries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from fusion_bench.config.models import Source
from fusion_bench.data.ordering import FloatArray
from fusion_bench.errors import UnknownNameError
from fusion_bench.evaluation.scores import rankings
from fusion_bench.experiment.gate_settings import GatePolicy
from fusion_bench.experiment.system import System
from fusion_bench.gate.check_statistics import Contest
from fusion_bench.gate.guards import golden_result, guard_result
from fusion_bench.gate.loaded_collections import Arms
from fusion_bench.gate.result import GoldenResult, GuardResult

__all__ = ["contests", "golden", "guards"]


def contests(
    policy: GatePolicy,
    arms: Sequence[Arms],
    before: Mapping[str, Mapping[str, FloatArray]],
    after: Mapping[str, Mapping[str, FloatArray]],
) -> Iterator[Contest]:
    """Every check of a policy: measure × collection × slice.

    Args:
        policy: What is checked.
        arms: The collections.
        before: The baseline's values by collection and measure, each (Q,).
        after: The candidate's.
    """
    for arm in arms:
        types = np.array([str(name) for name in arm.task.runs.types], dtype=object)
        for name, tolerance in policy.checks.items():
            resolved = arm.measures[name].name
            for part in policy.slices_of(name):
                keep = np.full(len(types), True) if part is None else types == part
                yield Contest(
                    collection=arm.name,
                    slice=part,
                    measure=resolved,
                    max_drop=tolerance.max_drop,
                    baseline=before[arm.name][resolved][keep],
                    candidate=after[arm.name][resolved][keep],
                    groups=arm.task.groups[keep],
                )


def guards(
    policy: GatePolicy,
    arms: Sequence[Arms],
    before: Mapping[str, Mapping[str, FloatArray]],
    after: Mapping[str, Mapping[str, FloatArray]],
) -> Iterator[GuardResult]:
    """Every guard on every collection; arguments as for :func:`contests`."""
    for guard in policy.guards:
        for arm in arms:
            name = arm.measures[guard.measure].name
            yield guard_result(guard, arm.name, before[arm.name][name], after[arm.name][name])


def golden(
    policy: GatePolicy, source: Source, arms: Sequence[Arms], candidate: System
) -> Iterator[GoldenResult]:
    """Every golden query.

    Raises:
        UnknownNameError: It names a dataset that the experiment does not have.
    """
    if not policy.golden:
        return
    found = {
        arm.name: list(rankings(candidate, arm.task.runs, arm.task.dataset.spaces)) for arm in arms
    }
    for i, wanted in enumerate(policy.golden):
        if wanted.dataset is not None and wanted.dataset not in found:
            where = source.where(("gate", "golden", i, "dataset"))
            raise UnknownNameError("dataset", wanted.dataset, found, where=where)
        yield golden_result(wanted, found)
