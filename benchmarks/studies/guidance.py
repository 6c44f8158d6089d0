"""What is measured beside the guidance tables of docs/choosing.md.

Differences from RRF without a reranker, paired by query: other fusions and a reranker on every
collection at hand, and the reranker at four depths.

    FUSION_BENCH_PARITY_DATA=… python -m benchmarks.studies.guidance --write
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.studies.leaderboard.catalog import find_collections
from benchmarks.studies.leaderboard.methods import ROOT
from benchmarks.studies.study import parse_options
from benchmarks.table import replace_between_marks
from fusion_bench.evaluation.in_memory import make_experiment
from fusion_bench.evaluation.report_records import Collection
from fusion_bench.evaluation.run_experiment import run_on_datasets
from fusion_bench.experiment import DEFAULT_MEASURES
from fusion_bench.io.dataset import Dataset, load_dataset
from fusion_bench.stats.comparison import BETTER, WORSE

PAGE = ROOT / "docs" / "choosing.md"
DEPTHS = (10, 25, 50, 100)
#: Candidates that a reranker sees in the first table.
DEPTH = 50
RERANKED = f"reranker, first {DEPTH}"
#: Depths that are compared with it.
OTHER_DEPTHS = (25, 100)
MARKS_OF_TABLES = ("strategies", "depths", "other-depths")
#: Row of the first table → keys of its system.
STRATEGIES: Mapping[str, Mapping[str, Any]] = {
    "weighted score, raw": {"fusion": {"method": "weighted_score"}},
    "weighted score, min-max": {"fusion": "convex"},
}
MARKS: dict[str, str] = {**dict.fromkeys(BETTER, " ▲"), **dict.fromkeys(WORSE, " ▼")}


def with_reranker(dataset: Dataset, depth: int) -> dict[str, Any]:
    """RRF, its first documents ordered by the collection's first rerank list."""
    reranker = next(iter(dataset.rerankers))
    blend = {"method": "replace", "reranker": reranker, "depth": depth, "missing": "below"}
    return {"fusion": "rrf", "blend": blend}


def compare_systems(dataset: Dataset, systems: Mapping[str, Mapping[str, Any]]) -> Collection:
    """Each system over all lists of a collection, against the first."""
    runs = list(dataset.runs)
    configs = {name: {"runs": runs, **keys} for name, keys in systems.items()}
    experiment, source = make_experiment(
        "guidance", configs, dataset=dataset.name, measures=list(DEFAULT_MEASURES[:1])
    )
    return run_on_datasets(experiment, source, [dataset]).collections[0]


def format_difference(collection: Collection, system: str) -> str:
    """``+0.0123 [+0.0010, +0.0236] ▲``; a mark where a difference is shown."""
    row = collection.comparison(system, collection.primary_measure)
    if row is None or row.low is None or row.high is None:
        return "–"
    mark = MARKS.get(str(row.answer), "")
    return f"{row.difference:+.4f} [{row.low:+.4f}, {row.high:+.4f}]{mark}"


def list_datasets(work: Path, only: str) -> Iterator[Dataset]:
    """Each collection at hand with two sources or more."""
    for name, path in find_collections(work):
        if only in name:
            yield load_dataset(path)


def make_rows(dataset: Dataset) -> tuple[str, ...]:
    """A row of the table of strategies, and one of each table of depths."""
    systems: dict[str, Mapping[str, Any]] = {"rrf": {}, **STRATEGIES}
    depths = [f"first {depth}" for depth in DEPTHS] if dataset.rerankers else []
    systems |= {f"first {depth}": with_reranker(dataset, depth) for depth in DEPTHS if depths}
    collection = compare_systems(dataset, systems)
    mean = collection.system("rrf").measures[collection.primary_measure].mean
    name = f"{dataset.name}, {len(collection.queries):,} queries"
    shown = [*STRATEGIES, *([f"first {DEPTH}"] if depths else [])]
    cells = [format_difference(collection, system) for system in shown] + ["–"] * (not depths)
    first = " | ".join((name, f"{mean:.4f}", *cells))
    if not depths:
        return (f"| {first} |",)
    start = (name, next(iter(dataset.rerankers)))
    cells = [format_difference(collection, depth) for depth in depths]
    around = [f"first {depth}" for depth in (DEPTH, *OTHER_DEPTHS)]
    against = compare_systems(dataset, {name: systems[name] for name in around})
    others = [format_difference(against, name) for name in around[1:]]
    rows = (first, " | ".join((*start, *cells)), " | ".join((*start, *others)))
    return tuple(f"| {row} |" for row in rows)


def make_tables(datasets: Iterator[Dataset]) -> tuple[str, ...]:
    """The tables as Markdown; each row is printed when it is done."""
    columns = (
        ("collection", "RRF, no reranker", *STRATEGIES, RERANKED),
        ("collection", "reranker", *(f"first {depth}" for depth in DEPTHS)),
        ("collection", "reranker", *(f"first {depth} − first {DEPTH}" for depth in OTHER_DEPTHS)),
    )
    tables = [
        [f"| {' | '.join(names)} |", f"|:--|{'--:|' * (len(names) - 1)}"] for names in columns
    ]
    for dataset in datasets:
        rows = make_rows(dataset)
        for table, row in zip(tables, rows, strict=False):  # no depths without a reranker
            table.append(row)
        print(*rows, sep="\n", flush=True)
    return tuple("\n".join(table) for table in tables)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure every collection, and write the tables."""
    options = parse_options(arguments, __doc__, {}, {})
    with tempfile.TemporaryDirectory() as work:
        only = "attack" if options.toy else options.only
        tables = make_tables(list_datasets(Path(work), only))
    if options.write:
        for mark, table in zip(MARKS_OF_TABLES, tables, strict=True):
            replace_between_marks(PAGE, f"\n{table}\n\n", mark)


if __name__ == "__main__":
    main()
