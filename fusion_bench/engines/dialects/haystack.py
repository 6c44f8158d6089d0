"""Haystack: the modes of ``DocumentJoiner``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.engines.dialects._dialect import EngineDialect, Form
from fusion_bench.engines.dialects._sums import (
    NormalizedWeights,
    ReciprocalRanks,
    ScaledScoreSum,
    ThreeSigma,
)
from fusion_bench.engines.dialects._translation import Draft, EngineFusion
from fusion_bench.experiment.dialect import dialects
from fusion_bench.methods.fuse.comb import CombMax
from fusion_bench.methods.normalize.linear import RawScores


class DistributionScale(ThreeSigma):
    """Equal scores count 0."""

    method: str = "haystack distribution_based_rank_fusion"


class Concatenate(EngineFusion):
    """``concatenate``: the greatest score of any list, as it is; weights are ignored.

    A score of 0 counts as no score, so that a negative one of another list is kept instead.
    """

    formula: ClassVar[str] = "max score"
    source: ClassVar[str] = "Haystack, components/joiners/document_joiner.py"

    method: str = "concatenate"

    def fuse(self, runs: AlignedRuns) -> FloatArray:
        """(N,): the greatest score that is not 0; 0 where all are."""
        return _greatest(runs.scores)


class DistributionBased(EngineFusion):
    """``distribution_based_rank_fusion``: the greatest score by mean ± 3·sd; no weights.

    Other engines add these scores; here the list in which the document does best decides alone.
    """

    formula: ClassVar[str] = "max (x − (mean − 3·sd))/(6·sd)"
    source: ClassVar[str] = "Haystack, components/joiners/document_joiner.py"

    method: str = "distribution_based_rank_fusion"

    def fuse(self, runs: AlignedRuns) -> FloatArray:
        """(N,): the greatest scaled score that is not 0; 0 where all are."""
        return _greatest(DistributionScale(constant=0).normalize_scores(runs))


def _greatest(scores: FloatArray) -> FloatArray:
    """(N,): of (S, N) scores, those that are NaN or 0 left out; 0 where none is left."""
    best = np.max(np.where(np.isnan(scores) | (scores == 0), -np.inf, scores), axis=0)
    return np.where(np.isinf(best), 0.0, best)


class Merge(ScaledScoreSum, NormalizedWeights):
    """``merge``: Σ_s w_s·score, the weights adding up to 1."""

    formula: ClassVar[str] = "Σ w·score / Σ w"
    source: ClassVar[str] = "Haystack, components/joiners/document_joiner.py"

    our_scale = RawScores()

    method: str = "merge"


class ReciprocalRankFusion(ReciprocalRanks, NormalizedWeights):
    """``reciprocal_rank_fusion``: 61·Σ_s w_s / (61 + position), positions from 0.

    The weights add up to 1, so that a document which is first in every list has the score 1.
    """

    formula: ClassVar[str] = "61·Σ w/(61 + position) / Σ w"
    source: ClassVar[str] = "Haystack, components/joiners/document_joiner.py"

    constant_field = ""
    fixed_constant = 60

    method: str = "reciprocal_rank_fusion"

    def term_at(self, ranks: IntArray, weight: float) -> FloatArray:
        """(n,): the term of a list of this weight."""
        return (self.fixed_constant + 1) * super().term_at(ranks, weight)


CODE = """\
from haystack.components.joiners import DocumentJoiner

# List -> how many documents are fetched.
WINDOWS = $windows!r
TOP_K = $top_k


def retrieve(name: str, query: str, top_k: int):
    raise NotImplementedError("return the documents of this list")


joiner = DocumentJoiner(
    join_mode=$method!r,
    weights=$weights!r,
    top_k=TOP_K,
)
lists = [retrieve(name, "QUERY", top_k) for name, top_k in WINDOWS.items()]
documents = joiner.run(documents=lists)["documents"]
"""


@dialects.register
class Haystack(EngineDialect):
    """Haystack 2.20."""

    name = "haystack"
    title = "Haystack"
    version = "2.20"
    source = "https://docs.haystack.deepset.ai/docs/documentjoiner"
    methods = (Concatenate, Merge, ReciprocalRankFusion, DistributionBased)
    defaults: ClassVar[Mapping[str, Any]] = {"depth": 10}  # top_k of the usual retrievers
    rank_base = 0
    precision = "float64"
    ignores = (
        "concatenate and distribution_based_rank_fusion accept weights and ignore them.",
        "k of reciprocal_rank_fusion cannot be set.",
        "A bonus for top ranks cannot be said.",
    )

    forms = (Form({"pipeline.py": CODE}),)
    notes = (
        "Fill in retrieve, for example by RETRIEVERS[name].run(...)['documents'].",
        "Weights go by the order of the lists. In a Pipeline, check in which order the lists reach "
        "the joiner.",
    )
    fixed_constant = "fixed at 60"
    score_methods: ClassVar[Mapping[str, str]] = {"none": "merge"}

    @classmethod
    def convert(cls, draft: Draft) -> Mapping[str, Any]:
        """``concatenate`` for the greatest score as it is; else sums of ranks or of scores."""
        if not (isinstance(draft.fusion, CombMax) and draft.fusion.normalize.method == "none"):
            return super().convert(draft)
        draft.lose("score: 0 counts as no score, so that a negative one is kept instead")
        return {"method": "concatenate"}
