"""LlamaIndex: the modes of ``QueryFusionRetriever``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from fusion_bench.config.parameters import Parameter
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray
from fusion_bench.engines.dialects._configuration import (
    check_writable,
    find_call,
    parse_python,
    read_windows,
    refuse_unreadable,
    weights_by_source,
    write_windows,
)
from fusion_bench.engines.dialects._sums import NormalizedWeights, ReciprocalRanks, ScaledScoreSum
from fusion_bench.engines.dialects._translation import Draft, EngineFusion, name_weights
from fusion_bench.experiment.dialect import Configuration, Dialect, Translation, dialects
from fusion_bench.experiment.system import System
from fusion_bench.methods.fuse import Fusion, Homogeneity, WeightedFusion
from fusion_bench.methods.fuse.comb import CombMax
from fusion_bench.methods.normalize import Normalizer, ScoreLists

FILE = "retriever.py"
#: k is fixed, and ranks count from 0: ours is 59.
OUR_K = 59


class MinMax(Normalizer):
    """(x − min) / (max − min); equal scores count 1 if they are positive, else 0."""

    method: str = "llamaindex relative_score"

    def scale_lists(self, lists: ScoreLists) -> FloatArray:
        """(n,): in [0, 1], the best document 1."""
        low, high = lists.list_minimum(), lists.list_maximum()
        scaled = self.divide_or_constant(lists.scores - low, high - low)
        return np.where((high > low) | (high > 0), scaled, 0.0)


class ThreeSigma(Normalizer):
    """(x − (mean − 3·sd)) / (6·sd), population sd, not clipped; equal scores as in min-max."""

    method: str = "llamaindex dist_based_score"

    def scale_lists(self, lists: ScoreLists) -> FloatArray:
        """(n,): the mean 0.5."""
        size, high = lists.list_length(), lists.list_maximum()
        mean = lists.list_sum(lists.scores) / size
        sd = np.sqrt(lists.list_sum((lists.scores - mean) ** 2) / size)
        spread = high > lists.list_minimum()
        scaled = self.divide_or_constant(lists.scores - (mean - 3 * sd), 6 * sd, spread)
        return np.where(spread | (high > 0), scaled, 0.0)


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

    def equivalent(
        self,
        sources: Sequence[str],  # noqa: ARG002 - part of the contract
        roles: Sequence[frozenset[str]],  # noqa: ARG002 - part of the contract
    ) -> Fusion:
        """Our ``comb_max``."""
        return CombMax()


class ReciprocalRerank(IgnoredWeights, ReciprocalRanks):
    """``reciprocal_rerank``: Σ_s 1 / (60 + position), positions from 0; weights are ignored."""

    formula: ClassVar[str] = "Σ 1/(60 + position)"
    source: ClassVar[str] = "LlamaIndex, core/retrievers/fusion_retriever.py"

    method: str = "reciprocal_rerank"

    @property
    def constant(self) -> float:
        """59, for ranks that count from 1."""
        return OUR_K


class ScoreMode(ScaledScoreSum, NormalizedWeights):
    """Σ_s w_s·scaled score, the weights divided by their sum; none = equal ones."""

    scale: ClassVar[Normalizer]

    def scaled_scores(self, runs: AlignedRuns) -> FloatArray:
        """(S, N): each list on the scale of the mode."""
        return self.scale.normalize_scores(runs)


class RelativeScore(ScoreMode):
    """``relative_score``: Σ_s w_s·(x − min)/(max − min), the weights adding up to 1."""

    formula: ClassVar[str] = "Σ w·(x − min)/(max − min) / Σ w"
    source: ClassVar[str] = "LlamaIndex, core/retrievers/fusion_retriever.py"
    scale: ClassVar[Normalizer] = MinMax()

    method: str = "relative_score"


class DistanceBasedScore(ScoreMode):
    """``dist_based_score``: as ``relative_score``, with mean ± 3·sd for the extremes."""

    formula: ClassVar[str] = "Σ w·(x − (mean − 3·sd))/(6·sd) / Σ w"
    source: ClassVar[str] = "LlamaIndex, core/retrievers/fusion_retriever.py"
    scale: ClassVar[Normalizer] = ThreeSigma()

    method: str = "dist_based_score"


@dialects.register
class LlamaIndex(Dialect):
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

    @classmethod
    def translate(cls, system: System, roles: Mapping[str, frozenset[str]]) -> Translation:
        """``reciprocal_rerank`` for reciprocal ranks, the score modes for sums of scores."""
        draft = Draft(cls, system, roles)
        fusion: dict[str, Any]
        if draft.is_of_dialect:
            fusion = draft.keep_fusion()
        elif (ranks := draft.find_reciprocal_ranks()) is not None:
            if set(ranks.k.values()) != {OUR_K}:
                draft.lose("k: fixed at 60 with positions from 0, which is k = 59 here")
            if not ranks.has_equal_weights:
                draft.lose("weights: reciprocal_rerank accepts and ignores them")
            fusion = {"method": "reciprocal_rerank"}
        elif (mean := draft.find_score_sum()) is not None:
            modes = {"min_max": "relative_score", "dbsf": "dist_based_score"}
            name = mean.normalize.method
            if name not in modes:
                return draft.refuse(f"normalize: {cls.title} has no {name!r}")
            draft.lose("normalize: in a list of equal scores, not positive ones count 0, others 1")
            if name == "dbsf":
                draft.lose("normalize: dist_based_score is not clipped, and divides by n, not n-1")
            fusion = {"method": modes[name], "weights": name_weights(draft.weights)}
        elif isinstance(draft.fusion, CombMax) and draft.fusion.normalize.method == "none":
            fusion = {"method": "simple"}
        else:
            return draft.refuse_fusion()
        return draft.finish(fusion, **draft.choose_windows(by_source=True))

    @classmethod
    def write(cls, system: System) -> Configuration:
        """Python that builds the retriever."""
        check_writable(cls, system)
        weights = [*weights_by_source(system).values()]
        code = f"""\
from llama_index.core.retrievers import QueryFusionRetriever

{write_windows(system)}

def make_retriever(name: str, similarity_top_k: int):
    raise NotImplementedError("return the retriever of this list")


retriever = QueryFusionRetriever(
    [make_retriever(name, k) for name, k in WINDOWS.items()],
    mode={system.fusion.method!r},
    similarity_top_k=TOP_K,
    num_queries=1,
    retriever_weights={weights!r},
)
nodes = retriever.retrieve("QUERY")
"""
        return Configuration(
            {FILE: code},
            (
                "Fill in make_retriever, for example by INDEX.as_retriever(similarity_top_k=k).",
                "num_queries=1 keeps it from asking a language model for more queries.",
            ),
        )

    @classmethod
    def read(cls, files: Mapping[str, str]) -> dict[str, Any]:
        """A system from Python that builds the retriever.

        Raises:
            ConfigError: It is none.
        """
        tree = parse_python(files, FILE)
        with refuse_unreadable(FILE, cls.title):
            windows = read_windows(tree)
            _, arguments = find_call(tree, "QueryFusionRetriever")
            fusion: dict[str, Any] = {"method": arguments.get("mode", "simple")}
            if weights := arguments.get("retriever_weights"):
                fusion["weights"] = dict(zip(windows["runs"], weights, strict=True))
        return {"dialect": cls.name, "fusion": fusion, **windows}
