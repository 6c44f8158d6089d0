"""Weaviate: ranked fusion and relative score fusion of a keyword and a vector search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

from pydantic import Field

from fusion_bench.config.parameters import Parameter, real
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.engines.dialects._configuration import (
    check_writable,
    common_window,
    find_call,
    most_results,
    parse_python,
    refuse_unreadable,
)
from fusion_bench.engines.dialects._sums import (
    NO_PAIR,
    RankTermSum,
    ScaledScoreSum,
    find_vector_source,
    vector_first,
    weigh_pair,
)
from fusion_bench.engines.dialects._translation import Draft, EngineFusion
from fusion_bench.experiment.dialect import Configuration, Dialect, Translation, dialects
from fusion_bench.experiment.system import System
from fusion_bench.methods.fuse import Fusion
from fusion_bench.methods.fuse.rrf import RRF
from fusion_bench.methods.fuse.weighted_score import WeightedScore
from fusion_bench.methods.normalize.linear import MinMax

FILE, SERVER = "search.py", "weaviate.env"
#: Variable of the server: how many documents either search fetches.
WINDOW = "QUERY_HYBRID_MAXIMUM_RESULTS"
#: The constant, for ranks from 1: 60 for positions from 0.
CONSTANT = 59
#: Our names of the methods → those of the Python client.
CLIENT_NAMES = {"relativeScoreFusion": "RELATIVE_SCORE", "rankedFusion": "RANKED"}


class WeaviateFusion(EngineFusion):
    """A keyword search of weight 1 − alpha and a vector search of weight alpha.

    Attributes:
        alpha: Weight of the vector search.
        vector: Which source that is; None = the only one of role ``semantic``.
    """

    alpha: Annotated[float, Field(ge=0, le=1)] = 0.75
    vector: str | None = None

    def source_weights(self, sources: Sequence[str], roles: Sequence[frozenset[str]]) -> FloatArray:
        """(S,): alpha for the vector search, 1 − alpha for the other one.

        Raises:
            ConfigError: The sources are no such pair.
        """
        return weigh_pair(sources, roles, self.vector, self.alpha)

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:  # noqa: ARG002 - always two
        """Alpha."""
        return (real("alpha", 0.0, 1.0),)

    def _name_weights(
        self, sources: Sequence[str], roles: Sequence[frozenset[str]]
    ) -> dict[str, float]:
        weights = self.source_weights(sources, roles).tolist()
        return dict(zip(sources, weights, strict=True))


class RelativeScoreFusion(WeaviateFusion, ScaledScoreSum):
    """``relativeScoreFusion``: Σ_s w_s·(x − min) / (max − min); 1 for equal scores."""

    formula: ClassVar[str] = "Σ w·(x − min)/(max − min)"
    source: ClassVar[str] = "Weaviate, usecases/traverser/hybrid/hybrid_fusion.go"

    method: str = "relativeScoreFusion"

    def scaled_scores(self, runs: AlignedRuns) -> FloatArray:
        """(S, N): each list by its extremes."""
        return MinMax().normalize_scores(runs)

    def equivalent(self, sources: Sequence[str], roles: Sequence[frozenset[str]]) -> Fusion:
        """Our weighted mean of min-max scores with 0 for missing ones."""
        weights = self._name_weights(sources, roles)
        return WeightedScore(normalize=MinMax(), missing="zero", weights=weights)


class RankedFusion(WeaviateFusion, RankTermSum):
    """``rankedFusion``: Σ_s w_s / (60 + position), positions from 0."""

    formula: ClassVar[str] = "Σ w/(60 + position)"
    source: ClassVar[str] = "Weaviate, usecases/traverser/hybrid/hybrid_fusion.go"

    method: str = "rankedFusion"

    def term_at(self, ranks: IntArray, weight: float) -> FloatArray:
        """(n,): the term of a list of this weight."""
        return weight / (ranks + CONSTANT)

    def equivalent(self, sources: Sequence[str], roles: Sequence[frozenset[str]]) -> Fusion:
        """Our ``rrf`` of k = 59."""
        return RRF(k=CONSTANT, weights=self._name_weights(sources, roles))


@dialects.register
class Weaviate(Dialect):
    """Weaviate since 1.24."""

    name = "weaviate"
    title = "Weaviate"
    version = "1.24"
    source = "https://docs.weaviate.io/weaviate/concepts/search/hybrid-search"
    methods = (RelativeScoreFusion, RankedFusion)
    defaults: ClassVar[Mapping[str, Any]] = {"depth": 100, "top_k": 10}
    rank_base = 0
    ignores = (
        "The constant of rankedFusion cannot be set.",
        "Two searches are fused, a keyword search and a vector search, and no more.",
        "A bonus for top ranks, and a depth of its own for each list, cannot be said.",
    )

    @classmethod
    def translate(cls, system: System, roles: Mapping[str, frozenset[str]]) -> Translation:
        """``rankedFusion`` for reciprocal ranks, ``relativeScoreFusion`` for min-max scores."""
        draft = Draft(cls, system, roles)
        vector = find_vector_source(draft)
        if draft.is_of_dialect and len(draft.sources) == 2:
            vector = system.fusion.model_dump()["vector"] or vector
        if vector is None:
            return draft.refuse(NO_PAIR)
        fusion: dict[str, Any]
        if draft.is_of_dialect:
            fusion = draft.keep_fusion() | {"vector": vector}
        else:
            if (ranks := draft.find_reciprocal_ranks()) is not None:
                fusion = {"method": "rankedFusion"}
                if set(ranks.k.values()) != {CONSTANT}:
                    draft.lose(f"k: the constant is fixed, our k = {CONSTANT}")
            elif (mean := draft.find_score_sum()) is not None:
                if mean.normalize.method != "min_max":
                    return draft.refuse(f"normalize: {cls.title} has no {mean.normalize.method!r}")
                if mean.normalize.constant != 1:
                    draft.lose("normalize: a list of equal scores counts 1")
                fusion = {"method": "relativeScoreFusion"}
            else:
                return draft.refuse_fusion()
            share = draft.weights[vector] / sum(draft.weights.values())
            fusion |= {"alpha": share, "vector": vector}
        return draft.finish(fusion, **draft.choose_windows())

    @classmethod
    def write(cls, system: System) -> Configuration:
        """Python for the client, and the variable of the server."""
        check_writable(cls, system)
        fusion = system.fusion.model_dump()
        vector, keyword = vector_first(system, fusion["vector"])
        code = f"""from weaviate.classes.query import HybridFusion

# client = weaviate.connect_to_local()
response = client.collections.use("COLLECTION").query.hybrid(
    query="QUERY",
    query_properties=[{keyword!r}],
    target_vector={vector!r},
    alpha={fusion["alpha"]!r},
    fusion_type=HybridFusion.{CLIENT_NAMES[fusion["method"]]},
    limit={most_results(system)},
)
"""
        return Configuration(
            {FILE: code, SERVER: f"{WINDOW}={common_window(system)}\n"},
            (
                "Replace query_properties and target_vector by your property and vector.",
                f"Set {WINDOW} on the server; it is 100 by default, and at least the limit counts.",
            ),
        )

    @classmethod
    def read(cls, files: Mapping[str, str]) -> dict[str, Any]:
        """A system from the Python and the variable.

        Raises:
            ConfigError: They are no such configuration.
        """
        tree = parse_python(files, FILE)
        names = {client: ours for ours, client in CLIENT_NAMES.items()}
        with refuse_unreadable(FILE, cls.title):
            _, call = find_call(tree, "hybrid")
            (keyword,) = call["query_properties"]
            fusion = {
                "method": names[call.get("fusion_type", "RELATIVE_SCORE")],
                "alpha": call.get("alpha", 0.75),
                "vector": call["target_vector"],
            }
            _, _, window = files.get(SERVER, f"{WINDOW}=100").strip().partition("=")
            depth = int(window)
        return {
            "runs": [keyword, fusion["vector"]],
            "dialect": cls.name,
            "fusion": fusion,
            "depth": depth,
            "top_k": call.get("limit", 10),
        }
