"""A corpus as an index of each engine that runs from a package; the keys of its ``pull.yaml``."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np

from benchmarks.studies.pulled_engines.corpus import Corpus

#: Keys of a connector, without ``fused``.
Settings: TypeAlias = dict[str, Any]

KEYWORD: Final = {"roles": ["keyword"]}
SEMANTIC: Final = {"roles": ["semantic"]}
BATCH: Final = 500


def _batches(corpus: Corpus) -> Iterator[list[tuple[int, str, str, list[float]]]]:
    """Number, id, text and vector of each document, some at a time."""
    rows = [
        (number, name, text, corpus.vectors[number].tolist())
        for number, (name, text) in enumerate(corpus.texts.items())
    ]
    for start in range(0, len(rows), BATCH):
        yield rows[start : start + BATCH]


def build_lancedb(corpus: Corpus, folder: Path) -> Settings:
    """A table with a full-text index; its vectors are compared one by one."""
    os.environ.setdefault("LANCEDB_LOG", "error")  # or each search prints a warning
    import lancedb
    import pyarrow as pa

    values = pa.array(corpus.vectors.ravel())
    table = lancedb.connect(folder).create_table(
        "docs",
        pa.table(
            {
                "id": [*corpus.texts],
                "body": [*corpus.texts.values()],
                "vector": pa.FixedSizeListArray.from_arrays(values, corpus.width),
            }
        ),
    )
    table.create_index("body", config=lancedb.index.FTS())
    return {
        "path": str(folder),
        "table": "docs",
        "text_field": "body",
        "legs": {
            "bm25": {**KEYWORD, "search": "text", "field": "body"},
            "dense": {**SEMANTIC, "search": "vector", "field": "vector", "metric": "cosine"},
        },
    }


def build_qdrant_edge(corpus: Corpus, folder: Path) -> Settings:
    """A shard of Qdrant Edge: dense vectors, and sparse ones of its own BM25."""
    import qdrant_edge as edge

    folder.mkdir()
    shard = edge.EdgeShard.create(
        str(folder),
        edge.EdgeConfig(
            vectors={"dense": edge.EdgeVectorParams(corpus.width, edge.Distance.Cosine)},
            sparse_vectors={"bm25": edge.EdgeSparseVectorParams(modifier=edge.Modifier.Idf)},
        ),
    )
    bm25 = edge.Bm25(edge.Bm25Config(language="english"))
    for batch in _batches(corpus):
        points = [
            edge.Point(
                number,
                {"dense": vector, "bm25": bm25.embed_document(text)},
                {"id": name, "body": text},
            )
            for number, name, text, vector in batch
        ]
        shard.update(edge.UpdateOperation.upsert_points(points))
    shard.flush()
    shard.close()
    return _qdrant_settings(folder)


def build_qdrant_client(corpus: Corpus, folder: Path) -> Settings:
    """The same points in a database of qdrant-client's local mode."""
    import qdrant_edge as edge
    from qdrant_client import QdrantClient, models

    client = QdrantClient(path=str(folder))
    client.create_collection(
        "docs",
        vectors_config={
            "dense": models.VectorParams(size=corpus.width, distance=models.Distance.COSINE)
        },
        sparse_vectors_config={"bm25": models.SparseVectorParams(modifier=models.Modifier.IDF)},
    )
    bm25 = edge.Bm25(edge.Bm25Config(language="english"))
    for batch in _batches(corpus):
        points = []
        for number, name, text, vector in batch:
            words = bm25.embed_document(text)
            sparse = models.SparseVector(indices=words.indices, values=words.values)
            points.append(
                models.PointStruct(
                    id=number,
                    vector={"dense": vector, "bm25": sparse},
                    payload={"id": name, "body": text},
                )
            )
        client.upsert("docs", points)
    client.close()
    return _qdrant_settings(folder)


def _qdrant_settings(folder: Path) -> Settings:
    return {
        "path": str(folder),
        "collection": "docs",
        "id_field": "id",
        "text_field": "body",
        "legs": {
            "bm25": {**KEYWORD, "using": "bm25", "model": "qdrant/bm25"},
            "dense": {**SEMANTIC, "using": "dense"},
        },
    }


def build_milvus(corpus: Corpus, path: Path) -> Settings:
    """A database of Milvus Lite: dense vectors, and BM25 by a function of the collection."""
    from pymilvus import DataType, Function, FunctionType, MilvusClient

    client = MilvusClient(str(path))
    schema = client.create_schema()
    schema.add_field("id", DataType.VARCHAR, is_primary=True, max_length=100)
    schema.add_field("body", DataType.VARCHAR, max_length=65_535, enable_analyzer=True)
    schema.add_field("dense", DataType.FLOAT_VECTOR, dim=corpus.width)
    schema.add_field("bm25", DataType.SPARSE_FLOAT_VECTOR)
    schema.add_function(
        Function(
            name="bm25",
            function_type=FunctionType.BM25,
            input_field_names=["body"],
            output_field_names=["bm25"],
        )
    )
    indexes = client.prepare_index_params()
    indexes.add_index("dense", index_type="FLAT", metric_type="COSINE")
    indexes.add_index("bm25", index_type="SPARSE_INVERTED_INDEX", metric_type="BM25")
    client.create_collection("docs", schema=schema, index_params=indexes)
    for batch in _batches(corpus):
        client.insert(
            "docs", [{"id": name, "body": text, "dense": vector} for _, name, text, vector in batch]
        )
    client.flush("docs")
    client.close()
    return {
        "path": str(path),
        "collection": "docs",
        "text_field": "body",
        "legs": {"bm25": {**KEYWORD, "search": "text"}, "dense": SEMANTIC},
    }


def build_chroma(corpus: Corpus, folder: Path) -> Settings:
    """A collection of a folder of Chroma, whose approximate index looks at many neighbors."""
    import chromadb

    client = chromadb.PersistentClient(
        str(folder), chromadb.config.Settings(anonymized_telemetry=False)
    )
    collection = client.create_collection(
        "docs",
        embedding_function=None,
        configuration={"hnsw": {"space": "cosine", "ef_construction": 400, "ef_search": 400}},
    )
    for batch in _batches(corpus):
        _, names, texts, vectors = zip(*batch, strict=True)
        collection.add(
            ids=list(names),
            documents=list(texts),
            embeddings=np.array(vectors, dtype=np.float32),
        )
    return {"path": str(folder), "collection": "docs", "legs": {"dense": SEMANTIC}}


def build_postgres(corpus: Corpus, address: str) -> Settings:
    """A table with a full-text column; its vectors are compared one by one.

    Args:
        corpus: What is indexed.
        address: Of an empty database, as psycopg2 takes it.
    """
    import psycopg2  # type: ignore[import-untyped]
    from psycopg2.extras import execute_values  # type: ignore[import-untyped]

    with closing(psycopg2.connect(address)) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE EXTENSION IF NOT EXISTS vector")
        cursor.execute(
            f"CREATE TABLE docs (id text PRIMARY KEY, body text, dense vector({corpus.width}), "
            "words tsvector GENERATED ALWAYS AS (to_tsvector('english', body)) STORED)"
        )
        for batch in _batches(corpus):
            rows = [(name, text, json.dumps(vector)) for _, name, text, vector in batch]
            execute_values(cursor, "INSERT INTO docs (id, body, dense) VALUES %s", rows)
        cursor.execute("CREATE INDEX ON docs USING gin (words)")
        connection.commit()
    return {
        "table": "docs",
        "text_field": "body",
        "legs": {
            "fulltext": {**KEYWORD, "search": "text", "field": "words", "operator": "or"},
            "dense": {**SEMANTIC, "search": "vector"},
        },
    }


def build_sqlite(corpus: Corpus, path: Path) -> Settings:
    """An FTS5 table with stems."""
    with closing(sqlite3.connect(path)) as database:
        database.execute(
            "CREATE VIRTUAL TABLE docs USING fts5(id UNINDEXED, body, tokenize=porter)"
        )
        database.executemany("INSERT INTO docs VALUES (?, ?)", [*corpus.texts.items()])
        database.commit()
    return {"path": str(path), "table": "docs", "text_field": "body", "legs": {"fts5": KEYWORD}}


#: Fusions that each engine does itself, in the terms of its dialect.
FUSIONS: Final[Mapping[str, Sequence[Mapping[str, Any]]]] = {
    "lancedb": (
        {"method": "RRFReranker"},
        {"method": "MRRReranker", "weight_vector": 0.7, "weight_fts": 0.3},
        {"method": "LinearCombinationReranker", "weight": 0.7},
    ),
    "qdrant": (
        {"method": "rrf"},
        {"method": "rrf", "k": 60, "weights": {"bm25": 1.0, "dense": 2.0}},
        {"method": "dbsf"},
    ),
    "milvus": (
        {"method": "rrf"},
        {
            "method": "weighted",
            "weights": {"bm25": 0.4, "dense": 0.7},
            "metric": {"bm25": "BM25", "dense": "COSINE"},
        },
        {
            "method": "weighted",
            "weights": {"bm25": 0.02, "dense": 0.7},
            "norm_score": False,
            "metric": {"bm25": "BM25", "dense": "COSINE"},
        },
    ),
    "pgvector": (
        {"method": "rrf"},
        {"method": "rrf", "k": 10, "weights": {"dense": 2.0}},
        {"method": "convex", "weights": {"fulltext": 0.4, "dense": 0.6}},
    ),
}
