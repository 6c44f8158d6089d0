"""Real retrievers of frameworks, made when they are asked for."""

import os
from typing import Any, TypeAlias

# Haystack reports its use unless this is set before it is imported.
os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "false"

Made: TypeAlias = Any
TEXTS = {"a": "alpha one", "b": "beta one", "c": "gamma two"}


def _rank(text: str) -> list[tuple[str, float]]:
    words = set(text.split())
    scores = {d: float(len(words & set(body.split()))) for d, body in TEXTS.items()}
    return sorted(((d, s) for d, s in scores.items() if s), key=lambda pair: (-pair[1], pair[0]))


def make_langchain() -> Made:
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever

    class Words(BaseRetriever):  # type: ignore[misc] # Any where it is not installed
        def _get_relevant_documents(
            self,
            query: str,
            *,
            run_manager: Made,  # noqa: ARG002 - of the framework
            k: int = 1,
        ) -> Made:
            return [
                Document(id=d, page_content=TEXTS[d], metadata={"points": s, "key": d.upper()})
                for d, s in _rank(query)[:k]
            ]

    return Words()


def make_langchain_store() -> Made:
    """A vector store's own retriever, which takes ``k`` in place of its 4."""
    from langchain_core.documents import Document
    from langchain_core.embeddings import DeterministicFakeEmbedding
    from langchain_core.vectorstores import InMemoryVectorStore

    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    store.add_documents([Document(id=f"d{n}", page_content=f"text {n}") for n in range(9)])
    return store.as_retriever()


def make_llamaindex() -> Made:
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import NodeRelationship, NodeWithScore, RelatedNodeInfo, TextNode

    source = NodeRelationship.SOURCE

    class Words(BaseRetriever):  # type: ignore[misc] # Any where it is not installed
        def _retrieve(self, query_bundle: Made) -> Made:
            return [
                NodeWithScore(
                    node=TextNode(
                        id_=d,
                        text=TEXTS[d],
                        relationships={source: RelatedNodeInfo(node_id=f"doc-{d}")},
                    ),
                    score=s,
                )
                for d, s in _rank(query_bundle.query_str)
            ]

    return Words()


def make_haystack() -> Made:
    from haystack import Document
    from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
    from haystack.document_stores.in_memory import InMemoryDocumentStore

    store = InMemoryDocumentStore()
    store.write_documents([Document(id=d, content=text) for d, text in TEXTS.items()])
    return InMemoryBM25Retriever(store)


def make_haystack_vectors() -> Made:
    from haystack import Document
    from haystack.components.retrievers.in_memory import InMemoryEmbeddingRetriever
    from haystack.document_stores.in_memory import InMemoryDocumentStore

    store = InMemoryDocumentStore()
    vectors = {"a": [1.0, 0.0], "b": [0.5, 0.5], "c": [0.0, 1.0]}
    store.write_documents(
        [Document(id=d, content=TEXTS[d], embedding=vector) for d, vector in vectors.items()]
    )
    return InMemoryEmbeddingRetriever(store)


def embed(texts: list[str]) -> list[list[float]]:
    return [[0.25, 1.0] for _ in texts]


class Plain:
    def __init__(self) -> None:
        self.documents: list[Any] = []

    def invoke(self, _: str) -> Made:
        return self.documents

    retrieve = invoke

    def run(self, query: str, top_k: int) -> Made:
        return {"documents": self.documents[:top_k] if query else []}


PLAIN = Plain()
NONE = object()
