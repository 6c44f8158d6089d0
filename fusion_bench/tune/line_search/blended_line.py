"""A fused list that moves, and a blend beside it: where the final scores are lines too.

That is so where the rerank score alone decides among the first ``depth`` (``replace``), and where
one share is given to fused scores that are weighed as they are. A retrieval term by rank or by
min-max changes at every pass of one document by another, of which there are millions.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from fusion_bench.blend import Mixture, RerankBlend, fixed_scale
from fusion_bench.blend._score_spaces import on_unit_scale
from fusion_bench.blend.none import NoBlend
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray
from fusion_bench.data.records import ScoreSpace
from fusion_bench.experiment.system import System
from fusion_bench.fuse import RankSum
from fusion_bench.measures import Measure
from fusion_bench.tune.line_search.fused_line import FusedLine, straight
from fusion_bench.tune.line_search.score_lines import Head, Line, Lines

__all__ = ["beside"]

#: Score spaces in which a score does not depend on which documents are blended.
FIXED = ("unit", "logit", "log_prob")


def beside(
    fused: FusedLine, system: System, spaces: Mapping[str, ScoreSpace], measure: Measure
) -> Line | None:
    """The final scores along a fused line; None = they are no lines.

    Args:
        fused: The fused list.
        system: Anywhere on the line.
        spaces: Score space of each rerank list.
        measure: Looks at so many of the first.
    """
    plain = _line(fused.view, fused.lines, system.top_k)
    if isinstance(system.blend, NoBlend):
        return plain
    blend = system.blend
    # Fractions would do too, but who is among the first of them takes over 100 evaluations to know.
    if not plain.straight or not isinstance(blend, RerankBlend):
        return None
    if not _simple(blend, fused.view, measure):
        return None
    mixture = blend.compiled(blend.depth)
    if mixture is None or np.ptp(mixture.shares) > 0 or np.ptp(mixture.rerank_shares) > 0:
        return None
    alone = float(mixture.shares[0]) == 0
    unit = _unit(blend, fused.view, spaces, alone=alone)
    if unit is None:
        return None
    lines = (unit, np.zeros_like(unit)) if alone else _mixed(fused, mixture, unit)
    if lines is None:
        return None
    scored = ~np.isnan(unit)
    a, b = (np.where(scored, own, other) for own, other in zip(lines, plain.lines[:2], strict=True))
    together = a, b, plain.c, plain.d
    return _line(fused.view, together, system.top_k, Head(plain, blend.depth, scored))


def _line(view: AlignedRuns, lines: Lines, top_k: int | None, head: Head | None = None) -> Line:
    size = len(view.documents)
    moving, placed = np.ones(size, dtype=bool), np.zeros(size, dtype=np.int64)
    return Line(view, *lines, moving, placed, top_k, head)


def _simple(blend: RerankBlend, view: AlignedRuns, measure: Measure) -> bool:
    """Whether what is blended stands above all else, nothing is dropped, and ties stay in order."""
    short = not blend.always_rerank and bool((np.diff(view.offsets) <= blend.skip_limit).any())
    below = blend.tail == "drop" or (measure.cutoff or 0) <= blend.depth
    return below and not short and blend.min_score is None and view.ties == "trec"


def _unit(
    blend: RerankBlend, view: AlignedRuns, spaces: Mapping[str, ScoreSpace], *, alone: bool
) -> FloatArray | None:
    """(N,): rerank scores, or others of the same order; None = they depend on what is blended."""
    name = blend.reranker
    if name not in view.rerankers or name not in spaces:
        return None
    row, space = view.rerankers.index(name), spaces[name]
    everything = np.ones(len(view.documents), dtype=bool)
    lacking = bool(np.isnan(view.rerank[row]).any())
    if lacking and blend.missing == "error":
        return None
    if space in FIXED or bool((np.diff(view.offsets) <= blend.depth).all()):
        unit = on_unit_scale(view, row, everything, space)
    elif alone and not (lacking and blend.missing == "zero"):
        unit = fixed_scale(view, row, space)
        if space == "order":
            unit = np.where(np.isnan(unit), np.nan, -view.rerank_ranks[row].astype(float))
    else:
        return None
    return np.where(np.isnan(unit), 0.0, unit) if blend.missing == "zero" else unit


def _mixed(
    fused: FusedLine, mixture: Mixture, unit: FloatArray
) -> tuple[FloatArray, FloatArray] | None:
    """The two shares' terms summed, times what divides all fused scores alike."""
    divisor = fused.divisor
    if not fused.is_weight and (mixture.retrieval != "fused" or divisor != (1.0, 0.0)):
        return None  # the greatest score has a kink where one bonus comes to exceed another
    if mixture.retrieval == "fused_max_possible":
        found = _greatest(fused)
        if found is None:
            return None
        divisor = found
    elif mixture.retrieval != "fused" or np.isfinite(fused.forms[0].ceiling):
        return None
    a, b, *_ = fused.lines
    share, other = float(mixture.shares[0]), float(mixture.rerank_shares[0])
    a, b = share * a + other * unit * divisor[0], share * b + other * unit * divisor[1]
    return a, b


def _greatest(fused: FusedLine) -> tuple[float, float] | None:
    """What sums of terms cannot exceed, as a line; None = it differs from query to query."""
    if not all(isinstance(one, RankSum) and np.isinf(one.ceiling) for one in fused.forms):
        return None
    tops = [
        np.array(form.divisor * factor * float(fusion.max_possible(fused.view)[0]))
        for fusion, form, factor in zip(fused.fusions, fused.forms, fused.factors, strict=True)
        if isinstance(form, RankSum)
    ]
    slope, rest = straight(tops, fused.places)
    return float(rest), float(slope)
