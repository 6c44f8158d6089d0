"""Values per query of settings, remembered for the ones that are asked for again."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.records import ScoreSpace
from fusion_bench.evaluation.scores import evaluate_systems
from fusion_bench.experiment.system import System
from fusion_bench.measures import Measure

#: Systems whose values are remembered.
VALUES_KEPT: Final = 256
#: Kinds of systems whose derived arrays are remembered: depths, sources in use, normalizers.
KINDS_KEPT: Final = 24


class SystemEvaluator:
    """Evaluates one system at a time on the same queries; not for several threads at once.

    Args:
        runs: Aligned, only the queries that the console shows.
        measures: (M,).
        spaces: Score space of each rerank list.
        qrels: The judgments.
    """

    def __init__(
        self,
        runs: AlignedRuns,
        measures: Sequence[Measure],
        spaces: Mapping[str, ScoreSpace],
        qrels: Qrels,
    ) -> None:
        self.runs = runs
        self.measures = tuple(measures)
        self.spaces = spaces
        self._qrels = qrels
        self._values: OrderedDict[str, FloatArray] = OrderedDict()
        self._kinds: set[str] = set()

    def evaluate(self, system: System) -> FloatArray:
        """(M, Q): the values of a system.

        Raises:
            FusionBenchError: It cannot be computed.
        """
        key = system.model_dump_json(exclude={"name"})
        if key in self._values:
            self._values.move_to_end(key)
            return self._values[key]
        self._bound_views(system)
        (scores,) = evaluate_systems(
            [system], self.runs, self.measures, spaces=self.spaces, qrels=self._qrels
        )
        self._values[key] = scores.values
        if len(self._values) > VALUES_KEPT:
            self._values.popitem(last=False)
        return scores.values

    def _bound_views(self, system: System) -> None:
        """Forget all derived arrays once there are many kinds: each takes as much as the runs."""
        kind = json.dumps(_derivation_kind(system))
        if kind not in self._kinds and len(self._kinds) >= KINDS_KEPT:
            self.runs = replace(self.runs)  # the same arrays with an empty cache
            self._kinds.clear()
        self._kinds.add(kind)


def _derivation_kind(system: System) -> list[Any]:
    """What decides which derived arrays a system needs: sources in use, depths, normalizers."""
    data = system.model_dump(mode="json")
    by_class = (system.class_configs or {}).values()
    fusions = [data["fusion"], *(part.fusion.model_dump(mode="json") for part in by_class)]
    parts = [
        [
            fusion["method"],
            fusion.get("normalize"),
            sorted(name for name, weight in (fusion.get("weights") or {}).items() if weight == 0),
        ]
        for fusion in fusions
    ]
    stages = [_derivation_kind(stage) for stage in (system.stages or {}).values()]
    return [data["runs"], data["depth"], parts, stages]
