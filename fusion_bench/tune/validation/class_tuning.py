"""Parameters by query type or intent, before the held-out queries decide on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fusion_bench.config.parameters import Params
from fusion_bench.config.query_classes import ClassKey
from fusion_bench.data.ordering import FloatArray
from fusion_bench.evaluation.report_records.results.unjudged import UnjudgedResult
from fusion_bench.experiment.system import System
from fusion_bench.report.tuning_records.class_gains import PerTypeResult
from fusion_bench.report.tuning_records.trials import Gain, TuningVerdict
from fusion_bench.tune.validation.verdict import ChosenTrial


@dataclass(frozen=True, eq=False)
class ClassTuning:
    """Parameters by class, and their values.

    Attributes:
        key: By what the parameters differ.
        params: Class → its parameters; the other classes keep those for all.
        system: Answers each class by its parameters.
        base: Answers all classes by the parameters for all.
        values: Shape (Q,): by class.
        overall: Shape (Q,): of the parameters for all.
        chosen: ``default`` = each class kept the parameters for all.
    """

    key: ClassKey
    params: Mapping[str, Params]
    system: System
    base: System
    values: FloatArray
    overall: FloatArray
    chosen: ChosenTrial

    def to_record(
        self,
        gain: Gain,
        over_global: Gain,
        verdict: TuningVerdict,
        unjudged: UnjudgedResult | None = None,
    ) -> PerTypeResult:
        """The record.

        Args:
            gain: Held out: by class − the default.
            over_global: Held out: by class − the parameters for all.
            verdict: What ``over_global`` allows to be said.
            unjudged: What unjudged documents could change in it; None = nothing.
        """
        return PerTypeResult(
            params={name: dict(params) for name, params in self.params.items()},
            key=self.key.key,
            config=self.system.resolved_config,
            gain=gain,
            over_global=over_global,
            verdict=verdict,
            unjudged=unjudged,
        )
