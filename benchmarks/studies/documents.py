"""Whether it matters where chunks are collapsed to documents: docs/studies/documents.md.

nfcorpus is cut into passages of about 100 words, which BM25 and MiniLM search; its judgments are of
documents. In attack, techniques are documents and sub-techniques their chunks.

    FUSION_BENCH_PARITY_DATA=… python -m benchmarks.studies.documents --write

Encoding the passages takes some ten minutes; ``--cache FOLDER`` keeps the vectors.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.collections import ATTACK
from benchmarks.studies.leaderboard.catalog import PARITY_DATA
from benchmarks.table import Rows, format_rows, pivot, replace_between_marks, write_csv
from fusion_bench.api.compare import evaluate_systems
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.alignment import align
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.run import Run
from fusion_bench.experiment.system import System
from fusion_bench.io.dataset import load_dataset
from fusion_bench.io.json_objects import load_queries
from fusion_bench.io.load_records import load_qrels
from fusion_bench.models.encoders.local import load_minilm
from fusion_bench.models.retrieval import rank_documents
from fusion_bench.models.retrievers.lexical import BM25Index
from fusion_bench.stats.comparison_family import compare_with_baseline

PAGE: Final = Path(__file__).parents[2] / "docs" / "studies" / "documents.md"
MEASURE: Final = "nDCG@10"
#: Words of a passage, and passages of a list.
WORDS, DEPTH = 100, 200
#: Queries with ``--toy``.
TOY: Final = 200
FUSIONS: Final[Mapping[str, Any]] = {
    "RRF, k = 60": "rrf",
    "convex, weights 0.5": {"method": "weighted_score", "normalize": "min_max", "missing": "zero"},
}
SCORES: Final[Mapping[str, Mapping[str, Any]]] = {
    "max": {"score": "max"},
    "sum": {"score": "sum"},
    "rrf, k = 60": {"score": "rrf"},
    "rrf, k = 1": {"score": "rrf", "k": 1},
}
BASELINE: Final = "fused, max"
HEADER: Final = ("collection", "fusion", "place, score", MEASURE, "difference", "95 % interval")


@dataclass(frozen=True, eq=False)
class Case:
    """A collection of chunks whose documents are judged.

    Attributes:
        name: Of the collection.
        runs: The lists of chunks.
        by: Where the parent of a chunk is found.
    """

    name: str
    runs: AlignedRuns
    by: Mapping[str, Any]


def cut_into_passages(texts: Mapping[str, str]) -> dict[str, str]:
    """Passages of each document, of nearly equal length, as ``ID#0``, ``ID#1`` and so on."""
    passages = {}
    for name, text in texts.items():
        words = np.array(text.split(), dtype=object)
        for n, part in enumerate(np.array_split(words, max(1, round(len(words) / WORDS)))):
            passages[f"{name}#{n}"] = " ".join(part)
    return passages


def load_passages(folder: Path, cache: Path | None) -> Case:
    """The lists of nfcorpus' passages, for the queries of its dev and test split."""
    with gzip.open(folder / "corpus.jsonl.gz", "rt", encoding="utf-8") as file:
        items = [json.loads(line) for line in file]
    passages = cut_into_passages({each["_id"]: f"{each['title']} {each['text']}" for each in items})
    qrels = [load_qrels(folder / "qrels" / f"{split}.tsv") for split in ("dev", "test")]
    grades = {query: dict(of) for each in qrels for query, of in each.to_dict().items()}
    known = load_queries(folder / "queries.jsonl")
    texts = [known[query].text or "" for query in grades]
    encoder = load_minilm()
    file_of = None if cache is None else cache / f"nfcorpus-{WORDS}.npy"
    if file_of is not None and file_of.exists():
        vectors = np.load(file_of)
    else:
        vectors = encoder.encode([*passages.values()])
        if file_of is not None:
            np.save(file_of, vectors)
    tables = {
        "bm25": BM25Index(passages).scores(texts),
        "minilm": (encoder.encode(texts) @ vectors.T).astype(np.float64),
    }
    ids = [*passages]
    runs = [
        Run.from_dict(
            name,
            {
                query: dict(rank_documents(ids, row, depth=DEPTH, above=0.0))
                for query, row in zip(grades, table, strict=True)
            },
        )
        for name, table in tables.items()
    ]
    return Case("nfcorpus", align(Qrels.from_dict(grades), runs), {"split": "#"})


def load_techniques() -> Case:
    """The lists of attack, judged by technique: sub-techniques are its chunks."""
    given = load_dataset(ATTACK, rerankers=[])
    grades: dict[str, dict[str, int]] = {}
    for query, judged in given.qrels.to_dict().items():
        families = grades.setdefault(query, {})
        for document, grade in judged.items():
            family = document.split(".")[0]
            families[family] = max(grade, families.get(family, 0))
    queries = {
        name: replace(query, group=(query.group or name).split(".")[0])
        for name, query in given.queries.items()
    }
    runs = [given.runs[name] for name in ("bm25", "dense")]
    aligned = align(Qrels.from_dict(grades), runs, queries=queries)
    return Case("attack", aligned, {"split": "."})


def compare_places(case: Case) -> Iterator[Sequence[str]]:
    """Rows of a collection: each place and score against the best chunk of the fused list."""
    for title, fusion in FUSIONS.items():
        systems = [
            System(
                f"{place}, {score}",
                case.runs.sources,
                fusion,
                collapse={"by": case.by, "place": place, "orphans": "own", **keys},
            )
            for place in ("fused", "each list")
            for score, keys in SCORES.items()
        ]
        values = {
            scores.system: scores.values[0]
            for scores in evaluate_systems(systems, case.runs, MEASURE)
        }
        rows = compare_with_baseline(
            MEASURE, values, BASELINE, groups=case.runs.groups, is_bounded=True
        )
        yield case.name, title, BASELINE, f"{values[BASELINE].mean():.4f}", "", ""
        for row in rows:
            yield (
                *(case.name, title, row.candidate, f"{row.candidate_mean:.4f}"),
                f"{row.difference:+.4f}",
                "–" if math.isnan(row.low) else f"[{row.low:+.4f}, {row.high:+.4f}]",
            )


def summarize(rows: Rows) -> list[list[str]]:
    """The differences with their intervals, and the collection and the fusion as one column."""
    header = ["place, score", "systems", "difference"]
    cells = (
        [name, f"{collection}, {fusion}", f"{difference} {interval}"]
        for collection, fusion, name, _, difference, interval in rows[1:]
        if difference
    )
    return [header, *cells]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table, or renew the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="renew docs/studies/documents.md")
    parser.add_argument(
        "--toy", action="store_true", help="some queries of the built-in collection"
    )
    parser.add_argument("--cache", type=Path, help="folder that keeps the vectors")
    options = parser.parse_args(arguments)
    cases = [load_techniques()]
    if options.toy:
        [case] = cases
        few = np.arange(len(case.runs.queries)) < TOY
        cases = [replace(case, runs=case.runs.subset(few))]
    else:
        folder = Path(os.environ[PARITY_DATA]) / "nfcorpus"
        cases.insert(0, load_passages(folder, options.cache))
    rows: Rows = [HEADER, *(row for case in cases for row in compare_places(case))]
    print(format_rows(rows, text_columns=3))
    if options.write:
        link = write_csv(PAGE, "places", rows)
        table = format_rows(pivot(summarize(rows), ["place, score"], "systems", "difference"))
        replace_between_marks(PAGE, f"\n{table}\n\n{link}\n\n", "documents")


if __name__ == "__main__":
    main()
