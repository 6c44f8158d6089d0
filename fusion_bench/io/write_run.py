"""Ranked lists to files that this package and others read: TREC, JSON Lines, CSV, Parquet."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from fusion_bench.errors import ConfigError, DataError, UnknownNameError
from fusion_bench.io.raw_files import format_suffix
from fusion_bench.util.json_text import encode_json_lines


@dataclass(frozen=True)
class RunRows:
    """Ranked lists by columns, best first within each query; n rows.

    Attributes:
        name: The system's name, the tag of a TREC file.
        queries: Shape (n,).
        documents: Shape (n,).
        ranks: Shape (n,).
        scores: Shape (n,).
        sources: Name of a source → its rank and its score of each document; None = not in it.
    """

    name: str
    queries: list[str]
    documents: list[str]
    ranks: list[int]
    scores: list[float]
    sources: Mapping[str, tuple[list[int | None], list[float | None]]]

    @classmethod
    def from_rankings(
        cls, name: str, rankings: Mapping[str, Iterable[tuple[str, float]]]
    ) -> RunRows:
        """The rows of a run without sources.

        Args:
            name: Of the run.
            rankings: Query → its documents, the best first, and their scores.
        """
        rows = cls(name, [], [], [], [], {})
        for query, ranking in rankings.items():
            for rank, (document, score) in enumerate(ranking, start=1):
                rows.queries.append(query)
                rows.documents.append(document)
                rows.ranks.append(rank)
                rows.scores.append(score)
        return rows

    @property
    def columns(self) -> dict[str, list[Any]]:
        """Every column by name; those of a source are ``NAME_rank`` and ``NAME_score``."""
        columns: dict[str, list[Any]] = {
            "query": self.queries,
            "document": self.documents,
            "rank": self.ranks,
            "score": self.scores,
        }
        for name, (ranks, scores) in self.sources.items():
            columns |= {f"{name}_rank": ranks, f"{name}_score": scores}
        return columns


def encode_run(path: Path, rows: RunRows) -> bytes:
    """Ranked lists in the format that the suffix names; ``.gz`` packs text.

    Raises:
        UnknownNameError: No format has that suffix.
        ConfigError: The format has no room for sources.
        DataError: The format cannot hold an id.
    """
    data = find_writer(path)(rows)
    return gzip.compress(data, mtime=0) if path.suffix.lower() == ".gz" else data


def find_writer(path: Path, *, has_sources: bool = False) -> Callable[[RunRows], bytes]:
    """What encodes rows in the format of a suffix; call it before the work begins.

    Raises:
        UnknownNameError: No format has that suffix.
        ConfigError: The format has no room for sources.
    """
    suffix = format_suffix(path)
    if suffix not in WRITERS:
        raise UnknownNameError("file suffix", suffix, WRITERS, where=str(path))
    if suffix == ".parquet" and path.suffix.lower() == ".gz":
        raise ConfigError(f"{path}: Parquet is packed already: leave out .gz")
    if has_sources and WRITERS[suffix] is _encode_trec:
        raise ConfigError(
            f"{path}: TREC files have no columns for sources: use .jsonl, .csv, .tsv or .parquet"
        )
    return WRITERS[suffix]


def _encode_trec(rows: RunRows) -> bytes:
    for what, ids in (("query", rows.queries), ("document", rows.documents)):
        unfit = next((text for text in dict.fromkeys(ids) if text.split() != [text]), None)
        if unfit is not None:
            raise DataError(
                f"{what} {unfit!r} has blanks, which a TREC file cannot hold: use .jsonl"
            )
    tag = "-".join(rows.name.split())
    pairs = zip(rows.queries, rows.documents, rows.ranks, rows.scores, strict=True)
    lines = [
        f"{query} Q0 {document} {rank} {score!r} {tag}\n" for query, document, rank, score in pairs
    ]
    return "".join(lines).encode()


def _encode_json_lines(rows: RunRows) -> bytes:
    """One object a row; ``sources`` holds those that have the document."""
    objects: list[dict[str, Any]] = []
    pairs = zip(rows.queries, rows.documents, rows.ranks, rows.scores, strict=True)
    for n, (query, document, rank, score) in enumerate(pairs):
        item: dict[str, Any] = {"query": query, "document": document, "rank": rank, "score": score}
        if rows.sources:
            item["sources"] = {
                name: {"rank": ranks[n], "score": scores[n]}
                for name, (ranks, scores) in rows.sources.items()
                if ranks[n] is not None
            }
        objects.append(item)
    return encode_json_lines(objects)


def _encode_delimited(rows: RunRows, delimiter: str) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    writer.writerow(rows.columns)
    writer.writerows(zip(*rows.columns.values(), strict=True))
    return text.getvalue().encode()


def _encode_parquet(rows: RunRows) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet

    integers = {"rank", *(f"{name}_rank" for name in rows.sources)}
    types = {"query": pa.string(), "document": pa.string()}
    arrays = {
        name: pa.array(values, types.get(name, pa.int64() if name in integers else pa.float64()))
        for name, values in rows.columns.items()
    }
    out = io.BytesIO()
    pyarrow.parquet.write_table(pa.table(arrays), out)
    return out.getvalue()


#: What encodes the files that end with a suffix.
WRITERS: Final[dict[str, Callable[[RunRows], bytes]]] = {
    **dict.fromkeys((".trec", ".txt", ".run", ".res"), _encode_trec),
    **dict.fromkeys((".jsonl", ".ndjson"), _encode_json_lines),
    ".csv": lambda rows: _encode_delimited(rows, ","),
    ".tsv": lambda rows: _encode_delimited(rows, "\t"),
    ".parquet": _encode_parquet,
}
