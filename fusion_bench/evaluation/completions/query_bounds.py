"""The least and greatest value of a system that any completion of the judgments gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import BoolArray, FloatArray
from fusion_bench.data.qrels import Qrels
from fusion_bench.evaluation.completions.measure_models import build_model, has_model
from fusion_bench.evaluation.completions.top_documents import (
    ListParts,
    TopDocuments,
    collect_top,
)
from fusion_bench.evaluation.report_records.results.system import CompletionBounds
from fusion_bench.measures import Measure
from fusion_bench.measures.average_precision import AveragePrecision
from fusion_bench.measures.rankings.ranking import divide_or_zero

#: Depth of Judged where the measure has no cutoff.
JUDGED_DEPTH: Final = 10
#: Grades that are tried; where there are more, only those of the judgments are.
MOST_GRADES: Final = 20
#: Average precision takes time by the square of the list: longer ones have no bounds.
MOST_SQUARES: Final = 20_000_000


@dataclass(frozen=True, eq=False)
class QueryBounds:
    """One system on Q queries and one measure.

    Attributes:
        judged: Shape (Q,): ``Judged`` at the measure's cutoff, or at 10.
        low: Shape (Q,): the least value over completions.
        high: Shape (Q,): the greatest.
        depth: The measure's cutoff, or 10.
    """

    judged: FloatArray
    low: FloatArray
    high: FloatArray
    depth: int

    def select_queries(self, keep: BoolArray) -> QueryBounds:
        """Only the queries where ``keep``, shape (Q,), is true."""
        return QueryBounds(self.judged[keep], self.low[keep], self.high[keep], self.depth)

    @property
    def record(self) -> CompletionBounds:
        """The means, as report files hold them."""
        means = {name: float(getattr(self, name).mean()) for name in ("judged", "low", "high")}
        return CompletionBounds(depth=self.depth, **means)


def grade_scale(qrels: Qrels) -> Sequence[int]:
    """The grades that a judge may give: 0 to the greatest of the judgments, at least 0 and 1."""
    greatest = int(qrels.grades.max(initial=1))
    if greatest > MOST_GRADES:
        return [0, *np.unique(qrels.grades[qrels.grades > 0]).tolist()]
    return range(max(greatest, 1) + 1)


def find_bounds(
    measure: Measure, runs: AlignedRuns, parts: ListParts, qrels: Qrels
) -> QueryBounds | None:
    """The bounds of one system.

    Args:
        measure: The measure.
        runs: All Q queries.
        parts: The system's lists.
        qrels: Gives the scale of the grades.

    Returns:
        None = the judgments are complete, or completions of the measure are not known or would
        take too long.
    """
    if not has_model(measure) or bool(runs.judged.all()):
        return None
    top = collect_top(runs, parts, cutoff=measure.cutoff)
    if isinstance(measure, AveragePrecision) and _squares(top) > MOST_SQUARES:
        return None
    scale = sorted({*grade_scale(qrels), getattr(measure, "rel", 1)})
    model = build_model(measure, top, scale)
    if model is None:
        return None
    ends = model.find_extremes()
    depth = measure.cutoff or JUDGED_DEPTH
    return QueryBounds(_judged_share(top, depth), ends.low, ends.high, depth)


def _squares(top: TopDocuments) -> int:
    """Unjudged documents times documents, over all queries."""
    documents = np.bincount(top.query, minlength=top.size)
    unjudged = np.bincount(top.query[~top.judged], minlength=top.size)
    return int((documents * unjudged).sum())


def _judged_share(top: TopDocuments, depth: int) -> FloatArray:
    """(Q,): the share of judged documents; 0 for an empty list, as ir_measures has it."""
    rows = np.flatnonzero(top.first <= depth)
    shown = np.bincount(top.query[rows], minlength=top.size)
    judged = np.bincount(top.query[rows], top.judged[rows], minlength=top.size)
    return divide_or_zero(judged, shown)
