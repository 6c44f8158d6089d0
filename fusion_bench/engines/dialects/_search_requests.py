"""Searches by role and a reranking step, in requests of Elasticsearch and OpenSearch."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from fusion_bench.engines.dialects._dialect import EngineDialect, Values
from fusion_bench.engines.dialects._translation import Draft
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.dialect import Translation
from fusion_bench.experiment.system import System
from fusion_bench.methods.blend.formulas import Replace
from fusion_bench.methods.fuse import SEMANTIC

#: What a user replaces in a request.
TEXT_FIELD, VECTOR_FIELD, QUERY, VECTOR = "FIELD", "VECTOR_FIELD", "QUERY", "QUERY_VECTOR"
#: Greatest num_candidates of a knn retriever of Elasticsearch.
MOST_CANDIDATES = 10_000
PLACEHOLDERS = (
    f"{TEXT_FIELD}, {VECTOR_FIELD}: the fields that are searched. {QUERY}: the query's text. "
    f'"{VECTOR}": the numbers of its vector.'
)


class SearchDialect(EngineDialect):
    """A dialect whose reranking step scores the first fused documents, and returns no others.

    Attributes:
        reranker_note: Where the reranker is set up.
        last_notes: What follows it.
    """

    reranker_note: ClassVar[str]
    last_notes: ClassVar[tuple[str, ...]]
    blends = (Replace,)
    windows: ClassVar[Mapping[str, bool]] = {"cut_to_window": True}

    @classmethod
    def finish(cls, draft: Draft, fusion: Mapping[str, Any]) -> Translation:
        """With the blend ``replace`` as such a step does it."""
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
        """With each list's search, and the reranking step.

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
            values["notes"] = (cls.reranker_note.format(blend.reranker), *cls.last_notes)
        else:
            values["notes"] = cls.last_notes
        return values

    @classmethod
    @abstractmethod
    def write_search(cls, name: str, window: int, *, is_vector: bool) -> dict[str, Any]:
        """The search of a list: by vector or by text."""

    @classmethod
    def make_system(cls, values: Values) -> dict[str, Any]:
        """With the names that the searches have, and the reranking step."""
        for each in values["sources"]:
            each["name"] = _find_name(each["search"])
        system = super().make_system({**values, "top_k": values["size"]})
        if name := values.get("reranker"):
            keys = {"method": "replace", "reranker": name, "depth": values["rerank_depth"]}
            system["blend"] = {**keys, "tail": "drop", "missing": "below"}
        return system


def _find_name(search: Mapping[str, Any]) -> str:
    """The ``_name`` somewhere in a search.

    Raises:
        KeyError: There is none.
    """
    if "_name" in search:
        return str(search["_name"])
    inner = [value for value in search.values() if isinstance(value, Mapping)]
    if not inner:
        raise KeyError("_name")
    return _find_name(inner[0])


def write_match(fields: Sequence[str], text: str) -> dict[str, Any]:
    """A query for the words of a text in one or several fields."""
    if len(fields) == 1 and not {"^", "*"} & set(fields[0]):
        return {"match": {fields[0]: {"query": text}}}
    return {"multi_match": {"query": text, "fields": list(fields)}}
