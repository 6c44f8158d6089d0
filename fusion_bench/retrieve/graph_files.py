"""A graph of entities and documents from two JSON Lines files, searched by a walk.

Entities: ``{"id", "name", "aliases": […], "documents": […]}``; one without ``documents`` is linked
to the documents that hold its name. Relations: ``{"source", "target", "weight"}`` between entities
or documents.
"""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fusion_bench.data.ordering import FloatArray
from fusion_bench.errors import DataError
from fusion_bench.io.json_objects import read_objects, require_text
from fusion_bench.retrieve.entities import EntityLinker
from fusion_bench.retrieve.graph import Graph, personalized_pagerank
from fusion_bench.retrieve.tokens import Tokens

Edge = tuple[str, str, float]


@dataclass(frozen=True)
class Entity:
    """One entity.

    Attributes:
        names: Its name and its aliases.
        documents: Documents that it is linked to; None = those that hold one of its names.
    """

    names: tuple[str, ...]
    documents: tuple[str, ...] | None


@dataclass(frozen=True)
class GraphRules:
    """How a graph is linked and walked.

    Attributes:
        tokens: What a word of a name is.
        language: Of the stemmer.
        threshold: Share of a name's weight that a text must hold, in (0, 1].
        sharpness: The higher, the less half a name counts.
        damping: Chance of following an edge rather than jumping back, in [0, 1).
        mention_weight: Weight of an edge between an entity and a document.
    """

    tokens: Tokens = "stem"
    language: str = "english"
    threshold: float = 0.5
    sharpness: float = 2.0
    damping: float = 0.85
    mention_weight: float = 1.0


class GraphIndex:
    """Documents by their nearness to the entities that a query names.

    Args:
        documents: Document id → text; columns of :meth:`scores` follow its order.
        entities: Entity id → entity.
        relations: Ids of two entities or documents, and a weight.
        rules: How they are linked and walked.

    Raises:
        DataError: A document or an end of a relation is unknown.
    """

    def __init__(
        self,
        documents: Mapping[str, str],
        entities: Mapping[str, Entity],
        relations: Sequence[Edge],
        rules: GraphRules | None = None,
    ) -> None:
        self.ids = tuple(documents)
        self._rules = rules or GraphRules()
        names = [name for known in entities.values() for name in known.names]
        self._linker = EntityLinker(
            {str(n): name for n, name in enumerate(names)},
            threshold=self._rules.threshold,
            sharpness=self._rules.sharpness,
            language=self._rules.language,
            tokens=self._rules.tokens,
        )
        counts = [len(known.names) for known in entities.values()]
        # Names of one entity stand side by side; each has one at least.
        self._first_names = np.cumsum([0, *counts[:-1]])
        self._entities = len(entities)
        # Entities first: an entity and a document may have one id.
        nodes = [*(f"entity {e}" for e in entities), *(f"document {d}" for d in documents)]
        mentions = self._link_documents(documents, entities)
        ends = {d: f"document {d}" for d in documents} | {e: f"entity {e}" for e in entities}
        edges = [(ends[start], ends[end], weight) for start, end, weight in relations]
        weight = self._rules.mention_weight
        edges += [(f"entity {e}", f"document {d}", weight) for e, d in mentions]
        self._graph = Graph.from_edges(nodes, edges)

    def scores(self, queries: Sequence[str]) -> FloatArray:
        """Lift of each document: how many times likelier the walker is there than by chance.

        Returns:
            Shape (Q, D): 0 in the whole row of a query that names nothing.
        """
        seeds = np.zeros((len(queries), len(self._graph.nodes)))
        seeds[:, : self._entities] = self._seed_entities(queries)
        walked = personalized_pagerank(self._graph, seeds, damping=self._rules.damping)
        lift = walked[:, self._entities :] * len(self._graph.nodes)
        return np.asarray(lift, dtype=np.float64)

    def _seed_entities(self, texts: Sequence[str]) -> FloatArray:
        """How strongly each text names each entity, by its best name; shape (Q, E)."""
        by_name = self._linker.seeds(texts)
        return np.maximum.reduceat(by_name, self._first_names, axis=1)

    def _link_documents(
        self, documents: Mapping[str, str], entities: Mapping[str, Entity]
    ) -> list[tuple[str, str]]:
        """Pairs of an entity and a document."""
        pairs = [(e, d) for e, known in entities.items() for d in known.documents or ()]
        unlinked = [e for e, known in entities.items() if known.documents is None]
        if unlinked:
            named = self._seed_entities([*documents.values()]) > 0
            column = {entity: i for i, entity in enumerate(entities)}
            for entity in unlinked:
                rows = np.flatnonzero(named[:, column[entity]])
                pairs += [(entity, self.ids[row]) for row in rows]
        return pairs


def read_entities(path: Path, documents: Mapping[str, str]) -> dict[str, Entity]:
    """Read entities from JSON Lines.

    Args:
        path: The file.
        documents: The known documents, by id.

    Raises:
        DataError: An entity without an id or a name, one that stands twice, or an unknown document.
    """
    entities: dict[str, Entity] = {}
    for number, item in read_objects(path):
        where = f"{path}:{number}"
        name = item.get("name")
        given = item.get("id", name)
        if given in (None, "") or name in (None, ""):
            raise DataError(
                f"{where}: an entity needs a 'name' (found: {', '.join(item) or 'nothing'})"
            )
        key = require_text(given, "id", where)
        if key in entities:
            raise DataError(f"{where}: entity {key!r} stands twice: keep one")
        names = (require_text(name, "name", where), *_read_texts(item, "aliases", where))
        linked = None
        if item.get("documents") is not None:
            linked = _read_texts(item, "documents", where)
            for document in linked:
                _require_known(document, documents, "document", where)
        entities[key] = Entity(names, linked)
    if not entities:
        raise DataError(f"{path}: the file is empty: at least one entity is needed")
    return entities


def read_relations(
    path: Path, entities: Mapping[str, Entity], documents: Mapping[str, str]
) -> list[Edge]:
    """Read relations from JSON Lines; without a ``weight`` it is 1.

    Raises:
        DataError: An end is unknown, or a weight is no positive finite number.
    """
    edges: list[Edge] = []
    known = {*documents, *entities}
    for number, item in read_objects(path):
        where = f"{path}:{number}"
        ends = []
        for side in ("source", "target"):
            if item.get(side) in (None, ""):
                raise DataError(
                    f"{where}: a relation needs a 'source' and a 'target' "
                    f"(found: {', '.join(item) or 'nothing'})"
                )
            end = require_text(item[side], side, where)
            _require_known(end, known, "entity or document", where)
            ends.append(end)
        weight = item.get("weight", 1.0)
        is_number = isinstance(weight, int | float) and not isinstance(weight, bool)
        if not (is_number and math.isfinite(weight) and weight > 0):
            raise DataError(f"{where}: weight must be a positive number, given {weight!r}")
        edges.append((ends[0], ends[1], float(weight)))
    return edges


def _read_texts(item: Mapping[str, Any], key: str, where: str) -> tuple[str, ...]:
    """The texts of a list; none where the key lacks."""
    given = item.get(key)
    if given is None:
        return ()
    if not isinstance(given, list):
        raise DataError(f"{where}: {key} must be a list of texts, given {given!r:.60}")
    return tuple(require_text(text, key, where) for text in given)


def _require_known(name: str, known: Container[str], kind: str, where: str) -> None:
    if name not in known:
        raise DataError(f"{where}: no {kind} {name!r} is known: check the id")
