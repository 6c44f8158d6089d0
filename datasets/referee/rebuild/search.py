"""The six sources: question and HyDE vectors, BM25, META, synergy, and a walk over the graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from entity_walk import EntityLinker, Graph, personalized_pagerank
from texts import Chunk, Game, Question

from fusion_bench.data.ordering import FloatArray
from fusion_bench.models.encoders.local import DenseIndex, Encoder
from fusion_bench.models.retrieval import Ranking, rank_documents
from fusion_bench.models.retrievers.lexical import BM25Index

#: Documents a query in each run.
DEPTH = 50
DECIMALS = 4
#: Weight of an edge between two entities; one between a chunk and its entity weighs 1.
RELATION_WEIGHT = 0.5
#: Chance to walk on rather than to go back to what the question names.
DAMPING = 0.7
THRESHOLD, SHARPNESS = 0.5, 2.0
#: Snowball stemmer and stopwords. Bigrams of Japanese are no words of English: they pass unchanged.
STEMMERS = {"en": "english", "fr": "french", "ja": "english"}

#: Runs by name, each by query id.
Runs = dict[str, dict[str, Ranking]]


@dataclass(frozen=True)
class Collection:
    """All chunks and questions, in the order of the games."""

    games: list[Game]

    @property
    def chunks(self) -> list[Chunk]:
        """Every document."""
        return [chunk for game in self.games for chunk in game.chunks]

    @property
    def questions(self) -> list[Question]:
        """Every query."""
        return [question for game in self.games for question in game.questions]

    @property
    def languages(self) -> list[str]:
        """The languages that occur."""
        return sorted({game.language for game in self.games})


def search(collection: Collection, encoder: Encoder) -> Runs:
    """All runs. Those of META and synergy hold every query; ``when`` switches them on."""
    questions = collection.questions
    asked = encoder.encode([question.text for question in questions])
    imagined = encoder.encode([question.hyde for question in questions])

    def dense(keep: Callable[[Chunk], bool], vectors: np.ndarray) -> dict[str, Ranking]:
        documents = {chunk.id: chunk.indexed for chunk in collection.chunks if keep(chunk)}
        index = DenseIndex(documents, encoder)
        return cut(questions, index.ids, index.cosines(vectors))

    return {
        "question": dense(lambda _: True, asked),
        "hyde": dense(lambda _: True, imagined),
        "bm25": by_language(collection, search_words),
        "meta": dense(lambda chunk: chunk.kind == "meta", asked),
        "synergy": dense(lambda chunk: chunk.kind == "synergy", asked),
        "graph": by_language(collection, walk_graph),
    }


def by_language(
    collection: Collection, method: Callable[[Collection, str], dict[str, Ranking]]
) -> dict[str, Ranking]:
    """One run from the parts of each language: words of one say nothing about another."""
    made: dict[str, Ranking] = {}
    for language in collection.languages:
        games = [game for game in collection.games if game.language == language]
        made.update(method(Collection(games), language))
    return {question.id: made[question.id] for question in collection.questions}


def search_words(collection: Collection, language: str) -> dict[str, Ranking]:
    """BM25 over stemmed words; over character bigrams in Japanese."""
    documents = {chunk.id: words(chunk.indexed, language) for chunk in collection.chunks}
    index = BM25Index(documents, language=STEMMERS[language])
    texts = [words(question.text, language) for question in collection.questions]
    return cut(collection.questions, index.ids, index.scores(texts), above=0.0)


def walk_graph(collection: Collection, language: str) -> dict[str, Ranking]:
    """Personalized PageRank from the entities that a question names."""
    nodes = [chunk.id for chunk in collection.chunks]
    names: dict[str, str] = {}
    edges: list[tuple[str, str, float]] = []
    for game in collection.games:
        nodes += [f"{game.id}:{entity}" for entity in game.entities]
        for entity, aliases in game.entities.items():
            for number, name in enumerate((entity, *aliases)):
                names[f"{game.id}:{entity}#{number}"] = words(name, language)
        edges += [
            (f"{game.id}:{a}", f"{game.id}:{b}", RELATION_WEIGHT)
            for a, _, b in game.relations
            if a != b
        ]
        edges += [
            (chunk.id, f"{game.id}:{entity}", 1.0)
            for chunk in game.chunks
            for entity in chunk.entities
        ]
    graph = Graph.from_edges(nodes, edges)
    linker = EntityLinker(
        names, threshold=THRESHOLD, sharpness=SHARPNESS, language=STEMMERS[language]
    )
    place = {node: i for i, node in enumerate(nodes)}
    questions = collection.questions
    named = linker.seeds([words(question.text, language) for question in questions])
    seeds = np.zeros((len(questions), len(nodes)))
    columns = np.array([place[name.rpartition("#")[0]] for name in linker.entities])
    for column in np.unique(columns):  # an entity weighs what its best name does
        seeds[:, column] = named[:, columns == column].max(axis=1)
    walked = personalized_pagerank(graph, seeds, damping=DAMPING)
    documents = [chunk.id for chunk in collection.chunks]
    lift = walked[:, [place[name] for name in documents]] * len(nodes)
    return cut(questions, documents, np.asarray(lift), above=0.0)


def words(text: str, language: str) -> str:
    """The text; in Japanese its character bigrams, between blanks."""
    if language != "ja":
        return text
    letters = "".join(letter for letter in text if letter.isalnum())
    return " ".join(letters[i : i + 2] for i in range(len(letters) - 1)) or letters


def cut(
    questions: Sequence[Question],
    ids: Sequence[str],
    table: FloatArray,
    above: float | None = None,
) -> dict[str, Ranking]:
    """The lists of one run, by query."""
    return {
        question.id: rank_documents(ids, row, depth=DEPTH, decimals=DECIMALS, above=above)
        for question, row in zip(questions, table, strict=True)
    }
