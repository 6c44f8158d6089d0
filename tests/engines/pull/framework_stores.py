"""In-memory stores of LangChain, LlamaIndex and Haystack over the same dozen documents."""

import hashlib
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import tests.engines.pull.framework_objects  # noqa: F401 - no reports of use

Made: TypeAlias = Any
WORDS: Final = ("apple", "pear", "plum", "fig", "lime", "date")
#: Document id → text: two words, each pair once.
TEXTS: Final = {
    f"d{number}": f"{WORDS[number % 6]} and {WORDS[(number * 5 + number // 6 + 1) % 6]} {number}"
    for number in range(12)
}
QUERIES: Final = {"q1": "apple", "q2": "fig lime"}
DEPTH: Final = 12


def embed(text: str, seed: str = "near") -> list[float]:
    """A made vector that any text has: eight numbers around 0 of its digest."""
    digest = hashlib.sha256(f"{seed} {text}".encode()).digest()
    return [byte - 127.5 for byte in digest[:8]]


def embed_all(texts: Sequence[str]) -> list[list[float]]:
    return [embed(text) for text in texts]


def make_langchain(seed: str) -> Made:
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings
    from langchain_core.vectorstores import InMemoryVectorStore

    class Digests(Embeddings):  # type: ignore[misc] # Any: see pyproject.toml
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [embed(text, seed) for text in texts]

        def embed_query(self, text: str) -> list[float]:
            return embed(text, seed)

    store = InMemoryVectorStore(Digests())
    store.add_documents([Document(id=name, page_content=text) for name, text in TEXTS.items()])
    return store.as_retriever()


def langchain_near() -> Made:
    return make_langchain("near")


def langchain_far() -> Made:
    return make_langchain("far")


def make_llamaindex(seed: str) -> Made:
    from llama_index.core import VectorStoreIndex
    from llama_index.core.embeddings import BaseEmbedding
    from llama_index.core.schema import TextNode

    class Digests(BaseEmbedding):  # type: ignore[misc] # Any: see pyproject.toml
        def _get_text_embedding(self, text: str) -> list[float]:
            return embed(text, seed)

        _get_query_embedding = _get_text_embedding

        async def _aget_query_embedding(self, query: str) -> list[float]:
            return embed(query, seed)

    nodes = [TextNode(id_=name, text=text) for name, text in TEXTS.items()]
    index = VectorStoreIndex(nodes, embed_model=Digests())
    return index.as_retriever(similarity_top_k=DEPTH)


def llamaindex_near() -> Made:
    return make_llamaindex("near")


def llamaindex_far() -> Made:
    return make_llamaindex("far")


def llamaindex_fused() -> Made:
    from llama_index.core.llms import MockLLM
    from llama_index.core.retrievers import QueryFusionRetriever

    return QueryFusionRetriever(
        [llamaindex_near(), llamaindex_far()],
        llm=MockLLM(),
        mode="reciprocal_rerank",
        similarity_top_k=DEPTH,
        num_queries=1,
    )


def _haystack_store() -> Made:
    from haystack import Document
    from haystack.document_stores.in_memory import InMemoryDocumentStore

    store = InMemoryDocumentStore(embedding_similarity_function="cosine")
    store.write_documents(
        [Document(id=name, content=text, embedding=embed(text)) for name, text in TEXTS.items()]
    )
    return store


def haystack_bm25() -> Made:
    from haystack.components.retrievers.in_memory import InMemoryBM25Retriever

    return InMemoryBM25Retriever(_haystack_store())


def haystack_near() -> Made:
    from haystack.components.retrievers.in_memory import InMemoryEmbeddingRetriever

    return InMemoryEmbeddingRetriever(_haystack_store())


class HaystackHybrid:
    """Both retrievers, and Haystack's own joiner."""

    def __init__(self) -> None:
        from haystack.components.joiners import DocumentJoiner

        self._bm25, self._near = haystack_bm25(), haystack_near()
        self._joiner = DocumentJoiner(join_mode="reciprocal_rank_fusion")

    def run(self, query: str, top_k: int) -> Made:
        lists = [
            self._bm25.run(query=query, top_k=top_k)["documents"],
            self._near.run(query_embedding=embed(query), top_k=top_k)["documents"],
        ]
        return self._joiner.run(documents=lists, top_k=top_k)
