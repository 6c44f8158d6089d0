"""Orders and verdicts of systems under people's grades and those of simulated machines.

    FUSION_BENCH_PARITY_DATA=… python -m benchmarks.studies.judge_sensitivity_table [--dry-run]

It writes a dataset with every judge to a temporary folder and runs ``grades sensitivity`` on it.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import yaml

from benchmarks.collections import load_parity_run
from benchmarks.studies.machine_judges.confusion import SCALES
from benchmarks.studies.machine_judges.population import (
    FAVORED,
    SYSTEMS,
    make_judges,
    rank_codes,
    top_documents,
)
from benchmarks.studies.prediction_powered_table import PAGE
from benchmarks.table import replace_between_marks
from fusion_bench.data.qrels import Qrels
from fusion_bench.experiment.experiment import read_experiment
from fusion_bench.io.load_records import load_qrels
from fusion_bench.judging.sensitivity import JudgeSensitivity, judge_experiment

MARK, SEED, PEOPLE = "judge-sensitivity", 18, "people"


def grade_collection(collection: str, seed: int) -> dict[str, Qrels]:
    """The grades of people, and those of each simulated machine."""
    folder = Path(os.environ["FUSION_BENCH_PARITY_DATA"]) / collection
    people = load_qrels(folder / "qrels.txt")
    favored = top_documents(load_parity_run(collection, "runs", SYSTEMS[collection][-1]).to_dict())
    rng = np.random.default_rng(seed)
    judges = make_judges(SCALES[collection], 1)
    given: dict[str, dict[str, dict[str, int]]] = {name: {} for name in judges}
    for query, judged in people.to_dict().items():
        at = {document: i for i, document in enumerate(judged)}
        codes = rank_codes(favored.get(query, [])[:FAVORED], at)
        grades = np.maximum(np.array(list(judged.values())), 0)
        for name, judge in judges.items():
            machine = judge(rng, grades, codes[codes < len(at)])[0].tolist()
            given[name][query] = dict(zip(judged, machine, strict=True))
    return {PEOPLE: people, **{name: Qrels.from_dict(rows) for name, rows in given.items()}}


def write_project(collection: str, judges: Mapping[str, Qrels], folder: Path) -> Path:
    """Write dataset and experiment; the path of the experiment."""
    runs = Path(os.environ["FUSION_BENCH_PARITY_DATA"]) / collection / "runs"
    place = folder / "datasets" / collection
    place.mkdir(parents=True)
    names = SYSTEMS[collection]
    for n, grades in enumerate(judges.values()):
        grades.to_trec(place / f"judge-{n}.txt")
    dataset = {
        "name": collection,
        "follow_links_to": [str(runs)],
        "judges": {
            name: {"path": f"judge-{n}.txt", "kind": "machine" if n else "human"}
            for n, name in enumerate(judges)
        },
        "runs": {n: {"path": f"{n}.trec.gz", "on_duplicate": "best_rank"} for n in names},
    }
    for name in names:
        (place / f"{name}.trec.gz").symlink_to(runs / f"{name}.trec.gz")
    (place / "dataset.yaml").write_text(yaml.safe_dump(dataset, sort_keys=False), encoding="utf-8")
    systems = {name: {"runs": [name]} for name in names} | {"rrf": {"runs": list(names)}}
    experiment = {
        "dataset": collection,
        "measures": ["nDCG@10"],
        "baseline": names[0],
        "systems": systems,
    }
    path = folder / "experiments" / "judges.yaml"
    path.parent.mkdir()
    path.write_text(yaml.safe_dump(experiment, sort_keys=False), encoding="utf-8")
    return path


def compare_judges(collection: str) -> JudgeSensitivity:
    """The sensitivity of one collection."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = write_project(collection, grade_collection(collection, SEED), folder)
        experiment, source = read_experiment(path)
        return judge_experiment(experiment, source, folders=[folder / "datasets"])


def list_rows(sensitivity: JudgeSensitivity) -> Iterator[str]:
    """A row a machine: its order and verdicts beside people's."""
    for n, order in enumerate(sensitivity.orders[: len(sensitivity.judges) - 1], 1):
        flips = []
        for each in sensitivity.systems:
            if each.stability is not None:
                answers = each.verdicts[0].answer, each.verdicts[n].answer
                if answers[0] != answers[1]:
                    flips.append(f"{each.system}: {answers[0]} → {answers[1]}")
        tau = "n/a" if order.tau is None else f"{order.tau:+.2f}"
        swapped = ", ".join(f"{a} / {b}" for a, b in order.swapped) or "none"
        yield (
            f"| {sensitivity.dataset} | {order.second} | {tau} | {swapped} | "
            f"{'; '.join(flips) or 'none'} |"
        )


def format_table(sensitivities: list[JudgeSensitivity]) -> str:
    """As Markdown."""
    lines = [
        "| collection | machine | τ with people | swapped systems | verdicts that change |",
        "|:--|:--|--:|:--|:--|",
        *(row for each in sensitivities for row in list_rows(each)),
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Compare the judges of each collection, and renew the table in docs/studies/judges.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dry-run", action="store_true", help="print only, write nothing")
    options = parser.parse_args()
    table = format_table([compare_judges(collection) for collection in SYSTEMS])
    print(table)
    if not options.dry_run:
        replace_between_marks(PAGE, table, mark=MARK)


if __name__ == "__main__":
    main()
