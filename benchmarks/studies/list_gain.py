"""What a better list is worth after fusion and reranking: docs/studies/list-gain.md.

For each pair of lists of a collection in which one has the higher nDCG@10: the gain alone, fused
with a keyword list by RRF and by convex fusion whose weights are tuned out of fold, and below a
reranker.

    FUSION_BENCH_PARITY_DATA=… python -m benchmarks.studies.list_gain --write
"""

from __future__ import annotations

import argparse
import gzip
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np

from benchmarks.collections import load_parity_run
from benchmarks.leaderboard.evaluate import evaluate_row, load_material
from benchmarks.leaderboard.records import SystemRow, TuningBudget
from benchmarks.leaderboard.rows import BASELINE, CONVEX, MEASURE, list_fusions
from benchmarks.studies.leaderboard.catalog import PARITY_DATA, ParityCollection
from benchmarks.table import Rows, format_rows, keep_columns, replace_between_marks, write_csv
from fusion_bench.data.grouped_rows import number_by_appearance
from fusion_bench.data.ordering import FloatArray
from fusion_bench.evaluation.compared_reports import SystemGain, describe_gain

PAGE: Final = Path(__file__).parents[2] / "docs" / "studies" / "list-gain.md"
KEYWORD: Final = "bm25"
#: Numbers of each vector that are kept: the same vectors, poorer.
DIMENSIONS: Final = (24, 96, 384)
#: Documents of a list.
DEPTH: Final = 100
HEADER: Final = (
    *("collection", "old → new list", "gain alone", "after rrf", "rrf keeps", "after tuned convex"),
    *("tuned convex keeps", "after rrf, reranked", "rrf, reranked, keeps"),
)


@dataclass(frozen=True)
class Case:
    """The lists of a collection that replace each other.

    Attributes:
        collection: Its name, and its folder.
        lists: Names of the lists.
        rerank: Score space of the rerank list by its file; empty = there is none.
        keys: Further keys of the ``dataset.yaml``.
        note: Stands beside its name.
    """

    collection: str
    lists: tuple[str, ...]
    rerank: Mapping[str, str]
    keys: Mapping[str, Any]
    note: str = ""


CASES: Final = (
    Case(
        "jqara",
        (
            *("static-embedding-japanese", "ruri-base", "multilingual-e5-large"),
            *("bge-m3+dense", "japanese-splade-base-v1"),
        ),
        {"rerank/bge-reranker-v2-m3.trec.gz": "unit"},
        {"judgments": "complete"},
        "same candidates",
    ),
    Case("trec-dl-2019", ("tas-b", "ada2", "splade"), {}, {"binary_relevance": 2}),
    Case(
        "nfcorpus",
        tuple(f"minilm-{size}" for size in DIMENSIONS),
        {},
        {"qrels": "qrels/test.trec", "judgments": "sparse"},
        "one encoder, shortened vectors",
    ),
)


def write_vector_runs(source: Path, folder: Path) -> None:
    """The runs of nfcorpus' vectors, shortened, beside a copy of the other files."""
    stored = np.load(source / "minilm_embeddings_f16.npz", allow_pickle=False)
    wanted = load_parity_run("nfcorpus", "runs", KEYWORD).queries
    names, documents = stored["query_ids"].tolist(), stored["doc_ids"]
    rows = [names.index(query) for query in wanted]
    (folder / "runs").mkdir(parents=True, exist_ok=True)
    for size in DIMENSIONS:
        sides = [stored[key][:, :size].astype(np.float64) for key in ("query", "doc")]
        queries, vectors = (side / np.linalg.norm(side, axis=1)[:, None] for side in sides)
        write_run(
            folder / "runs" / f"minilm-{size}.trec.gz", wanted, documents, queries[rows] @ vectors.T
        )
    for file in ("qrels/test.trec", f"runs/{KEYWORD}.trec.gz"):
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / file, folder / file)


def write_run(
    path: Path, queries: Sequence[str], documents: Sequence[str], scores: FloatArray
) -> None:
    """The best documents of each query, for TREC.

    Args:
        path: The file.
        queries: Ids, (Q,).
        documents: Ids, (D,).
        scores: Shape (Q, D).
    """
    with gzip.open(path, "wt", encoding="utf-8") as file:
        for query, row in zip(queries, scores, strict=True):
            for rank, place in enumerate(np.argsort(-row, kind="stable")[:DEPTH].tolist(), start=1):
                file.write(f"{query} Q0 {documents[place]} {rank} {row[place]:.6f} vectors\n")


def evaluate_list(case: Case, name: str, source: Path, work: Path) -> dict[str, FloatArray]:
    """Values of the list alone, and of the systems that read it, (Q,) each; and the groups."""
    runs = {KEYWORD: ("keyword",), name: ("semantic",)}
    collection = ParityCollection(case.collection, runs, case.rerank, case.keys)
    material = load_material(collection.write(source, work / f"{case.collection}-{name}"))
    fused = {"runs": [KEYWORD, name]}
    convex = {**fused, "fusion": list_fusions()[CONVEX]}
    rows = {
        "alone": SystemRow(name=name, kind="source", config={"runs": [name]}),
        "rrf": SystemRow(name=BASELINE, kind="method", config=fused),
        "convex": SystemRow(name=f"{CONVEX}, tuned", kind="tuned", config=convex),
    }
    if case.rerank:
        [reranker] = material.lists.rerankers
        blend = {"method": "replace", "reranker": reranker, "depth": 50, "missing": "below"}
        rows["reranked"] = SystemRow(
            name="reranked", kind="method", config={**fused, "blend": blend}
        )
    cells = {key: evaluate_row(material, row, TuningBudget(flips=39)) for key, row in rows.items()}
    values = {key: np.array(cell.values[MEASURE.name]) for key, cell in cells.items()}
    return {**values, "groups": number_by_appearance(material.task.runs.groups)[0]}


def compare_lists(case: Case, source: Path, work: Path) -> Iterator[Sequence[str]]:
    """The rows of a collection: each two lists, the one of the lower mean as the old one."""
    if case.collection == "nfcorpus":
        write_vector_runs(source / case.collection, work / "vectors" / case.collection)
        source = work / "vectors"
    known = {name: evaluate_list(case, name, source, work) for name in case.lists}
    ordered = sorted(known, key=lambda name: float(known[name]["alone"].mean()))
    title = f"{case.collection} ({case.note})" if case.note else case.collection
    for old, new in combinations(ordered, 2):
        yield [title, f"{old} → {new}", *_cells(known[old], known[new])]


def _cells(old: Mapping[str, FloatArray], new: Mapping[str, FloatArray]) -> Iterator[str]:
    groups = new["groups"].astype(np.int64)
    alone = new["alone"] - old["alone"]
    yield _format(describe_gain("alone", alone, alone, groups))[0]
    for key in ("rrf", "convex", "reranked"):
        if key in new:
            yield from _format(describe_gain(key, new[key] - old[key], alone, groups))
        else:
            yield from ("–", "–")


def _format(gain: SystemGain) -> tuple[str, str]:
    """The gain with its interval; the share of the gain alone, where that is shown."""
    mean = f"{gain.gain.mean:+.4f} [{gain.gain.low:+.4f}, {gain.gain.high:+.4f}]"
    share = "–" if gain.share is None else "{:.0%} [{:.0%}, {:.0%}]".format(*gain.share)
    return mean, share


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table, or renew the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="renew docs/studies/list-gain.md")
    parser.add_argument("--toy", action="store_true", help="no collection: the header alone")
    options = parser.parse_args(arguments)
    cases = () if options.toy else CASES
    with TemporaryDirectory() as work:
        rows: Rows = [HEADER] + [
            row
            for case in cases
            for row in compare_lists(case, Path(os.environ[PARITY_DATA]), Path(work))
        ]
    print(format_rows(rows, text_columns=2))
    if options.write:
        shares = [name for name in HEADER if not name.startswith("after")]
        table = format_rows(keep_columns(rows, shares), text_columns=2)
        link = write_csv(PAGE, "intervals", rows)
        replace_between_marks(PAGE, f"\n{table}\n\n{link}\n\n", "list-gain")


if __name__ == "__main__":
    main()
