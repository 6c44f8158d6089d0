"""Personalized PageRank over a weighted graph of entities with documents.

A walker starts at a seed and, at every step, follows an edge with probability ``damping`` or
jumps back to a seed. How often it is at a node is that node's score: what is near the seeds over
many short ways scores high.

Entities: ``{"id", "name", "aliases": […], "documents": […]}``; one without ``documents`` is linked
to the documents that hold its name. Relations: ``{"source", "target", "weight"}`` between entities
or documents.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from fusion_bench.data.ordering import FloatArray
from fusion_bench.errors import DataError
from fusion_bench.io.json_objects import read_objects, refuse_repeated, require_text
from fusion_bench.models.options import GraphRules
from fusion_bench.models.retrieval import Ranking, SearchContext, SearchTexts, score_chunks
from fusion_bench.models.retrievers.lexical import tokenize_texts


class EntityLinker:
    """Matches texts with the names of entities, word by word.

    A word weighs its inverse document frequency among the names, ln(1 + E / names that hold it),
    so that "Discovery", which ends thirty names, says little and "Kerberoasting" all. An entity's
    coverage is the share of its name's weight that the text holds.

    Args:
        names: Entity → its name; columns of :meth:`seeds` follow its order.
        rules: When a name counts as named, and what a word is; ``bigrams`` finds names in Japanese
            texts.

    Raises:
        MissingExtraError: bm25s or PyStemmer is not installed.
    """

    def __init__(self, names: Mapping[str, str], rules: GraphRules | None = None) -> None:
        self.entities = tuple(names)
        self._rules = rules or GraphRules()
        words = self._list_words(list(names.values()))
        self._columns = {w: i for i, w in enumerate(sorted({w for name in words for w in name}))}
        holds = _incidence_matrix(words, self._columns)
        frequency = np.asarray(holds.sum(axis=0), dtype=np.float64).ravel()
        weights = np.log1p(len(words) / np.maximum(frequency, 1))
        self._weighted = sparse.csr_array(holds * weights)
        self._total = np.asarray(self._weighted.sum(axis=1), dtype=np.float64).ravel()

    def coverage(self, texts: Sequence[str]) -> FloatArray:
        """Share of each entity's name that each text holds, by weight; shape (Q, E), in [0, 1]."""
        words = self._list_words(texts)
        matched = (_incidence_matrix(words, self._columns) @ self._weighted.T).toarray()
        return np.asarray(matched / np.where(self._total > 0, self._total, 1.0), dtype=np.float64)

    def seeds(self, texts: Sequence[str]) -> FloatArray:
        """How strongly each text names each entity.

        Returns:
            Shape (Q, E): coverage^sharpness times the name's whole weight, 0 below the
            threshold. A row of zeros is a text that names none.
        """
        coverage = self.coverage(texts)
        strength = coverage**self._rules.sharpness * self._total
        # The tolerance keeps a name of exactly half its weight in, whatever the sum's rounding.
        return np.where(coverage >= self._rules.threshold - 1e-12, strength, 0.0)

    def _list_words(self, texts: Sequence[str]) -> list[list[str]]:
        """The different words of each text, sorted."""
        words = tokenize_texts(texts, self._rules.tokens, language=self._rules.language)
        return [sorted(set(text)) for text in words]


def _incidence_matrix(
    words: Sequence[Sequence[str]], columns: Mapping[str, int]
) -> sparse.csr_array:
    """Which known words each text holds: 0 or 1, shape (texts, words)."""
    rows = [row for row, text in enumerate(words) for word in text if word in columns]
    cells = [columns[word] for text in words for word in text if word in columns]
    shape = (len(words), len(columns))
    return sparse.csr_array((np.ones(len(rows)), (rows, cells)), shape=shape)


@dataclass(frozen=True, eq=False)
class Graph:
    """A graph as the walker sees it.

    Attributes:
        nodes: Names, shape (N,).
        transition: Shape (N, N): column j holds the chances of a step from node j; it sums to 1,
            or to 0 for a node without edges.
    """

    nodes: tuple[str, ...]
    transition: sparse.csr_array

    @classmethod
    def from_edges(cls, nodes: Sequence[str], edges: Iterable[tuple[str, str, float]]) -> Graph:
        """Build from undirected edges (one end, other end, weight); parallel ones add up.

        Raises:
            DataError: A node listed twice, an edge to an unknown node, a weight that is not a
                positive finite number.
        """
        index = {node: i for i, node in enumerate(nodes)}
        if len(index) != len(nodes):
            raise DataError(f"{len(nodes) - len(index)} of {len(nodes)} graph nodes are repeated")
        ends: list[tuple[int, int]] = []
        weights: list[float] = []
        for start, other, weight in edges:
            if start not in index or other not in index:
                raise DataError(f"edge {start!r}–{other!r}: both ends must be among the nodes")
            if not (math.isfinite(weight) and weight > 0):
                raise DataError(f"edge {start!r}–{other!r}: weight {weight} is not positive")
            ends += [(index[start], index[other]), (index[other], index[start])]
            weights += [weight, weight]
        return cls(tuple(nodes), _column_stochastic(len(nodes), ends, weights))


def personalized_pagerank(
    graph: Graph, seeds: FloatArray, *, damping: float = 0.85, tolerance: float = 1e-10
) -> FloatArray:
    """Stationary distribution of the walk, for many sets of seeds at once.

    Every step shrinks the error by ``damping``, so the tolerance fixes the number of steps
    beforehand and no query's result depends on which others are computed with it. A walker at a
    node without edges jumps back to the seeds.

    Args:
        graph: Where to walk.
        seeds: Shape (Q, N): weight of each node as a starting point, ≥ 0; scaled to sum 1.
        damping: Chance of following an edge rather than jumping back, in [0, 1).
        tolerance: Greatest sum of absolute errors of a row.

    Returns:
        Shape (Q, N): each row sums to 1, or is all 0 where there are no seeds.

    Raises:
        DataError: A seed weight is negative or not finite, or does not fit the graph; damping or
            tolerance is out of range.
    """
    _check_arguments(graph, seeds, damping, tolerance)
    total = seeds.sum(axis=1, keepdims=True)
    # Work in (N, Q): a sparse matrix multiplies columns.
    start = (seeds / np.where(total > 0, total, 1.0)).T
    # |x_t − x*|₁ ≤ damping^t · |x_0 − x*|₁, and two distributions are at most 2 apart.
    steps = math.ceil(math.log(tolerance / 2) / math.log(damping)) if damping > 0 else 0
    dangling = np.asarray(graph.transition.sum(axis=0)).ravel() == 0
    walk = start
    for _ in range(max(steps, 0)):
        lost = walk[dangling].sum(axis=0)
        walk = damping * (graph.transition @ walk + start * lost) + (1 - damping) * start
    return np.ascontiguousarray(walk.T)


def _check_arguments(graph: Graph, seeds: FloatArray, damping: float, tolerance: float) -> None:
    if seeds.ndim != 2 or seeds.shape[1] != len(graph.nodes):
        raise DataError(f"seeds of shape {seeds.shape} for {len(graph.nodes)} nodes: need (Q, N)")
    if not np.isfinite(seeds).all() or (seeds < 0).any():
        raise DataError("a seed weight is negative or not finite")
    if not 0 <= damping < 1:
        raise DataError(f"damping {damping}: allowed is 0 ≤ damping < 1")
    if not tolerance > 0:
        raise DataError(f"tolerance {tolerance}: must be greater than 0")


def _column_stochastic(
    size: int, ends: Sequence[tuple[int, int]], weights: Sequence[float]
) -> sparse.csr_array:
    """Adjacency scaled so that what leaves a node sums to 1."""
    pairs = np.array(ends, dtype=np.int64).reshape(-1, 2)
    values = np.array(weights, dtype=np.float64)
    adjacency = sparse.csr_array((values, (pairs[:, 0], pairs[:, 1])), shape=(size, size))
    out = np.asarray(adjacency.sum(axis=0), dtype=np.float64).ravel()
    scale = np.divide(1.0, out, out=np.zeros(size), where=out > 0)
    return sparse.csr_array(adjacency * scale)


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
        by_number = {str(n): name for n, name in enumerate(names)}
        self._linker = EntityLinker(by_number, self._rules)
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
    for where, item in read_objects(path):
        name = item.get("name")
        given = item.get("id", name)
        if given in (None, "") or name in (None, ""):
            raise DataError(
                f"{where}: an entity needs a 'name' (found: {', '.join(item) or 'nothing'})"
            )
        key = require_text(given, "id", where)
        refuse_repeated(key, entities, "entity", where)
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
    for where, item in read_objects(path):
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


@dataclass(frozen=True)
class GraphRetriever:
    """Documents by personalized PageRank from the entities that the query names.

    Attributes:
        entities: JSON Lines of entities.
        relations: JSON Lines of relations; None = only entities and documents are linked.
        rules: How they are linked and walked.
    """

    name: ClassVar[str] = "graph"
    roles: ClassVar[tuple[str, ...]] = ("graph",)

    entities: Path
    relations: Path | None = None
    rules: GraphRules = field(default_factory=GraphRules)

    def describe(self) -> dict[str, Any]:
        """Its settings."""
        relations = None if self.relations is None else str(self.relations)
        files = {"entities": str(self.entities), "relations": relations}
        return {"method": "graph", **files, **asdict(self.rules)}

    def search(
        self, texts: SearchTexts, depth: int, context: SearchContext
    ) -> Mapping[str, Ranking]:
        """At most ``depth`` documents for each query that names an entity."""
        context.on_progress("linking entities", 0, 1)
        entities = read_entities(self.entities, texts.documents)
        relations: list[Edge] = []
        if self.relations is not None:
            relations = read_relations(self.relations, entities, texts.documents)
        index = GraphIndex(texts.documents, entities, relations, self.rules)
        chunks = score_chunks(index, [*texts.queries.values()])
        return context.rank_queries(texts, index.ids, chunks, depth, above=0.0)
