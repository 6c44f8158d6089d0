"""Is 85/15 better than 75/25 on the first three ranks, and is a bonus of 0.10 at rank 1 better?

ADR-005 suggests both. ``experiments/adr-005.yaml`` asks them of the built-in collection with the
retrieval term that its formula has. This asks the same systems of every collection at hand that
has a reranker and a list of role ``question``: with each retrieval term, and without a reranker.

    FUSION_BENCH_PARITY_DATA=… python -m benchmarks.studies.adr_005 --write
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.studies.leaderboard.catalog import find_collections
from benchmarks.studies.leaderboard.methods import ROOT
from benchmarks.studies.study import PAGE, parse_options, write_table
from benchmarks.table import Rows, format_rows, read_rows, write_csv
from fusion_bench.evaluation.report_records import Collection, ComparisonResult
from fusion_bench.evaluation.run_experiment import run_experiment
from fusion_bench.experiment.experiment import read_experiment
from fusion_bench.io.dataset_config import DatasetSpec, read_spec
from fusion_bench.report.answer_texts import format_answer
from fusion_bench.stats.comparison_family import MIN_GAIN

EXPERIMENT = ROOT / "experiments" / "adr-005.yaml"
BONUS = "bonus +0.10"
#: Without a reranker, and the retrieval terms of the blend.
TERMS = ("none", "fused", "fused_max_possible", "reciprocal_rank")
COLUMNS = (
    "collection",
    "blend",
    "change",
    "as decided",
    "difference",
    "95 % interval",
    "adjusted p",
    "min. detectable",
    "answer",
)
ALIGNMENT = "|:--|:--|:--|--:|--:|--:|--:|--:|:--|"


def list_overrides(spec: DatasetSpec, path: Path, term: str) -> list[str]:
    """What ``--set`` replaces in the experiment.

    Args:
        spec: The collection; its first rerank list is blended.
        path: Its ``dataset.yaml``.
        term: One of :data:`TERMS`.
    """
    overrides = [f"dataset={path}", "measures=[nDCG@10]"]
    for name in read_experiment(EXPERIMENT)[0].systems:
        overrides.append(f"systems.{name}.runs=[{', '.join(spec.runs)}]")
        blend = f"systems.{name}.blend"
        if term == "none":
            overrides.append(f"{blend}=none")
        else:
            reranker = next(iter(spec.rerank))
            overrides += [f"{blend}.reranker={reranker}", f"{blend}.retrieval={term}"]
    return overrides


def compare_changes(spec: DatasetSpec, path: Path, term: str) -> Collection:
    """The results on a collection; p is adjusted for the changes that change anything."""
    overrides = list_overrides(spec, path, term)
    experiment, source = read_experiment(EXPERIMENT, overrides=overrides)
    [collection] = run_experiment(experiment, source, folders=[]).collections
    return collection


def list_rows(collection: Collection, term: str) -> Iterator[str]:
    """A row of the table for each change; without a reranker there is the bonus alone."""
    primary = collection.primary_measure
    decided = collection.system(collection.baseline).measures[primary].mean
    for row in collection.comparisons:
        if row.measure == primary and (term != "none" or row.candidate == BONUS):
            yield " | ".join((row.candidate, f"{decided:.4f}", *list_cells(row)))


def list_cells(row: ComparisonResult) -> tuple[str, ...]:
    """Difference, interval, p, minimum detectable difference and answer."""
    detectable = row.min_detectable_difference
    return (
        f"{row.difference:+.4f}",
        "–" if detectable is None else f"[{row.low:+.4f}, {row.high:+.4f}]",
        f"{row.p:.2g}",
        "" if detectable is None else f"{detectable:.4f}",
        format_answer(row.answer, MIN_GAIN),
    )


def list_collections(work: Path) -> Iterator[tuple[Path, DatasetSpec]]:
    """Each collection with a reranker and a list of role ``question``."""
    for _, path in find_collections(work):
        spec, _ = read_spec(path)
        if spec.rerank and any("question" in run.roles for run in spec.runs.values()):
            yield path, spec


def make_table(work: Path, only: str, terms: Sequence[str] = TERMS) -> str:
    """The table as Markdown; each row is printed when it is done."""
    lines = [f"| {' | '.join(COLUMNS)} |", ALIGNMENT]
    for path, spec in list_collections(work):
        if only not in spec.name:
            continue
        for term in terms:
            collection = compare_changes(spec, path, term)
            blend = "no reranker" if term == "none" else f"`{term}`, {next(iter(spec.rerank))}"
            name = f"{spec.name}, {len(collection.queries):,} queries"
            for row in list_rows(collection, term):
                lines.append(f"| {name} | {blend} | {row} |")
                print(lines[-1], flush=True)
                name = blend = ""
    return "\n".join(lines)


def count_answers(rows: Rows) -> list[list[str]]:
    """How many collections have each answer, by retrieval term and change.

    Args:
        rows: Of :func:`make_table`, with every cell filled in.
    """
    answers = ("better", "worse", "equivalent", "identical", "not shown")
    counts: dict[tuple[str, str], Counter[str]] = {}
    for _, blend, change, *_, answer in rows[1:]:
        [kind] = [each for each in answers if answer.startswith(each)]
        counts.setdefault((blend.partition(",")[0], change), Counter())[kind] += 1
    body = [[*key, *(f"{found[each]}" for each in answers)] for key, found in counts.items()]
    return [["blend", "change", *answers], *body]


def main(arguments: Sequence[str] | None = None) -> None:
    """Compare the changes on every collection, and write the table."""
    options = parse_options(arguments, __doc__, {}, {})
    with tempfile.TemporaryDirectory() as work:
        scope = ("attack", TERMS[1:2]) if options.toy else (options.only, TERMS)
        table = make_table(Path(work), *scope)
    if options.write:
        rows = read_rows(table, repeated=2)
        summary = format_rows(count_answers(rows), text_columns=2)
        write_table("adr-005", f"{summary}\n\n{write_csv(PAGE, 'adr-005', rows)}")


if __name__ == "__main__":
    main()
