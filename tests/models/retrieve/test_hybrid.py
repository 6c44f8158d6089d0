"""semche's retriever (0.4.0), line by line, over a real embedded Chroma whose vectors are known."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from fusion_bench.errors import FusionBenchError
from fusion_bench.models.retrievers.hybrid import (
    ChromaDBError,
    ChromaDBManager,
    HybridRetriever,
    HybridRetrieverError,
    Space,
    StoredDocument,
)
from fusion_bench.models.retrievers.lexical import OkapiIndex
from tests.models.retrieve.server import word_vector

TEXTS = {
    "c1": "the storm moves every ship one sea away",
    "c2": "a ship in harbor draws two cards",
    "c3": "the lighthouse keeper ignores the storm",
    "c4": "cards are drawn at dusk",
    "c5": "the game ends when the last lantern is lit",
    "c6": "storm storm storm",
}
#: ``c4`` and ``c5`` have no ``filepath``; ``c5`` has no metadata at all.
METADATA: Mapping[str, Mapping[str, Any]] = {
    "c1": {"filepath": "/rules/storm.md", "kind": "rule"},
    "c2": {"filepath": "/rules/harbor.md", "kind": "rule"},
    "c3": {"filepath": "/faq/keeper.md", "kind": "faq"},
    "c4": {"kind": "faq"},
    "c5": {},
    "c6": {"filepath": "/faq/storm.md", "kind": "faq"},
}


class WordVectors:
    """An embedding function: texts with common words are near."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [word_vector(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return word_vector(text)


@contextmanager
def filled_manager(**options: Any) -> Iterator[ChromaDBManager]:  # noqa: ANN401 - the manager's own
    with closing(ChromaDBManager(WordVectors(), **options)) as manager:
        manager.add([*TEXTS], [*TEXTS.values()], metadatas=[*METADATA.values()])
        yield manager


def test_collections_are_apart_and_their_documents_come_back() -> None:
    with filled_manager() as manager:
        items = manager.get_all_documents()
        bare = manager.get_all_documents({"kind": "faq"}, include_documents=False)
    assert items == [
        {"id": name, "document": text, "metadata": METADATA[name]} for name, text in TEXTS.items()
    ]
    assert {item["id"]: item["document"] for item in bare} == dict.fromkeys(("c3", "c4", "c6"))
    with filled_manager(), closing(ChromaDBManager(WordVectors())) as other:
        assert other.get_all_documents() == []
    with filled_manager() as manager:
        manager.add(["c1"], ["calm"], embeddings=[[1.0] * 16])
        texts = {item["id"]: item["document"] for item in manager.get_all_documents()}
    assert texts == TEXTS | {"c1": "calm"}


@pytest.mark.parametrize("space", ["cosine", "l2", "ip"])
def test_relevance_is_computed_from_the_distance(space: Space) -> None:
    query = np.array(word_vector("storm cards"))
    rows = {name: np.array(word_vector(text)) for name, text in TEXTS.items()}
    expected = {}
    for name, row in rows.items():
        dot = float(query @ row)
        if space == "cosine":
            expected[name] = dot / float(np.linalg.norm(query) * np.linalg.norm(row))
        elif space == "l2":
            expected[name] = 1 - float(((query - row) ** 2).sum()) / math.sqrt(2)
        else:
            expected[name] = dot if dot < 1 else dot - 1  # 1 − d for d = 1 − dot above 0, else −d
    with filled_manager(space=space) as manager:
        store = manager.vectorstore
        assert store is not None
        found = store.similarity_search_with_relevance_scores("storm cards", k=6)
    assert {document.id: score for document, score in found} == pytest.approx(expected, abs=1e-3)
    if space != "ip":  # there the formula turns around where the distance passes 0
        near = sorted(rows, key=lambda name: -expected[name])
        assert [document.id for document, _ in found][:2] == near[:2]
    assert all(document.page_content == TEXTS[document.id] for document, _ in found)


def test_a_folder_keeps_the_collection(tmp_path: Path) -> None:
    with filled_manager(persist_directory=tmp_path):
        pass
    with closing(ChromaDBManager(WordVectors(), persist_directory=tmp_path)) as manager:
        assert [item["id"] for item in manager.get_all_documents()] == [*TEXTS]


def test_what_chroma_refuses_or_lacks() -> None:
    with filled_manager() as manager:
        with pytest.raises(ChromaDBError, match="read the documents: "):
            manager.get_all_documents({"$never": 1})
        with pytest.raises(ChromaDBError, match="add documents: "):
            manager.add(["x"], ["text"], embeddings=[[1.0, 2.0]])
        store = manager.vectorstore
        assert store is not None
        with pytest.raises(ChromaDBError, match="not search: "):
            store.similarity_search_with_relevance_scores("storm", filter={"$never": 1})
    with closing(ChromaDBManager()) as manager:
        assert manager.vectorstore is None
        with pytest.raises(ChromaDBError, match="no vectors"):
            manager.add(["x"], ["text"])
        manager.add(["x"], ["text"], embeddings=[[1.0, 2.0]])
        assert [item["id"] for item in manager.get_all_documents()] == ["x"]


IDS = {name: METADATA[name].get("filepath", name) for name in TEXTS}
QUERY = "the storm and cards"


@pytest.fixture(scope="module")
def manager() -> Iterator[ChromaDBManager]:
    with filled_manager() as opened:
        yield opened


def dense_order(query: str, names: list[str]) -> list[str]:
    asked = np.array(word_vector(query))

    def cosine(name: str) -> float:
        row = np.array(word_vector(TEXTS[name]))
        return float(asked @ row / np.linalg.norm(asked) / np.linalg.norm(row))

    return sorted(names, key=cosine, reverse=True)


def sparse_order(query: str, names: list[str], *, padding: bool) -> list[str]:
    scores = OkapiIndex({name: TEXTS[name] for name in names}).scores([query])[0]
    rows = [(-score, -n, name) for n, (name, score) in enumerate(zip(names, scores, strict=True))]
    return [name for score, _, name in sorted(rows) if padding or score < 0]


def oracle(
    query: str,
    names: list[str],
    top_k: int = 5,
    weights: tuple[float, float] = (0.5, 0.5),
    constant: int = 60,
    *,
    padding: bool = True,
) -> list[tuple[str, float]]:
    """The formula of the design: Σ weight / (c + rank) over lists of twice ``top_k``."""
    lists = dense_order(query, names), sparse_order(query, names, padding=padding)
    scores = {
        IDS[name]: sum(
            weight / (constant + order[: 2 * top_k].index(name) + 1)
            for weight, order in zip(weights, lists, strict=True)
            if name in order[: 2 * top_k]
        )
        for name in {name for order in lists for name in order[: 2 * top_k]}
    }
    return sorted(scores.items(), key=lambda item: -item[1])[:top_k]


@pytest.mark.parametrize("query", [QUERY, "lantern", "unheard of", "ship"])
@pytest.mark.parametrize("top_k", [1, 2, 5, 20])
@pytest.mark.parametrize("padding", [True, False])
def test_search_follows_the_formula(
    manager: ChromaDBManager, query: str, top_k: int, padding: bool
) -> None:
    retriever = HybridRetriever(manager, zero_padding=padding)
    results = retriever.search(query, top_k)
    expected = oracle(query, [*TEXTS], top_k, padding=padding)
    assert [item["score"] for item in results] == pytest.approx([s for _, s in expected], rel=1e-12)
    tied = {score for _, score in expected if [s for _, s in expected].count(score) > 1}
    clear = [(name, score) for name, score in expected if score not in tied]
    assert {name for name, _ in clear[:-1]} <= {item["id"] for item in results}


def test_defaults_and_shape_are_those_of_the_design(manager: ChromaDBManager) -> None:
    results = HybridRetriever(manager).search(QUERY)
    assert len(results) == 5
    assert results[0]["score"] <= 0.5 / 61 + 0.5 / 61
    assert results == HybridRetriever(manager, 0.5, 0.5).search(QUERY, 5, None, 60)
    results = HybridRetriever(manager).search(QUERY, top_k=20)
    by_id = {item["id"]: item for item in results}
    # The path where there is one, else Chroma's id.
    assert by_id.keys() == set(IDS.values())
    for name, text in TEXTS.items():
        item = by_id[IDS[name]]
        assert item.keys() == {"id", "document", "metadata", "score"}
        assert (item["document"], item["metadata"]) == (text, METADATA[name])
        assert type(item["score"]) is float
    assert results == sorted(results, key=lambda item: -item["score"])


@pytest.mark.parametrize("where", [{"kind": "faq"}, {"filepath": "/rules/storm.md"}, {"kind": "x"}])
def test_where_filters_both_searches(manager: ChromaDBManager, where: dict[str, str]) -> None:
    ((key, value),) = where.items()
    names = [name for name in TEXTS if METADATA[name].get(key) == value]
    results = HybridRetriever(manager).search(QUERY, top_k=20, where=where)
    assert {item["id"] for item in results} == {IDS[name] for name in names}
    if names:  # BM25 knows only what the filter lets through
        expected = dict(oracle(QUERY, names, 20))
        assert {item["id"]: item["score"] for item in results} == pytest.approx(expected)


def test_weights_and_constant(manager: ChromaDBManager) -> None:
    dense = HybridRetriever(manager, 1.0, 0.0).search(QUERY, 6)
    assert [item["id"] for item in dense] == [IDS[n] for n in dense_order(QUERY, [*TEXTS])]
    sparse = HybridRetriever(manager, 0.0, 1.0).search(QUERY, 2, rrf_constant=0)
    first, second = sparse_order(QUERY, [*TEXTS], padding=True)[:2]
    expected = [(IDS[first], 1.0), (IDS[second], 0.5)]
    assert [(item["id"], item["score"]) for item in sparse] == expected


def test_many_queries_share_one_index(manager: ChromaDBManager) -> None:
    retriever, done = HybridRetriever(manager), list[int]()
    queries = [QUERY, "lantern", "unheard"]
    together = retriever.search_all(queries, 3, on_progress=done.append)
    assert together == [retriever.search(query, 3) for query in queries]
    assert done == [1, 2, 3]


def test_changes_paths_and_missing_words_of_a_collection() -> None:
    with filled_manager() as own:
        retriever = HybridRetriever(own)
        assert retriever.search("tide", 1)[0]["document"] != "tide"
        own.add(["c7"], ["tide"])
        assert retriever.search("tide", 1)[0]["id"] == "c7"
    with filled_manager() as own:
        own.add(["c7"], ["storm"], metadatas=[{"filepath": "/rules/storm.md"}])
        results = HybridRetriever(own, 1.0, 0.0).search("storm", 20)
    assert [item["id"] for item in results].count("/rules/storm.md") == 1
    assert results[0]["document"] in {"storm", "storm storm storm"}
    with closing(ChromaDBManager(WordVectors())) as own:
        assert HybridRetriever(own).search("storm") == []
        own.add(["a"], [""], embeddings=[[1.0] * 16])
        assert [item["id"] for item in HybridRetriever(own).search("storm")] == ["a"]


def test_stores_that_are_not_initialized_or_have_no_ids() -> None:
    for manager in (ChromaDBManager(), None):
        with pytest.raises(HybridRetrieverError, match="not initialized"):
            HybridRetriever(cast("Any", manager))
    found = HybridRetriever(cast("Any", WithoutIds("two ships", "one storm"))).search("storm")
    assert {item["id"]: item["document"] for item in found} == {"a": "one storm", "b": "two ships"}
    with pytest.raises(HybridRetrieverError, match="'filepath'"):
        HybridRetriever(cast("Any", WithoutIds("another"))).search("storm")


class WithoutIds:
    """A vector store whose documents have no id, which LangChain allows."""

    def __init__(self, *texts: str) -> None:
        self.texts = texts

    @property
    def vectorstore(self) -> WithoutIds:
        return self

    def similarity_search_with_relevance_scores(self, *_: Any, **__: Any) -> list[Any]:  # noqa: ANN401
        return [(StoredDocument(text, {}), 1.0) for text in self.texts]

    def get_all_documents(self, **_: Any) -> list[dict[str, Any]]:  # noqa: ANN401
        texts = {"a": "one storm", "b": "two ships"}
        return [{"id": name, "document": text, "metadata": {}} for name, text in texts.items()]


@pytest.mark.parametrize(
    "weights",
    [(-0.1, 0.5), (0.5, float("nan")), (float("inf"), 0.5), ("0.5", 0.5), (True, 0.5), (0.5, None)],
)
def test_weights_that_are_not_allowed(manager: ChromaDBManager, weights: tuple[Any, Any]) -> None:
    with pytest.raises(HybridRetrieverError, match=r"_weight .*a finite number"):
        HybridRetriever(manager, *weights)


@pytest.mark.parametrize(
    "options", [{"top_k": 0}, {"top_k": 2.5}, {"rrf_constant": -1}, {"top_k": True}]
)
def test_numbers_that_are_not_allowed(manager: ChromaDBManager, options: dict[str, Any]) -> None:
    with pytest.raises(HybridRetrieverError, match="a whole number"):
        HybridRetriever(manager).search("storm", **options)


def test_errors_of_chroma_pass_and_others_are_the_retrievers_own(manager: ChromaDBManager) -> None:
    with pytest.raises(ChromaDBError, match="Chroma could not"):
        HybridRetriever(manager).search("storm", where={"$never": 1})

    class Broken(WordVectors):
        def embed_query(self, text: str) -> list[float]:
            raise RuntimeError(f"no model for {text}")

    with closing(ChromaDBManager(Broken())) as own:
        own.add(["a"], ["storm"])
        with pytest.raises(HybridRetrieverError, match="no model for") as caught:
            HybridRetriever(own).search("storm")
    assert isinstance(caught.value.__cause__, RuntimeError)
    assert isinstance(caught.value, FusionBenchError)
