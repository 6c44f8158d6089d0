"""How ``tune.held_out`` was carried out, and why."""

from __future__ import annotations

from typing import Literal, TypeAlias

from fusion_bench.evaluation.report_records.record import ReportRecord

#: ``dataset``: its own splits; ``share``: a share is held out; ``all``: cross-fitting.
SplitDesign: TypeAlias = Literal["dataset", "share", "all"]


class SimulatedPower(ReportRecord):
    """How often a true gain was shipped in simulations, at the one-sided level .025.

    Attributes:
        collection: That the queries were drawn from.
        queries: Drawn for each sample.
        half_split: Share of the samples that ship where half of them is held out.
        cross_fitting: The same where every query is held out once.
    """

    collection: str
    queries: int
    half_split: float
    cross_fitting: float


class SplitChoice(ReportRecord):
    """Which queries decide, and why.

    Attributes:
        asked: ``tune.held_out``.
        design: What was done.
        queries: Judged queries that take part.
        reason: Why, in words; empty = the setting says so.
        power: Simulated at about as many queries; empty = not simulated there.
    """

    asked: float | Literal["all", "auto"]
    design: SplitDesign
    queries: int
    reason: str = ""
    power: tuple[SimulatedPower, ...] = ()
