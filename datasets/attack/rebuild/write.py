"""Reproducible files: the same lines give the same bytes; a file is there whole or not at all."""

from __future__ import annotations

import gzip
import io
import json
import os
from collections.abc import Iterable
from pathlib import Path

from texts import Sentence

from fusion_bench.models.retrieval import Ranking


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write a gzip file without time or name in its header, through a temporary one beside it."""
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=packed, compresslevel=9, mtime=0) as out:
        out.write("".join(f"{line}\n" for line in lines).encode())
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(path.name + ".tmp")
    draft.write_bytes(packed.getvalue())
    os.replace(draft, path)  # noqa: PTH105 - what Path.replace calls; atomic on one file system


def qrels_lines(judged: dict[str, dict[str, int]]) -> Iterable[str]:
    """TREC qrels: ``query 0 document grade``."""
    for query, grades in judged.items():
        for document, grade in grades.items():
            yield f"{query} 0 {document} {grade}"


def query_lines(queries: Iterable[Sentence]) -> Iterable[str]:
    """Ids, groups and splits; the texts are not ours to publish."""
    for query in queries:
        yield json.dumps({"id": query.id, "group": query.group, "split": query.split})


def run_lines(name: str, lists: dict[str, Ranking], decimals: int) -> Iterable[str]:
    """TREC run: ``query Q0 document rank score name``."""
    for query, ranking in lists.items():
        for rank, (document, score) in enumerate(ranking, 1):
            yield f"{query} Q0 {document} {rank} {score:.{decimals}f} {name}"
