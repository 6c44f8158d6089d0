"""Elasticsearch: the ``rrf`` and the ``linear`` retriever."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, get_args

import numpy as np
from pydantic import Field

from fusion_bench.config.models import Weight
from fusion_bench.config.parameters import Parameter, choice, integer
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray
from fusion_bench.engines.dialects._configuration import (
    check_writable,
    common_window,
    read_json,
    refuse_unreadable,
    weights_by_source,
    write_json,
)
from fusion_bench.engines.dialects._search_requests import (
    PLACEHOLDERS,
    add_reranker,
    find_reranker,
    fit_replace,
    is_vector_search,
    read_reranker,
    write_search,
)
from fusion_bench.engines.dialects._sums import ScaledScoreSum
from fusion_bench.engines.dialects._translation import CanonicalFusion, Draft, name_weights
from fusion_bench.experiment.dialect import Configuration, Dialect, Translation, dialects
from fusion_bench.experiment.system import System
from fusion_bench.methods.blend.formulas import Replace
from fusion_bench.methods.fuse import Fusion, WeightedFusion
from fusion_bench.methods.fuse.rrf import RRF
from fusion_bench.methods.fuse.weighted_score import WeightedScore
from fusion_bench.methods.normalize import Normalizer, ScoreLists
from fusion_bench.methods.normalize.linear import RawScores

NormalizerName = Literal["none", "minmax", "l2_norm"]
#: Our normalizer → Elasticsearch's, of equal values on every list but those that docs name.
NORMALIZERS: Mapping[str, NormalizerName] = {"none": "none", "min_max": "minmax", "l2": "l2_norm"}
#: Nearer extremes, and shorter vectors, count as equal and as zero.
EPSILON = 1e-6
FILE = "search.json"


class MinMax(Normalizer):
    """(x − min) / (max − min); 1 for a list of equal scores."""

    method: str = "elasticsearch minmax"

    def scale_lists(self, lists: ScoreLists) -> FloatArray:
        """(n,): in [0, 1], the best document 1."""
        low = lists.list_minimum()
        spread = lists.list_maximum() - low
        return self.divide_or_constant(lists.scores - low, spread, spread >= EPSILON)


class L2(Normalizer):
    """x / ‖x‖₂; x itself where the norm is below 0.000001."""

    method: str = "elasticsearch l2_norm"

    def scale_lists(self, lists: ScoreLists) -> FloatArray:
        """(n,): squares adding up to 1 over the list."""
        norm = np.sqrt(lists.list_sum(lists.scores**2))
        return lists.scores / np.where(norm < EPSILON, 1.0, norm)


SCALES: Mapping[str, Normalizer] = {"none": RawScores(), "minmax": MinMax(), "l2_norm": L2()}


class ElasticsearchRRF(CanonicalFusion):
    """``rrf``: Σ_s w_s / (rank_constant + rank), ranks from 1.

    Attributes:
        rank_constant: Flattens the difference between neighboring ranks.
        weights: By source name or role; since 9.2.
    """

    formula: ClassVar[str] = "Σ w/(rank_constant + rank)"
    source: ClassVar[str] = "Elasticsearch reference, RRF retriever"

    method: str = "rrf"
    rank_constant: Annotated[int, Field(ge=1, le=1000)] = 60
    weights: dict[str, Weight] = Field(default_factory=dict)

    @property
    def canonical(self) -> RRF:
        """Our ``rrf``."""
        return RRF(k=self.rank_constant, weights=self.weights)

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:
        """The rank constant and the weights."""
        _, *weights = self.canonical.space(sources)
        return (integer("rank_constant", 1, 1000, log=True), *weights)


class ElasticsearchLinear(ScaledScoreSum, WeightedFusion):
    """``linear``: Σ_s w_s·normalized score; a list without the document adds 0.

    Attributes:
        normalizer: Of all lists, or by source name.
    """

    formula: ClassVar[str] = "Σ w·normalized score"
    source: ClassVar[str] = "Elasticsearch reference, linear retriever"

    method: str = "linear"
    normalizer: NormalizerName | dict[str, NormalizerName] = "none"

    def normalizer_of(self, source: str) -> NormalizerName:
        """The normalizer of a source; ``none`` where a mapping does not name it."""
        if isinstance(self.normalizer, dict):
            return self.normalizer.get(source, "none")
        return self.normalizer

    def scaled_scores(self, runs: AlignedRuns) -> FloatArray:
        """(S, N): each list by its normalizer."""
        return np.array(
            [
                SCALES[self.normalizer_of(name)].normalize_scores(runs)[s]
                for s, name in enumerate(runs.sources)
            ]
        )

    def equivalent(
        self,
        sources: Sequence[str],
        roles: Sequence[frozenset[str]],  # noqa: ARG002 - part of the contract
    ) -> Fusion | None:
        """Our weighted mean with 0 for missing scores, where one normalizer serves all lists."""
        names = {self.normalizer_of(name) for name in sources}
        ours = {normalizer: name for name, normalizer in NORMALIZERS.items()}
        if names not in ({"none"}, {"minmax"}):
            return None
        normalize = ours[names.pop()]
        return WeightedScore.model_validate(
            {"normalize": normalize, "missing": "zero", "weights": self.weights}
        )

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:
        """The normalizer, where it is one for all, and the weights."""
        if isinstance(self.normalizer, dict):
            return super().space(sources)
        return (choice("normalizer", *get_args(NormalizerName)), *super().space(sources))


@dialects.register
class Elasticsearch(Dialect):
    """Elasticsearch 9.2."""

    name = "elasticsearch"
    title = "Elasticsearch"
    version = "9.2"
    source = "https://www.elastic.co/docs/reference/elasticsearch/rest-apis/retrievers"
    methods = (ElasticsearchRRF, ElasticsearchLinear)
    defaults: ClassVar[Mapping[str, Any]] = {"depth": 10, "top_k": 10}  # rank_window_size, size
    ignores = (
        "A bonus for top ranks cannot be said.",
        "A depth of its own for each list cannot be said: rank_window_size is one for all.",
        "text_similarity_reranker replaces the fused score: of the blends, replace alone can be "
        "said.",
    )
    blends = (Replace,)

    @classmethod
    def translate(cls, system: System, roles: Mapping[str, frozenset[str]]) -> Translation:
        """``rrf`` for sums of reciprocal ranks, ``linear`` for sums of scores."""
        draft = Draft(cls, system, roles)
        if len(draft.sources) < 2:
            return draft.refuse("runs: a retriever fuses two or more lists")
        fusion: Mapping[str, Any]
        if draft.is_of_dialect:
            fusion = draft.keep_fusion()
        elif (ranks := draft.find_reciprocal_ranks()) is not None:
            constant = draft.choose_rank_constant(ranks, 1)
            fusion = {"rank_constant": constant, "weights": name_weights(ranks.weights)}
        elif (mean := draft.find_score_sum()) is not None:
            scales = {name: draft.normalizer_of(mean.normalize, name) for name in draft.sources}
            for scale in scales.values():
                if scale.method not in NORMALIZERS:
                    return draft.refuse(f"normalize: {cls.title} has no {scale.method!r}")
            fusion = cls._linear(draft, scales)
        else:
            return draft.refuse_fusion()
        return draft.finish(fusion, **fit_replace(draft, draft.choose_windows(cut_to_window=True)))

    @classmethod
    def _linear(cls, draft: Draft, scales: Mapping[str, Normalizer]) -> Mapping[str, Any]:
        constants = {(scale.method, scale.constant) for scale in scales.values()}
        for name, constant in sorted(constants):
            if name == "min_max" and constant != 1:
                draft.lose(f"normalize: a list of equal scores counts 1, not {constant:g}")
            elif name == "min_max":
                draft.note("normalize: scores less than 0.000001 apart count as equal")
            elif name == "l2" and constant != 0:
                draft.lose("normalize: in a list of zeros every document counts 0")
        names = {name: NORMALIZERS[scale.method] for name, scale in scales.items()}
        is_common = len(set(names.values())) == 1
        return {
            "method": "linear",
            "normalizer": next(iter(names.values())) if is_common else names,
            "weights": name_weights(draft.weights),
        }

    @classmethod
    def write(cls, system: System) -> Configuration:
        """The body of a search request, with a match query for every list."""
        return cls.write_by_role(system, {})

    @classmethod
    def write_by_role(cls, system: System, roles: Mapping[str, frozenset[str]]) -> Configuration:
        """The same with a ``knn`` retriever for each list of role ``semantic``."""
        check_writable(cls, system)
        reranker = find_reranker(cls, system)
        weights, window = weights_by_source(system), common_window(system)
        fusion = system.fusion
        entries = []
        for name in system.runs:
            search = write_search(name, window, is_vector=is_vector_search(name, roles))
            entry: dict[str, Any] = {"retriever": search, "weight": weights[name]}
            if isinstance(fusion, ElasticsearchLinear):
                entry["normalizer"] = fusion.normalizer_of(name)
            entries.append(entry)
        body: dict[str, Any] = {"retrievers": entries, "rank_window_size": window}
        if isinstance(fusion, ElasticsearchRRF):
            body["rank_constant"] = fusion.rank_constant
        size = min(system.top_k or window, window)
        retriever = add_reranker({fusion.method: body}, reranker)
        request = {"retriever": retriever, "size": size}
        return Configuration(
            {FILE: write_json(request)},
            (
                "Send it to POST /INDEX/_search.",
                "Replace each retriever of a list by the query of that list; keep its _name.",
                PLACEHOLDERS,
                *((f"inference_id: the endpoint of {reranker.reranker}.",) if reranker else ()),
                "Weights of rrf need version 9.2, l2_norm 8.19 or 9.1.",
            ),
        )

    @classmethod
    def read(cls, files: Mapping[str, str]) -> dict[str, Any]:
        """A system from a search request.

        Raises:
            ConfigError: It is none.
        """
        request = read_json(files, FILE)
        with refuse_unreadable(FILE, cls.title):
            ((method, body),) = request["retriever"].items()
            blend = {}
            if method == "text_similarity_reranker":
                blend = {"blend": read_reranker(body["inference_id"], body["rank_window_size"])}
                ((method, body),) = body["retriever"].items()
            weights, scales = {}, {}
            for entry in body["retrievers"]:
                ((_, retriever),) = entry["retriever"].items()
                weights[retriever["_name"]] = entry.get("weight", 1.0)
                scales[retriever["_name"]] = entry.get("normalizer", "none")
            fusion = {"method": method, "weights": weights}
            if method == "linear":
                fusion["normalizer"] = scales
            else:
                fusion["rank_constant"] = body.get("rank_constant", 60)
            return {
                "runs": list(weights),
                "dialect": cls.name,
                "fusion": fusion,
                "depth": body.get("rank_window_size", 10),
                "top_k": request.get("size", 10),
                **blend,
            }
