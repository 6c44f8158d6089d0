"""How many judgments decide a comparison: what could change it first, against a random order.

    FUSION_BENCH_PARITY_DATA=… python -m benchmarks.studies.judging_effort [--dry-run]

TREC's judgments of trec-dl-2019 are hidden, but for the first 10 documents of bm25. A judge who
knows them is asked for 10 documents at a time, until both extreme completions give one answer. A
document that TREC did not judge counts as not relevant to that judge.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
import yaml

from benchmarks.table import replace_between_marks
from fusion_bench.data.qrels import Qrels
from fusion_bench.judging.judge_files import pair_grades
from fusion_bench.judging.next_documents import JudgingPlan, plan_judging
from fusion_bench.judging.pools import JudgedSystems, Pair, read_judged_systems
from fusion_bench.stats.comparison import Answer

PAGE: Final = Path(__file__).parents[2] / "docs" / "studies" / "judges.md"
MARK: Final = "judging effort"
COLLECTION: Final = "trec-dl-2019"
RUNS: Final = ("bm25", "tas-b", "splade")
SYSTEMS: Final = {name: {"runs": [name]} for name in RUNS} | {"rrf": {"runs": ["bm25", "tas-b"]}}
PAIRS: Final = (("tas-b", "bm25"), ("splade", "tas-b"), ("rrf", "bm25"))
MEASURES: Final = ("nDCG@10", "RR@10", "P@10")
DEPTH, BATCH, SEEDS = 10, 10, 5


@dataclass(frozen=True)
class Effort:
    """One comparison.

    Attributes:
        candidate: Name of a system.
        baseline: Name of the other.
        measure: What decides.
        first: Documents that could change it before anything is judged.
        ordered: Documents judged in the order of what they could change.
        at_random: Documents judged in random order; the median over seeds.
        answer: What is shown then.
    """

    candidate: str
    baseline: str
    measure: str
    first: int
    ordered: int
    at_random: int
    answer: Answer

    @property
    def row(self) -> str:
        """As Markdown."""
        pair = f"| {self.candidate} - {self.baseline} | {self.measure} "
        return f"{pair}| {self.first} | {self.ordered} | {self.at_random} | {self.answer} |"


def read_collection(folder: Path) -> JudgedSystems:
    """The systems on the whole judgments; ``folder`` is written to."""
    data = Path(os.environ["FUSION_BENCH_PARITY_DATA"]) / COLLECTION
    place = folder / "datasets" / COLLECTION
    place.mkdir(parents=True)
    (place / "data").symlink_to(data)
    runs = {name: {"path": f"data/runs/{name}.trec.gz"} for name in RUNS}
    spec = {
        "name": COLLECTION,
        "qrels": "data/qrels.txt",
        "binary_relevance": 2,
        "follow_links_to": [str(data)],
        "runs": runs,
    }
    (place / "dataset.yaml").write_text(yaml.safe_dump(spec), encoding="utf-8")
    path = folder / "effort.yaml"
    experiment = {
        "dataset": COLLECTION,
        "measures": [*MEASURES],
        "baseline": RUNS[0],
        "systems": SYSTEMS,
    }
    path.write_text(yaml.safe_dump(experiment), encoding="utf-8")
    return read_judged_systems(path, folders=[folder / "datasets"])


def hide_judgments(judged: JudgedSystems, run: str, depth: int) -> JudgedSystems:
    """The same systems, with the judgments of the first documents of one list alone."""
    grades = pair_grades(judged.dataset.qrels)
    known = {}
    for query, scores in judged.dataset.runs[run].to_dict().items():
        for document in sorted(scores, key=lambda d: (scores[d], d), reverse=True)[:depth]:
            if (query, document) in grades:
                known[query, document] = grades[query, document]
    queries, documents = zip(*known, strict=True)
    qrels = Qrels.from_rows(queries, documents, [*known.values()])
    whole = qrels.add_queries(judged.dataset.qrels.queries)
    return replace(judged, dataset=replace(judged.dataset, qrels=whole, cache=None, keys=()))


def judge_until_decided(
    judged: JudgedSystems,
    truth: Mapping[Pair, int],
    pair: tuple[str, str],
    measure: str,
    seed: int | None,
) -> tuple[int, int, JudgingPlan]:
    """Documents that could change it at first, documents judged, and the last plan.

    Args:
        judged: The systems, with few judgments.
        truth: What the judge knows; every other document is not relevant.
        pair: Candidate and baseline.
        measure: What decides.
        seed: Of a random order; None = what could change most comes first.
    """
    grades: dict[Pair, int] = {}
    rng = None if seed is None else np.random.default_rng(seed)
    greatest, first = max(truth.values()), -1
    while True:
        plan = plan_judging(
            judged, grades, greatest=greatest, measure=measure, candidate=pair[0], baseline=pair[1]
        )
        pairs = [document.pair for document, _ in plan.documents]
        first = len(pairs) if first < 0 else first
        if plan.has_one_answer:
            return first, len(grades), plan
        if rng is not None:
            rng.shuffle(pairs)
        grades |= {each: truth.get(each, 0) for each in pairs[:BATCH]}


def measure_efforts() -> Iterator[Effort]:
    """Every comparison on every measure."""
    with tempfile.TemporaryDirectory() as name:
        judged = read_collection(Path(name))
        truth = pair_grades(judged.dataset.qrels)
        few = hide_judgments(judged, RUNS[0], DEPTH)
        for pair in PAIRS:
            for measure in MEASURES:
                first, ordered, plan = judge_until_decided(few, truth, pair, measure, None)
                others = [
                    judge_until_decided(few, truth, pair, measure, seed)[1] for seed in range(SEEDS)
                ]
                at_random = int(np.median(others))
                yield Effort(*pair, plan.measure, first, ordered, at_random, plan.answer)


def format_table(efforts: list[Effort]) -> str:
    """As Markdown."""
    lines = [
        "| comparison | measure | could change it | judged until decided | at random | answer |",
        "|:--|:--|--:|--:|--:|:--|",
        *(effort.row for effort in efforts),
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, and renew the table in docs/studies/judges.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dry-run", action="store_true", help="print only, write nothing")
    options = parser.parse_args()
    table = format_table([*measure_efforts()])
    print(table)
    if not options.dry_run:
        replace_between_marks(PAGE, table, mark=MARK)


if __name__ == "__main__":
    main()
