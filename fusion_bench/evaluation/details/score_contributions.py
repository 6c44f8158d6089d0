"""The summands of the final scores of some documents, by name: what ``explain`` shows, for many."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from fusion_bench.blend import Fused, RerankBlend
from fusion_bench.blend.none import NoBlend
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.data.records import ScoreSpace
from fusion_bench.evaluation.ranking.system_ranking import fused_list
from fusion_bench.experiment.system import System
from fusion_bench.fuse import ScoreTerms

#: Name of the term that a blend takes from the fused list.
RETRIEVAL = "retrieval"


class Contributions(NamedTuple):
    """The summands of n final scores.

    Attributes:
        labels: Names of the T summands.
        values: Shape (T, n); NaN = the score has no such summand.
        scores: Shape (n,): the final scores. They are the sums of their summands, up to rounding;
            less where a method limits its scores.
    """

    labels: tuple[str, ...]
    values: FloatArray
    scores: FloatArray


def list_contributions(
    system: System, view: AlignedRuns, rows: IntArray, spaces: Mapping[str, ScoreSpace]
) -> Contributions:
    """The summands of the final scores of some candidates.

    Args:
        system: A plain system.
        view: The sources that take part in it.
        rows: Shape (n,): candidates of the view.
        spaces: Score space of each rerank list.
    """
    parts = _take_terms(system.fusion.score_terms(view), rows)
    labels, values = _fused_contributions(parts, view.sources)
    if isinstance(system.blend, NoBlend):
        return Contributions(labels, values, system.fusion.display_scores(parts.scores))
    fused = fused_list(view, system.fusion)
    scores = system.blend.blend(view, fused, spaces).scores[rows]
    if not isinstance(system.blend, RerankBlend):
        return Contributions(labels, values, scores)
    names, mixed = _blend_contributions(system.blend, view, fused, spaces, rows, scores)
    values[:, ~np.isnan(mixed).all(axis=0)] = np.nan
    return Contributions((*labels, *names), np.vstack([values, mixed]), scores)


def _take_terms(parts: ScoreTerms, rows: IntArray) -> ScoreTerms:
    """The terms of some candidates."""
    return replace(parts, terms=parts.terms[:, rows], divisor=parts.divisor[rows])


def _fused_contributions(
    parts: ScoreTerms, sources: tuple[str, ...]
) -> tuple[tuple[str, ...], FloatArray]:
    """Names of the summands of the fused score, and their values, (T, n)."""
    names = parts.names(sources)
    labels = tuple(dict.fromkeys(names))
    values = np.zeros((len(labels), parts.terms.shape[1]))
    for name, term in zip(names, parts.terms, strict=True):
        values[labels.index(name)] += term / parts.divisor
    return labels, values


def _blend_contributions(
    blend: RerankBlend,
    view: AlignedRuns,
    fused: Fused,
    spaces: Mapping[str, ScoreSpace],
    rows: IntArray,
    scores: FloatArray,
) -> tuple[tuple[str, ...], FloatArray]:
    """Names of the summands of a blend, and their values; NaN where nothing was blended."""
    candidates, unit, unscored = blend.score_candidates(view, fused, spaces)
    is_blended = (candidates & ~unscored)[rows]
    mix = blend.blend_terms(view, fused, candidates)
    label = f"rerank {blend.reranker}"
    if mix is None:
        return (label,), np.where(is_blended, scores, np.nan)[None]
    terms = (
        mix.retrieval_weight[rows] * mix.retrieval[rows],
        mix.rerank_weight[rows] * unit[rows],
    )
    return (RETRIEVAL, label), np.where(is_blended, np.stack(terms), np.nan)
