"""Gains by query type and intent, and parameters tuned for each of them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from fusion_bench.config.query_classes import CLASS_KEYS
from fusion_bench.evaluation.report_records.record import ReportRecord
from fusion_bench.evaluation.report_records.results.system import CompletionBounds
from fusion_bench.evaluation.report_records.results.unjudged import UnjudgedResult
from fusion_bench.report.tuning_records.trials import Gain, TuningVerdict, Value


class TypeGain(ReportRecord):
    """The held-out gain of one query type.

    Attributes:
        type: The type; None = queries without one.
        gain: Tuned − default.
        bounds: What unjudged documents could make of the means, by system; nothing with complete
            judgments.
    """

    type: str | None
    gain: Gain
    bounds: dict[str, CompletionBounds] = Field(default_factory=dict)


class IntentGain(ReportRecord):
    """The held-out gain of one intent.

    Attributes:
        intent: The intent; None = queries without one.
        gain: Tuned − default.
        bounds: As those of :class:`TypeGain`.
    """

    intent: str | None
    gain: Gain
    bounds: dict[str, CompletionBounds] = Field(default_factory=dict)


class PerTypeResult(ReportRecord):
    """Numbers tuned for each query type or intent, against one set of numbers for all.

    Attributes:
        key: ``by_query_type`` or ``by_intent``.
        params: Type or intent → the numbers chosen on its own tuning queries; those with too few
            of them keep the numbers for all, and are not listed.
        config: The resolved system.
        gain: Held out: tuned by class − the default.
        over_global: Held out: tuned by class − tuned for all.
        verdict: What ``over_global`` allows to be said: whether classes are worth it.
        unjudged: What unjudged documents could change in ``over_global``; None = all judgments
            are complete.
    """

    key: Literal["by_query_type", "by_intent"] = "by_query_type"
    params: dict[str, dict[str, Value]]
    config: dict[str, Any]
    gain: Gain
    over_global: Gain
    verdict: TuningVerdict
    unjudged: UnjudgedResult | None = None

    @property
    def field(self) -> str:
        """The field of the query that decides: ``type`` or ``intent``."""
        return CLASS_KEYS[self.key].field
