"""semche's hybrid retriever (0.4.0) over an embedded Chroma: vectors with BM25, fused by rank."""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, Protocol, TypeAlias

from fusion_bench.data.ordering import FloatArray
from fusion_bench.errors import DataError, FusionBenchError
from fusion_bench.models.options import HybridSettings, Tokens
from fusion_bench.models.retrieval import Ranking, SearchContext, SearchTexts, rank_by_score
from fusion_bench.models.retrievers.dense import VectorSource
from fusion_bench.models.retrievers.lexical import OkapiIndex
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


#: ``id``, ``document``, ``metadata`` and ``score``.
Result: TypeAlias = dict[str, Any]
#: Key of the metadata that is a document's id in results.
FILEPATH = "filepath"


class HybridRetrieverError(FusionBenchError):
    """A hybrid search is not possible, or failed."""


class DocumentSource(Protocol):
    """What the retriever asks of a manager of a collection.

    Attributes:
        vectorstore: Searches by text; None = not initialized.
    """

    @property
    def vectorstore(self) -> VectorStore | None:
        """Searches by text; None = not initialized."""
        ...

    def get_all_documents(
        self, where: Mapping[str, Any] | None = None, *, include_documents: bool = True
    ) -> list[dict[str, Any]]:
        """Every document that a filter lets through: ``id``, ``document`` and ``metadata``."""
        ...


class HybridRetriever:
    """Dense and sparse search of one collection, fused.

    The score of a document is dense_weight / (c + dense rank) + sparse_weight / (c + sparse rank);
    a list that lacks it adds 0. Equal scores keep the order of the dense list, then of the sparse.

    Args:
        chroma_manager: The collection.
        dense_weight: Weight of the vector search, at least 0.
        sparse_weight: Weight of BM25, at least 0.
        tokens: What a token of BM25 is.
        zero_padding: Whether documents of score 0 fill the sparse list, as in 0.4.0.

    Raises:
        HybridRetrieverError: The vector store is not initialized, or a weight is not allowed.
    """

    def __init__(
        self,
        chroma_manager: DocumentSource,
        dense_weight: float = 0.5,
        sparse_weight: float = 0.5,
        *,
        tokens: Tokens = "whitespace",
        zero_padding: bool = True,
    ) -> None:
        if getattr(chroma_manager, "vectorstore", None) is None:
            raise HybridRetrieverError(
                "the vector store is not initialized: give ChromaDBManager an embedding_function"
            )
        for name, weight in (("dense_weight", dense_weight), ("sparse_weight", sparse_weight)):
            is_number = isinstance(weight, int | float) and not isinstance(weight, bool)
            if not (is_number and 0 <= weight < math.inf):
                raise HybridRetrieverError(
                    f"{name} {weight!r}: a finite number of at least 0 is needed"
                )
        self._manager = chroma_manager
        self._weights = dense_weight, sparse_weight
        self._tokens: Tokens = tokens
        self._zero_padding = zero_padding

    def search(
        self,
        query: str,
        top_k: int = 5,
        where: dict[str, Any] | None = None,
        rrf_constant: int = 60,
    ) -> list[Result]:
        """The best documents for a query.

        Args:
            query: Its text.
            top_k: Most documents; each search fetches twice as many.
            where: Filter over the metadata, for both searches; None = all documents.
            rrf_constant: c, which flattens the difference between neighboring ranks.

        Returns:
            ``{"id", "document", "metadata", "score"}`` each, best first. ``id`` is the metadata's
            ``filepath``, or else Chroma's id.

        Raises:
            ChromaDBError: Chroma failed.
            HybridRetrieverError: Anything else did.
        """
        return self.search_all([query], top_k, where, rrf_constant)[0]

    def search_all(
        self,
        queries: Sequence[str],
        top_k: int = 5,
        where: dict[str, Any] | None = None,
        rrf_constant: int = 60,
        on_progress: Callable[[int], None] = lambda _: None,
    ) -> list[list[Result]]:
        """:meth:`search` for many queries, whose BM25 index is built once.

        Arguments and errors as there; ``on_progress`` is called with the number of queries done.
        """
        try:
            depth = 2 * _check_number("top_k", top_k, 1)
            _check_number("rrf_constant", rrf_constant, 0)
            items = self._manager.get_all_documents(where=where or None, include_documents=True)
            index = None
            with suppress(DataError):  # no text holds a word
                known = {str(row): item["document"] or "" for row, item in enumerate(items)}
                index = OkapiIndex(known, tokens=self._tokens)
            results: list[list[Result]] = []
            for query in queries:
                dense = self._search_densely(query, where, depth, items)
                sparse = []
                if index is not None:
                    scores = index.scores([query])[0]
                    above = None if self._zero_padding else 0.0
                    for row in rank_by_score(scores, depth=depth, above=above):
                        item = items[row]
                        sparse.append(
                            _make_result(
                                item["metadata"], item["id"], item["document"], float(scores[row])
                            )
                        )
                results.append(self._fuse(dense, sparse, rrf_constant)[:top_k])
                on_progress(len(results))
        except (ChromaDBError, HybridRetrieverError):
            raise
        except Exception as error:
            raise HybridRetrieverError(f"the hybrid search failed: {error}") from error
        return results

    def _search_densely(
        self, query: str, where: dict[str, Any] | None, depth: int, items: Sequence[Result]
    ) -> list[Result]:
        """The nearest documents, best first; one without an id is the item of the same text."""
        store = self._manager.vectorstore
        if store is None:
            raise HybridRetrieverError("the vector store is not initialized any more")
        pairs = store.similarity_search_with_relevance_scores(query, k=depth, filter=where or None)
        ids = {item["document"]: item["id"] for item in reversed(items)}
        return [
            _make_result(
                document.metadata or {},
                document.id or ids.get(document.page_content),
                document.page_content,
                relevance,
            )
            for document, relevance in pairs
        ]

    def _fuse(
        self, dense: Sequence[Result], sparse: Sequence[Result], constant: int
    ) -> list[Result]:
        """Weighted reciprocal ranks; a document that appears twice in a list has its best rank."""
        fused: dict[str, Result] = {}
        for weight, items in zip(self._weights, (dense, sparse), strict=True):
            counted: set[str] = set()
            for rank, item in enumerate(items, start=1):
                if item["id"] not in counted:
                    counted.add(item["id"])
                    fused.setdefault(item["id"], {**item, "score": 0.0})
                    fused[item["id"]]["score"] += weight / (constant + rank)
        return sorted(fused.values(), key=lambda item: -item["score"])


def _make_result(
    metadata: Mapping[str, Any], chroma_id: str | None, text: str | None, score: float
) -> Result:
    name = metadata.get(FILEPATH) or chroma_id
    if not name:
        raise HybridRetrieverError("a document has neither an id nor 'filepath': give it one")
    return {"id": str(name), "document": text, "metadata": dict(metadata), "score": score}


def _check_number(name: str, value: int, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise HybridRetrieverError(
            f"{name} {value!r}: a whole number of at least {least} is needed"
        )
    return value


@dataclass(frozen=True)
class HybridMethod:
    """The fused list of :class:`HybridRetriever`; each of its searches fetches twice the depth.

    Attributes:
        source: Where the vectors come from.
        settings: Of the retriever.
    """

    name: ClassVar[str] = "hybrid"
    roles: ClassVar[tuple[str, ...]] = ()

    source: VectorSource
    settings: HybridSettings

    def describe(self) -> dict[str, Any]:
        """Its settings."""
        return {"method": "hybrid", **self.source.describe(), **asdict(self.settings)}

    def search(
        self, texts: SearchTexts, depth: int, context: SearchContext
    ) -> Mapping[str, Ranking]:
        """At most ``depth`` documents for each query."""
        documents, queries = self.source.find_all(texts, context)
        known = _KnownVectors(dict(zip(texts.queries.values(), queries, strict=True)))
        with closing(ChromaDBManager(known)) as manager:
            context.on_progress("indexing", 0, 1)
            names = [*texts.documents]
            manager.add(names, [*texts.documents.values()], embeddings=documents.tolist())
            retriever = HybridRetriever(
                manager,
                self.settings.dense_weight,
                self.settings.sparse_weight,
                tokens=self.settings.tokens,
                zero_padding=self.settings.zero_padding,
            )
            results = retriever.search_all(
                [*texts.queries.values()],
                depth,
                rrf_constant=self.settings.rrf_constant,
                on_progress=context.report_queries(len(texts.queries)),
            )
        return {
            query: [(item["id"], item["score"]) for item in items]
            for query, items in zip(texts.queries, results, strict=True)
        }


class _KnownVectors:
    """An embedding function of texts whose vectors are known.

    Args:
        vectors: Text → vector, shape (H,).
    """

    def __init__(self, vectors: Mapping[str, FloatArray]) -> None:
        self._vectors = vectors

    def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        """One vector a text."""
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """The vector of a text.

        Raises:
            DataError: It is not known.
        """
        if text not in self._vectors:
            raise DataError(f"no vector of the text {text[:60]!r}")
        return [float(number) for number in self._vectors[text]]
