"""Elasticsearch: the ``rrf`` and the ``linear`` retriever."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, get_args

import numpy as np
from pydantic import Field

from fusion_bench.config.models import Weight
from fusion_bench.config.parameters import Parameter, choice
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray
from fusion_bench.engines.dialects._dialect import (
    Each,
    EngineDialect,
    Form,
    Maybe,
    Slot,
    Values,
)
from fusion_bench.engines.dialects._sums import CanonicalRRF, ScaledScoreSum
from fusion_bench.engines.dialects._translation import Draft, name_weights
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.dialect import Configuration, Translation, dialects
from fusion_bench.experiment.system import System
from fusion_bench.methods.blend.formulas import Replace
from fusion_bench.methods.fuse import KEYWORD, SEMANTIC, Fusion, WeightedFusion
from fusion_bench.methods.fuse.weighted_score import WeightedScore
from fusion_bench.methods.normalize import Normalizer, ScoreLists
from fusion_bench.methods.normalize.linear import RawScores

#: What a user replaces in a request.
TEXT_FIELD, VECTOR_FIELD, QUERY, VECTOR = "FIELD", "VECTOR_FIELD", "QUERY", "QUERY_VECTOR"
#: Greatest num_candidates of a knn retriever of Elasticsearch.
MOST_CANDIDATES = 10_000
PLACEHOLDERS = {
    TEXT_FIELD: f"{TEXT_FIELD}: the text field that is searched.",
    VECTOR_FIELD: f"{VECTOR_FIELD}: the vector field.",
    QUERY: f"{QUERY}: the query's text.",
    VECTOR: f'"{VECTOR}": the numbers of its vector.',
}


class SearchDialect(EngineDialect):
    """A dialect whose reranking step scores the first fused documents, and returns no others.

    Attributes:
        reranker_note: Where the reranker is set up.
        last_notes: What follows it, by the word of the request that it is about.
    """

    reranker_note: ClassVar[str]
    last_notes: ClassVar[Mapping[str, str]]
    searches_by_role = True
    blends = (Replace,)
    windows: ClassVar[Mapping[str, bool]] = {"cut_to_window": True}

    @classmethod
    def finish(cls, draft: Draft, fusion: Mapping[str, Any]) -> Translation:
        """Finish the translation, with the blend ``replace`` as a reranking step."""
        windows, blend = draft.choose_windows(**cls.windows), draft.blend
        if not isinstance(blend, Replace):
            return draft.finish(fusion, **windows)
        depth = min(blend.depth, windows["depth"])
        if depth < blend.depth:
            draft.lose(f"blend.depth: {depth} instead of {blend.depth}, as the window of the lists")
        wanted = draft.system.top_k
        if blend.tail == "keep" and (wanted is None or wanted > depth):
            draft.lose(
                f"blend.tail: what the reranker does not read, beyond {depth}, is not returned"
            )
        if blend.min_score is not None:
            draft.lose(f"blend.min_score: {blend.min_score:g} is not written")
        if not blend.always_rerank:
            draft.lose("blend.always_rerank: every query is reranked")
        if not draft.is_of_dialect:
            draft.lose(
                f"blend: scores are those of {cls.title}'s reranker; set up {blend.reranker!r} "
                "there",
                "rank-equivalent",
            )
        fixed = {"depth": depth, "tail": "drop", "min_score": None, "always_rerank": True}
        draft.blend = blend.model_copy(update=fixed)
        return draft.finish(fusion, **{**windows, "top_k": min(windows["top_k"], depth)})

    @classmethod
    def list_values(cls, system: System, roles: Mapping[str, frozenset[str]]) -> Values:
        """Values of a system, with each list's search and the reranking step.

        Raises:
            ConfigError: The blend is none that the engine can do.
        """
        blend = system.blend
        if isinstance(blend, Replace) and (
            blend.tail != "drop" or blend.min_score is not None or not blend.always_rerank
        ):
            raise ConfigError(
                f"system {system.name!r}: blend cannot be written for {cls.title} as it is: "
                "translate it first"
            )
        values = super().list_values(system, roles)
        values["size"] = min(system.top_k or values["window"], values["window"])
        for each in values["sources"]:
            is_vector = SEMANTIC in roles.get(each["name"], frozenset())
            each["search"] = cls.write_search(each["name"], values["window"], is_vector=is_vector)
        if isinstance(blend, Replace):
            values |= {"reranker": blend.reranker, "rerank_depth": blend.depth}
            note = cls.reranker_note.format(blend.reranker)
            values["notes"] = (*values.get("notes", ()), note)
        return values

    @classmethod
    def write_by_role(cls, system: System, roles: Mapping[str, frozenset[str]]) -> Configuration:
        """Write the files, with notes on the placeholders that stand in them."""
        configuration = super().write_by_role(system, roles)
        text = "".join(configuration.files.values())
        others = [
            f"{name} is of role {', '.join(sorted(roles[name]))}: put its own query in place of "
            "'match'"
            for name in system.runs
            if roles.get(name) and not roles[name] & {KEYWORD, SEMANTIC}
        ]
        placeholders, last = (
            [note for word, note in notes.items() if f'"{word}"' in text]
            for notes in (PLACEHOLDERS, cls.last_notes)
        )
        notes = (*configuration.notes, *others, " ".join(placeholders), *last)
        return Configuration(configuration.files, notes)

    @classmethod
    @abstractmethod
    def write_search(cls, name: str, window: int, *, is_vector: bool) -> dict[str, Any]:
        """The search of a list: by vector or by text."""


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


class ElasticsearchRRF(CanonicalRRF):
    """``rrf``: Σ_s w_s / (rank_constant + rank), ranks from 1.

    Attributes:
        rank_constant: Flattens the difference between neighboring ranks.
        weights: By source name or role; since 9.2.
    """

    formula = "Σ w/(rank_constant + rank)"
    source = "Elasticsearch reference, RRF retriever"
    ties = "first_seen"  # by the score in the first list in which two documents differ

    constant_field = "rank_constant"

    method: str = "rrf"
    rank_constant: Annotated[int, Field(ge=1, le=1000)] = 60
    weights: dict[str, Weight] = Field(default_factory=dict)


class ElasticsearchLinear(ScaledScoreSum, WeightedFusion):
    """``linear``: Σ_s w_s·normalized score; a list without the document adds 0.

    Attributes:
        normalizer: Of all lists, or by source name.
    """

    formula = "Σ w·normalized score"
    source = "Elasticsearch reference, linear retriever"

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

    def equivalent(self, weights: dict[str, float], /) -> Fusion | None:
        """Our weighted mean with 0 for missing scores, where one normalizer serves all lists."""
        names = {self.normalizer_of(name) for name in weights}
        ours = {normalizer: name for name, normalizer in NORMALIZERS.items()}
        if names not in ({"none"}, {"minmax"}):
            return None
        normalize = ours[names.pop()]
        return WeightedScore.model_validate(
            {"normalize": normalize, "missing": "zero", "weights": weights}
        )

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:
        """The normalizer, where it is one for all, and the weights."""
        if isinstance(self.normalizer, dict):
            return super().space(sources)
        return (choice("normalizer", *get_args(NormalizerName)), *super().space(sources))


SEARCHES = Each(
    {
        "retriever": Slot("search"),
        "weight": Slot("weight"),
        "normalizer": Maybe("normalizer_name"),
    }
)
BODY = {
    "retrievers": SEARCHES,
    "rank_window_size": Slot("window"),
    "rank_constant": Maybe("rank_constant"),
    "min_score": Maybe("min_score"),
}
RETRIEVER = {Slot("method"): BODY}
RERANKER = {
    "retriever": RETRIEVER,
    "field": TEXT_FIELD,
    "inference_id": Slot("reranker"),
    "inference_text": QUERY,
    "rank_window_size": Slot("rerank_depth"),
}
#: The best chunk of each document, with more of them where more are kept.
COLLAPSE = Maybe(
    "parent",
    {
        "field": Slot("parent"),
        "inner_hits": Maybe("more_chunks", {"name": "chunks", "size": Slot("more_chunks")}),
    },
)


def _write_search(retriever: Mapping[Any, Any]) -> dict[str, Any]:
    return {FILE: {"retriever": retriever, "collapse": COLLAPSE, "size": Slot("size")}}


@dialects.register
class Elasticsearch(SearchDialect):
    """Elasticsearch 9.2."""

    name = "elasticsearch"
    title = "Elasticsearch"
    version = "9.2"
    checked = "2026-11-23"
    source = "https://www.elastic.co/docs/reference/elasticsearch/rest-apis/retrievers"
    methods = (ElasticsearchRRF, ElasticsearchLinear)
    defaults: ClassVar[Mapping[str, Any]] = {"depth": 10, "top_k": 10}  # rank_window_size, size
    ignores = (
        "A bonus for top ranks cannot be said.",
        "A depth of its own for each list cannot be said: rank_window_size is one for all.",
        "text_similarity_reranker replaces the fused score: of the blends, replace alone can be "
        "said.",
    )

    forms = (
        Form(_write_search({"text_similarity_reranker": RERANKER}), {"is_reranked": True}),
        Form(_write_search(RETRIEVER)),
    )
    notes = (
        "Send it to POST /INDEX/_search.",
        "Replace each retriever of a list by the query of that list; keep its _name.",
    )
    reranker_note = "inference_id: the endpoint of {}."
    last_notes: ClassVar[Mapping[str, str]] = {
        "rrf": "Weights of rrf need version 9.2.",
        "l2_norm": "l2_norm needs version 8.19 or 9.1.",
    }
    minimum_score = "min_score of the retriever (version 9.1)"
    lists = (2, 1000)
    lists_rule = "a retriever fuses two or more lists"
    score_methods = dict.fromkeys(NORMALIZERS, "linear")
    most_chunks = 100  # index.max_inner_result_window
    collapse_places = ("reranked",)

    @classmethod
    def convert_scores(cls, draft: Draft, scale: Normalizer) -> Mapping[str, Any]:
        """``linear``, whose normalizers may differ by list."""
        scales = {name: draft.normalizer_of(scale, name) for name in draft.sources}
        for each in scales.values():
            if each.method not in NORMALIZERS:
                draft.refuse_normalizer(each.method)
        for name, constant in sorted({(each.method, each.constant) for each in scales.values()}):
            if name == "min_max" and constant != 1:
                draft.lose(f"normalize: a list of equal scores counts 1, not {constant:g}")
            elif name == "min_max":
                draft.note("normalize: scores less than 0.000001 apart count as equal")
            elif name == "l2" and constant != 0:
                draft.lose("normalize: in a list of zeros every document counts 0")
        names = {name: NORMALIZERS[each.method] for name, each in scales.items()}
        is_common = len(set(names.values())) == 1
        return {
            "method": "linear",
            "normalizer": next(iter(names.values())) if is_common else names,
            "weights": name_weights(draft.weights),
        }

    @classmethod
    def list_values(cls, system: System, roles: Mapping[str, frozenset[str]]) -> Values:
        """Values of a system, with the normalizer of each list."""
        values, fusion = super().list_values(system, roles), system.fusion
        for each in values["sources"]:
            if isinstance(fusion, ElasticsearchLinear):
                each["normalizer_name"] = fusion.normalizer_of(each["name"])
        return {**values, "is_reranked": "reranker" in values}

    @classmethod
    def write_search(cls, name: str, window: int, *, is_vector: bool) -> dict[str, Any]:
        """The retriever of a list."""
        if not is_vector:
            query = {"match": {TEXT_FIELD: {"query": QUERY}}}
            return {"standard": {"_name": name, "query": query}}
        candidates = min(max(2 * window, 100), MOST_CANDIDATES)
        knn: dict[str, Any] = {"_name": name, "field": VECTOR_FIELD, "query_vector": VECTOR}
        return {"knn": {**knn, "k": window, "num_candidates": candidates}}
