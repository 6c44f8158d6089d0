"""Frameworks: the retrievers of Haystack, LangChain and LlamaIndex."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from fusion_bench.config.parameters import Parameter
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.engines.dialects._dialect import EngineDialect, Form, read_template
from fusion_bench.engines.dialects._sums import (
    GREATEST_K,
    NormalizedWeights,
    ReciprocalRanks,
    ScaledScoreSum,
    ThreeSigma,
)
from fusion_bench.engines.dialects._translation import Draft, EngineFusion, ReciprocalRankSum
from fusion_bench.experiment.dialect import dialects
from fusion_bench.methods.fuse import Fusion, Homogeneity, WeightedFusion
from fusion_bench.methods.fuse.weighted_score import CombMax
from fusion_bench.methods.normalize import Normalizer, ScoreLists
from fusion_bench.methods.normalize.linear import MinMax, RawScores


class DistributionScale(ThreeSigma):
    """Equal scores count 0."""

    method: str = "haystack distribution_based_rank_fusion"


class Concatenate(EngineFusion):
    """``concatenate``: the greatest score of any list, as it is; weights are ignored.

    A score of 0 counts as no score, so that a negative one of another list is kept instead.
    """

    formula = "max score"
    source = "Haystack, components/joiners/document_joiner.py"
    ties = "first_seen"

    method: str = "concatenate"

    def fuse(self, runs: AlignedRuns) -> FloatArray:
        """(N,): the greatest score that is not 0; 0 where all are."""
        return _greatest(runs.scores)


class DistributionBased(EngineFusion):
    """``distribution_based_rank_fusion``: the greatest score by mean ± 3·sd; no weights.

    Other engines add these scores; here the list in which the document does best decides alone.
    """

    formula = "max (x − (mean − 3·sd))/(6·sd)"
    source = "Haystack, components/joiners/document_joiner.py"
    ties = "first_seen"

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

    formula = "Σ w·score / Σ w"
    source = "Haystack, components/joiners/document_joiner.py"
    ties = "first_seen"

    our_scale = RawScores()

    method: str = "merge"


class ReciprocalRankFusion(ReciprocalRanks, NormalizedWeights):
    """``reciprocal_rank_fusion``: 61·Σ_s w_s / (61 + position), positions from 0.

    The weights add up to 1, so that a document which is first in every list has the score 1.
    """

    formula = "61·Σ w/(61 + position) / Σ w"
    source = "Haystack, components/joiners/document_joiner.py"
    ties = "first_seen"

    constant_field = ""
    fixed_constant = 60

    method: str = "reciprocal_rank_fusion"

    def term_at(self, ranks: IntArray, weight: float) -> FloatArray:
        """(n,): the term of a list of this weight."""
        return (self.fixed_constant + 1) * super().term_at(ranks, weight)


@dialects.register
class Haystack(EngineDialect):
    """Haystack 2.20."""

    name = "haystack"
    title = "Haystack"
    version = "2.20"
    checked = "2026-11-22"
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

    forms = (Form({"pipeline.py": read_template("haystack.py")}),)
    notes = (
        "Fill in retrieve, for example by RETRIEVERS[name].run(...)['documents'].",
        "Weights go by the order of the lists. In a Pipeline, check in which order the lists reach "
        "the joiner.",
    )
    constant_rule = "fixed at 60"
    score_methods: ClassVar[Mapping[str, str]] = {"none": "merge"}

    @classmethod
    def convert(cls, draft: Draft) -> Mapping[str, Any]:
        """``concatenate`` for the greatest score as it is; else sums of ranks or of scores."""
        if not (isinstance(draft.fusion, CombMax) and draft.fusion.normalize.method == "none"):
            return super().convert(draft)
        draft.lose("score: 0 counts as no score, so that a negative one is kept instead")
        return {"method": "concatenate"}


class WeightedReciprocalRank(ReciprocalRanks, WeightedFusion):
    """``weighted_reciprocal_rank``: Σ_s w_s / (rank + c), ranks from 1.

    Attributes:
        c: Flattens the difference between neighboring ranks.
        weights: By source name or role; none = 1/n for each of n lists.
    """

    formula = "Σ w/(rank + c)"
    source = "LangChain, langchain_classic/retrievers/ensemble.py"
    ties = "first_seen"

    constant_field = "c"

    method: str = "weighted_reciprocal_rank"
    c: Annotated[int, Field(ge=0, le=GREATEST_K)] = 60

    def source_weights(self, sources: Sequence[str], roles: Sequence[frozenset[str]]) -> FloatArray:
        """(S,): weights by name or role; equal ones where there are none."""
        weights = super().source_weights(sources, roles)
        return weights if self.weights else np.full(len(sources), 1 / len(sources))


@dialects.register
class LangChain(EngineDialect):
    """LangChain 1.0, package langchain-classic."""

    name = "langchain"
    title = "LangChain"
    version = "1.0"
    checked = "2026-11-22"
    source = (
        "https://reference.langchain.com/python/langchain_classic/retrievers/#langchain_classic"
        ".retrievers.EnsembleRetriever"
    )
    methods = (WeightedReciprocalRank,)
    defaults: ClassVar[Mapping[str, Any]] = {"depth": 4}  # k of the usual retrievers
    precision = "float64"
    ignores = (
        "Scores are ignored; the fused score is not returned.",
        "A document that appears twice in one list is counted twice.",
        "A bonus for top ranks cannot be said.",
    )

    forms = (Form({"retriever.py": read_template("langchain.py")}),)
    notes = (
        'Fill in make_retriever, for example by VECTOR_STORE.as_retriever(search_kwargs={"k": k}).',
        "id_key names the metadata that identifies a document; without it, the text does.",
        "Before 1.0, import from langchain.retrievers.",
    )


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

    homogeneity: ClassVar[Homogeneity] = 0

    def source_weights(self, sources: Sequence[str], roles: Sequence[frozenset[str]]) -> FloatArray:
        """(S,): ones."""
        super().source_weights(sources, roles)
        return np.ones(len(sources))

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:  # noqa: ARG002 - no effect
        """Nothing."""
        return ()


class Simple(EngineFusion, IgnoredWeights):
    """``simple``: the greatest score of any list, as it is."""

    formula = "max score"
    source = "LlamaIndex, core/retrievers/fusion_retriever.py"
    ties = "first_seen"

    method: str = "simple"

    def fuse(self, runs: AlignedRuns) -> FloatArray:
        """(N,): the greatest score."""
        return np.asarray(np.nanmax(runs.scores, axis=0))

    def equivalent(self, _weights: dict[str, float], /) -> Fusion:
        """Our ``comb_max``."""
        return CombMax()


class ReciprocalRerank(IgnoredWeights, ReciprocalRanks):
    """``reciprocal_rerank``: Σ_s 1 / (60 + position), positions from 0; weights are ignored."""

    formula = "Σ 1/(60 + position)"
    source = "LlamaIndex, core/retrievers/fusion_retriever.py"
    ties = "first_seen"

    constant_field = ""
    fixed_constant = 59

    method: str = "reciprocal_rerank"


class ScoreMode(ScaledScoreSum, NormalizedWeights):
    """Σ_s w_s·scaled score, the weights divided by their sum; none = equal ones."""

    ties = "first_seen"


class RelativeScore(ScoreMode):
    """``relative_score``: Σ_s w_s·(x − min)/(max − min), the weights adding up to 1."""

    formula = "Σ w·(x − min)/(max − min) / Σ w"
    source = "LlamaIndex, core/retrievers/fusion_retriever.py"
    scale = RelativeScale()

    method: str = "relative_score"


class DistanceBasedScore(ScoreMode):
    """``dist_based_score``: as ``relative_score``, with mean ± 3·sd for the extremes."""

    formula = "Σ w·(x − (mean − 3·sd))/(6·sd) / Σ w"
    source = "LlamaIndex, core/retrievers/fusion_retriever.py"
    scale = DistanceScale()

    method: str = "dist_based_score"


@dialects.register
class LlamaIndex(EngineDialect):
    """LlamaIndex 0.14."""

    name = "llamaindex"
    title = "LlamaIndex"
    version = "0.14"
    checked = "2026-11-22"
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

    forms = (Form({"retriever.py": read_template("llamaindex.py")}),)
    notes = (
        "Fill in make_retriever, for example by INDEX.as_retriever(similarity_top_k=k).",
        "num_queries=1 keeps it from asking a language model for more queries.",
    )
    constant_rule = "fixed at 60 with positions from 0, which is k = 59 here"
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
