"""The systems whose details are computed, with what it takes to evaluate them on other lists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.records import ScoreSpace
from fusion_bench.errors import FusionBenchError
from fusion_bench.evaluation.scores import evaluate_systems
from fusion_bench.experiment.system import System
from fusion_bench.measures import Measure


@dataclass(frozen=True, eq=False)
class DetailedSet:
    """Detailed systems on one collection.

    Attributes:
        systems: Fitted, the baseline first.
        values: By system, shape (Q,): the primary measure.
        measure: The primary measure.
        spaces: Score space of each rerank list.
        qrels: The judgments.
        groups: Shape (Q,): codes of the groups.
        alpha: 1 − coverage of intervals.
    """

    systems: tuple[System, ...]
    values: Mapping[str, FloatArray]
    measure: Measure
    spaces: Mapping[str, ScoreSpace]
    qrels: Qrels
    groups: IntArray
    alpha: float

    @property
    def differences(self) -> FloatArray:
        """(Q,): the greatest difference of any system from the first one, the baseline."""
        base = self.values[self.systems[0].name]
        greatest: FloatArray = np.abs(np.stack([*self.values.values()]) - base).max(axis=0)
        return greatest

    def evaluate(
        self, systems: Sequence[System], runs: AlignedRuns
    ) -> Iterator[tuple[System, FloatArray | str]]:
        """Each system with its values on other lists, shape (Q,), or why it has none.

        Args:
            systems: Some of the systems.
            runs: The same queries.
        """
        values: list[FloatArray | str] | None = None
        with suppress(FusionBenchError):  # of one of them: below it says which
            values = [*self._evaluate(systems, runs)]
        if values is None:
            values = [self._evaluate_alone(system, runs) for system in systems]
        return zip(systems, values, strict=True)

    def _evaluate_alone(self, system: System, runs: AlignedRuns) -> FloatArray | str:
        try:
            return self._evaluate([system], runs)[0]
        except FusionBenchError as error:
            return _find_reason(error)

    def _evaluate(self, systems: Sequence[System], runs: AlignedRuns) -> list[FloatArray]:
        scores = evaluate_systems(
            systems, runs, [self.measure], spaces=self.spaces, qrels=self.qrels
        )
        return [each.values[0] for each in scores]


def _find_reason(error: BaseException) -> str:
    """The message of the first error, without the names that were put before it on its way."""
    while isinstance(error.__context__, FusionBenchError):
        error = error.__context__
    return str(error)
