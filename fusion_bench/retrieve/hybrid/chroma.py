"""An embedded Chroma collection, with the interface that semche's retriever needs."""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, Protocol, TypeAlias

from fusion_bench.errors import FusionBenchError
from fusion_bench.util.optional_imports import import_optional

#: What is near: ``cosine``, ``l2`` (squared distance) or ``ip`` (inner product).
Space: TypeAlias = Literal["cosine", "l2", "ip"]
#: Relevance of a distance in each space, as LangChain computes it; greater is nearer.
RELEVANCE: Final[Mapping[str, Callable[[float], float]]] = {
    "cosine": lambda distance: 1.0 - distance,
    "l2": lambda distance: 1.0 - distance / math.sqrt(2.0),
    "ip": lambda distance: 1.0 - distance if distance > 0 else -distance,
}


class ChromaDBError(FusionBenchError):
    """Chroma could not do what was asked."""


class EmbeddingFunction(Protocol):
    """Texts to vectors, under LangChain's names."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """One vector a text."""
        ...

    def embed_query(self, text: str) -> list[float]:
        """The vector of a query."""
        ...


@dataclass(frozen=True)
class StoredDocument:
    """A document of a vector store, under LangChain's names.

    Attributes:
        page_content: Its text.
        metadata: What is known of it.
        id: Chroma's id.
    """

    page_content: str | None
    metadata: dict[str, Any]
    id: str | None = None


class VectorStore(Protocol):
    """What the retriever asks of a vector store; ``langchain_chroma.Chroma`` has it too."""

    def similarity_search_with_relevance_scores(
        self,
        query: str,
        k: int = 4,
        filter: dict[str, Any] | None = None,  # noqa: A002 - LangChain's name
    ) -> Sequence[tuple[Any, float]]:
        """The ``k`` nearest documents with their relevance, best first."""
        ...


class ChromaDBManager:
    """A collection of an embedded Chroma, in memory or in a folder.

    Args:
        embedding_function: Makes vectors; None = there is no ``vectorstore``, and :meth:`add` needs
            vectors.
        persist_directory: Folder of the database; None = in memory.
        collection_name: Name of the collection; None = a new one in memory, ``documents`` in a
            folder.
        space: What is near, for a collection that does not exist yet.

    Attributes:
        vectorstore: Searches by text; None without an embedding function.

    Raises:
        ChromaDBError: The collection cannot be opened.
        MissingExtraError: chromadb is not installed.
    """

    def __init__(
        self,
        embedding_function: EmbeddingFunction | None = None,
        *,
        persist_directory: Path | None = None,
        collection_name: str | None = None,
        space: Space = "cosine",
    ) -> None:
        chromadb = import_optional("chromadb", extra="chroma", purpose="the hybrid retriever")
        settings = chromadb.config.Settings(anonymized_telemetry=False)
        self._embedding_function = embedding_function
        self._is_temporary = persist_directory is None and collection_name is None
        # All databases in memory of one process are one.
        name = f"documents-{secrets.token_hex(8)}" if self._is_temporary else "documents"
        with wrap_errors("open the collection"):
            self._client = (
                chromadb.EphemeralClient(settings)
                if persist_directory is None
                else chromadb.PersistentClient(str(persist_directory), settings)
            )
            self._collection = self._client.get_or_create_collection(
                collection_name or name,
                embedding_function=None,
                configuration={"hnsw": {"space": space}},
            )
            metric = self._collection.configuration_json["hnsw"]["space"]
        self.vectorstore: VectorStore | None = None
        if embedding_function is not None:
            self.vectorstore = ChromaVectorStore(self._collection, embedding_function, metric)

    def add(
        self,
        ids: Sequence[str],
        documents: Sequence[str],
        *,
        metadatas: Sequence[Mapping[str, Any]] | None = None,
        embeddings: Sequence[Sequence[float]] | None = None,
    ) -> None:
        """Add documents, or replace those of the same id.

        Args:
            ids: Shape (N,).
            documents: Their texts.
            metadatas: What is known of each; ``filepath`` becomes its id in results.
            embeddings: Their vectors, shape (N, H); None = the embedding function's.

        Raises:
            ChromaDBError: Chroma refuses them, or there is no embedding function.
        """
        if embeddings is None:
            if self._embedding_function is None:
                raise ChromaDBError("no vectors: give embeddings, or an embedding_function")
            embeddings = self._embedding_function.embed_documents(list(documents))
        with wrap_errors("add documents"):
            most = self._client.get_max_batch_size()
            for start in range(0, len(ids), most):
                part = slice(start, start + most)
                self._collection.upsert(
                    ids=list(ids[part]),
                    documents=list(documents[part]),
                    embeddings=[list(map(float, row)) for row in embeddings[part]],
                    # Chroma refuses a metadata without a key.
                    metadatas=[dict(row) or None for row in metadatas[part]] if metadatas else None,
                )

    def get_all_documents(
        self, where: Mapping[str, Any] | None = None, *, include_documents: bool = True
    ) -> list[dict[str, Any]]:
        """Every document that a filter lets through: id, text and metadata, as they were added.

        Args:
            where: Filter over the metadata, in Chroma's language; None = all.
            include_documents: Whether to read the texts.

        Raises:
            ChromaDBError: Chroma refuses the filter.
        """
        include = ["metadatas", *(["documents"] if include_documents else [])]
        with wrap_errors("read the documents"):
            data = self._collection.get(where=dict(where) if where else None, include=include)
        texts = data["documents"] if include_documents else [None] * len(data["ids"])
        rows = zip(data["ids"], texts, data["metadatas"], strict=True)
        return [
            {"id": name, "document": text, "metadata": dict(metadata or {})}
            for name, text, metadata in rows
        ]

    def close(self) -> None:
        """Drop a collection that is in memory and has no name."""
        if self._is_temporary:
            with wrap_errors("drop the collection"):
                self._client.delete_collection(self._collection.name)


class ChromaVectorStore:
    """Searches a collection by text.

    Args:
        collection: Chroma's.
        embedding_function: Makes the vector of a query.
        space: What is near in that collection.
    """

    def __init__(
        self,
        collection: Any,  # noqa: ANN401 - chromadb's
        embedding_function: EmbeddingFunction,
        space: str,
    ) -> None:
        self._collection, self._embedding_function = collection, embedding_function
        self._relevance = RELEVANCE[space]

    def similarity_search_with_relevance_scores(
        self,
        query: str,
        k: int = 4,
        filter: dict[str, Any] | None = None,  # noqa: A002 - LangChain's name
    ) -> list[tuple[StoredDocument, float]]:
        """The ``k`` nearest documents with their relevance, best first.

        The relevance is computed from Chroma's distance d: 1 − d for ``cosine``, 1 − d/√2 for
        ``l2``, for ``ip`` 1 − d above 0 and −d otherwise. The order is that of the distances,
        except where ``ip`` passes 0.

        Raises:
            ChromaDBError: Chroma refuses the query or the filter.
        """
        vector = self._embedding_function.embed_query(query)
        with wrap_errors("search"):
            data = self._collection.query(
                query_embeddings=[list(map(float, vector))],
                n_results=k,
                where=filter or None,
                include=["documents", "metadatas", "distances"],
            )
        rows = zip(
            *(data[key][0] for key in ("ids", "documents", "metadatas", "distances")), strict=True
        )
        return [
            (StoredDocument(text, dict(metadata or {}), name), self._relevance(distance))
            for name, text, metadata, distance in rows
        ]


@contextmanager
def wrap_errors(action: str) -> Iterator[None]:
    """Turn any error of Chroma into a :class:`ChromaDBError` of one line."""
    try:
        yield
    except Exception as error:
        text = " ".join(str(error).split()) or type(error).__name__
        raise ChromaDBError(f"Chroma could not {action}: {text}") from error
