"""LlamaIndex: the modes of ``QueryFusionRetriever``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from fusion_bench.config.parameters import Parameter
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray
from fusion_bench.engines.dialects._dialect import EngineDialect, Form
from fusion_bench.engines.dialects._sums import (
    NormalizedWeights,
    ReciprocalRanks,
    ScaledScoreSum,
    ThreeSigma,
)
from fusion_bench.engines.dialects._translation import Draft, EngineFusion, ReciprocalRankSum
from fusion_bench.experiment.dialect import dialects
from fusion_bench.methods.fuse import Fusion, Homogeneity, WeightedFusion
from fusion_bench.methods.fuse.comb import CombMax
from fusion_bench.methods.normalize import Normalizer, ScoreLists
from fusion_bench.methods.normalize.linear import MinMax


def _keep_positive(lists: ScoreLists, scaled: FloatArray) -> FloatArray:
    """(n,): the scaled scores, but 0 in a list of equal scores that are not positive."""
    high = lists.list_maximum()
    return np.where((high > lists.list_minimum()) | (high > 0), scaled, 0.0)


class RelativeScale(MinMax):
    """(x − min) / (max − min); equal scores count 1 if they are positive, else 0."""

    method: str = "llamaindex relative_score"

    def scale_lists(self, lists: ScoreLists) -> FloatArray:
        """(n,): in [0, 1], the best document 1."""
        return _keep_positive(lists, super().scale_lists(lists))


class DistanceScale(ThreeSigma):
    """(x − (mean − 3·sd)) / (6·sd), population sd, not clipped; equal scores as in min-max."""

    method: str = "llamaindex dist_based_score"

    def scale_lists(self, lists: ScoreLists) -> FloatArray:
        """(n,): the mean 0.5."""
        return _keep_positive(lists, super().scale_lists(lists))


class IgnoredWeights(WeightedFusion):
    """A mode that accepts weights and ignores them: every list weighs 1.

    Attributes:
        weights: Without any effect.
    """

    def source_weights(self, sources: Sequence[str], roles: Sequence[frozenset[str]]) -> FloatArray:
        """(S,): ones."""
        super().source_weights(sources, roles)
        return np.ones(len(sources))

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:  # noqa: ARG002 - no effect
        """Nothing."""
        return ()

    @property
    def weight_homogeneity(self) -> Homogeneity:
        """0: weights change nothing."""
        return 0


class Simple(EngineFusion, IgnoredWeights):
    """``simple``: the greatest score of any list, as it is."""

    formula: ClassVar[str] = "max score"
    source: ClassVar[str] = "LlamaIndex, core/retrievers/fusion_retriever.py"

    method: str = "simple"

    def fuse(self, runs: AlignedRuns) -> FloatArray:
        """(N,): the greatest score."""
        return np.asarray(np.nanmax(runs.scores, axis=0))

    def equivalent(self, _weights: dict[str, float], /) -> Fusion:
        """Our ``comb_max``."""
        return CombMax()


class ReciprocalRerank(IgnoredWeights, ReciprocalRanks):
    """``reciprocal_rerank``: Σ_s 1 / (60 + position), positions from 0; weights are ignored."""

    formula: ClassVar[str] = "Σ 1/(60 + position)"
    source: ClassVar[str] = "LlamaIndex, core/retrievers/fusion_retriever.py"

    constant_field = ""
    fixed_constant = 59

    method: str = "reciprocal_rerank"


class ScoreMode(ScaledScoreSum, NormalizedWeights):
    """Σ_s w_s·scaled score, the weights divided by their sum; none = equal ones."""


class RelativeScore(ScoreMode):
    """``relative_score``: Σ_s w_s·(x − min)/(max − min), the weights adding up to 1."""

    formula: ClassVar[str] = "Σ w·(x − min)/(max − min) / Σ w"
    source: ClassVar[str] = "LlamaIndex, core/retrievers/fusion_retriever.py"
    scale = RelativeScale()

    method: str = "relative_score"


class DistanceBasedScore(ScoreMode):
    """``dist_based_score``: as ``relative_score``, with mean ± 3·sd for the extremes."""

    formula: ClassVar[str] = "Σ w·(x − (mean − 3·sd))/(6·sd) / Σ w"
    source: ClassVar[str] = "LlamaIndex, core/retrievers/fusion_retriever.py"
    scale = DistanceScale()

    method: str = "dist_based_score"


CODE = """\
from llama_index.core.retrievers import QueryFusionRetriever

# List -> how many documents are fetched.
WINDOWS = $windows!r
TOP_K = $top_k


def make_retriever(name: str, similarity_top_k: int):
    raise NotImplementedError("return the retriever of this list")


retriever = QueryFusionRetriever(
    [make_retriever(name, k) for name, k in WINDOWS.items()],
    mode=$method!r,
    similarity_top_k=TOP_K,
    num_queries=1,
    retriever_weights=$weights!r,
)
nodes = retriever.retrieve("QUERY")
"""


@dialects.register
class LlamaIndex(EngineDialect):
    """LlamaIndex 0.14."""

    name = "llamaindex"
    title = "LlamaIndex"
    version = "0.14"
    source = (
        "https://developers.llamaindex.ai/python/framework-api-reference/retrievers/query_fusion/"
    )
    methods = (Simple, ReciprocalRerank, RelativeScore, DistanceBasedScore)
    defaults: ClassVar[Mapping[str, Any]] = {"depth": 2, "top_k": 2}  # similarity_top_k
    rank_base = 0
    precision = "float64"
    ignores = (
        "reciprocal_rerank and simple accept retriever_weights and ignore them.",
        "k of reciprocal_rerank cannot be set.",
        "A bonus for top ranks cannot be said.",
    )

    forms = (Form({"retriever.py": CODE}),)
    notes = (
        "Fill in make_retriever, for example by INDEX.as_retriever(similarity_top_k=k).",
        "num_queries=1 keeps it from asking a language model for more queries.",
    )
    fixed_constant = "fixed at 60 with positions from 0, which is k = 59 here"
    no_weights = "reciprocal_rerank accepts and ignores them"
    score_methods: ClassVar[Mapping[str, str]] = {
        "min_max": "relative_score",
        "dbsf": "dist_based_score",
    }

    @classmethod
    def convert(cls, draft: Draft) -> Mapping[str, Any]:
        """``simple`` for the greatest score as it is; else sums of ranks or of scores."""
        if isinstance(draft.fusion, CombMax) and draft.fusion.normalize.method == "none":
            return {"method": "simple"}
        return super().convert(draft)

    @classmethod
    def convert_ranks(cls, draft: Draft, ranks: ReciprocalRankSum) -> Mapping[str, Any]:
        """Weights would be ignored."""
        return {**super().convert_ranks(draft, ranks), "weights": {}}

    @classmethod
    def convert_scores(cls, draft: Draft, scale: Normalizer) -> Mapping[str, Any]:
        """A score mode."""
        fusion = super().convert_scores(draft, scale)
        draft.lose("normalize: in a list of equal scores, not positive ones count 0, others 1")
        if scale.method == "dbsf":
            draft.lose("normalize: dist_based_score is not clipped, and divides by n, not n-1")
        return fusion
