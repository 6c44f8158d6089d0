"""Searches by role and a reranking step, in requests of Elasticsearch and OpenSearch."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from fusion_bench.engines.dialects._dialect import EngineDialect, Values
from fusion_bench.engines.dialects._translation import Draft
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.dialect import Configuration, Translation
from fusion_bench.experiment.system import System
from fusion_bench.methods.blend.formulas import Replace
from fusion_bench.methods.fuse import KEYWORD, SEMANTIC

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
