from __future__ import annotations

import math
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from fusion_bench.models.retrievers.hybrid import ChromaDBError, ChromaDBManager, Space
from tests.models.retrieve.hybrid.store import METADATA, TEXTS, WordVectors, filled_manager
from tests.models.retrieve.server import word_vector


def test_every_document_comes_back() -> None:
    with filled_manager() as manager:
        items = manager.get_all_documents()
        bare = manager.get_all_documents({"kind": "faq"}, include_documents=False)
    assert items == [
        {"id": name, "document": text, "metadata": METADATA[name]} for name, text in TEXTS.items()
    ]
    assert {item["id"]: item["document"] for item in bare} == dict.fromkeys(("c3", "c4", "c6"))


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


def test_collections_in_memory_are_apart() -> None:
    with filled_manager(), closing(ChromaDBManager(WordVectors())) as other:
        assert other.get_all_documents() == []


def test_a_document_that_is_added_again_is_replaced() -> None:
    with filled_manager() as manager:
        manager.add(["c1"], ["calm"], embeddings=[[1.0] * 16])
        items = {item["id"]: item["document"] for item in manager.get_all_documents()}
    assert items == TEXTS | {"c1": "calm"}


def test_what_chroma_refuses() -> None:
    with filled_manager() as manager:
        with pytest.raises(ChromaDBError, match="read the documents: "):
            manager.get_all_documents({"$never": 1})
        with pytest.raises(ChromaDBError, match="add documents: "):
            manager.add(["x"], ["text"], embeddings=[[1.0, 2.0]])
        store = manager.vectorstore
        assert store is not None
        with pytest.raises(ChromaDBError, match="not search: "):
            store.similarity_search_with_relevance_scores("storm", filter={"$never": 1})


def test_without_an_embedding_function() -> None:
    with closing(ChromaDBManager()) as manager:
        assert manager.vectorstore is None
        with pytest.raises(ChromaDBError, match="no vectors"):
            manager.add(["x"], ["text"])
        manager.add(["x"], ["text"], embeddings=[[1.0, 2.0]])
        assert [item["id"] for item in manager.get_all_documents()] == ["x"]
