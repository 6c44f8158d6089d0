"""Orders and verdicts of systems under people's grades and those of simulated machines.

    FUSION_BENCH_PARITY_DATA=… python -m benchmarks.studies.judge_sensitivity_table [--dry-run]

It writes a dataset for each judge to a temporary folder and evaluates the same systems on it.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Iterator, Mapping
from itertools import combinations
from pathlib import Path

import numpy as np
import yaml
from scipy import stats

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
from fusion_bench.evaluation.report_records import Collection
from fusion_bench.evaluation.run_experiment import run_experiment
from fusion_bench.experiment.experiment import read_experiment
from fusion_bench.io.load_records import load_qrels

MARK, SEED, PEOPLE = "judge-sensitivity", 18, "people"
MEASURE = "nDCG@10"


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


def write_project(collection: str, grades: Qrels, folder: Path) -> Path:
    """Write dataset and experiment under the grades of a judge; the path of the experiment."""
    runs = Path(os.environ["FUSION_BENCH_PARITY_DATA"]) / collection / "runs"
    place = folder / "datasets" / collection
    place.mkdir(parents=True)
    names = SYSTEMS[collection]
    grades.to_trec(place / "qrels.txt")
    dataset = {
        "name": collection,
        "follow_links_to": [str(runs)],
        "qrels": "qrels.txt",
        "runs": {n: {"path": f"{n}.trec.gz", "on_duplicate": "best_rank"} for n in names},
    }
    for name in names:
        (place / f"{name}.trec.gz").symlink_to(runs / f"{name}.trec.gz")
    (place / "dataset.yaml").write_text(yaml.safe_dump(dataset, sort_keys=False), encoding="utf-8")
    systems = {name: {"runs": [name]} for name in names} | {"rrf": {"runs": list(names)}}
    experiment = {
        "dataset": collection,
        "measures": [MEASURE],
        "baseline": names[0],
        "systems": systems,
    }
    path = folder / "experiments" / "judges.yaml"
    path.parent.mkdir()
    path.write_text(yaml.safe_dump(experiment, sort_keys=False), encoding="utf-8")
    return path


def evaluate_judges(collection: str) -> dict[str, Collection]:
    """The results of one collection by judge, people's first."""
    found = {}
    for judge, grades in grade_collection(collection, SEED).items():
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            experiment, source = read_experiment(write_project(collection, grades, folder))
            report = run_experiment(
                experiment,
                source,
                folders=[folder / "datasets"],
                allowed=("unmatched", "suspect"),
            )
            found[judge] = report.collections[0]
    return found


def list_rows(judges: Mapping[str, Collection]) -> Iterator[str]:
    """A row a machine: its order and verdicts beside people's."""
    (_, people), *machines = judges.items()
    names = list(people.competitors)
    means, answers = _list_means(people, names), _list_answers(people)
    for machine, collection in machines:
        others = _list_means(collection, names)
        tau = stats.kendalltau(means, others).statistic
        swapped = [
            f"{names[a]} / {names[b]}" if means[a] > means[b] else f"{names[b]} / {names[a]}"
            for a, b in combinations(range(len(names)), 2)
            if (means[a] - means[b]) * (others[a] - others[b]) < 0
        ]
        flips = [
            f"{name}: {answers[name]} → {answer}"
            for name, answer in _list_answers(collection).items()
            if answer != answers[name]
        ]
        yield (
            f"| {collection.name} | {machine} | {tau:+.2f} | {', '.join(swapped) or 'none'} | "
            f"{'; '.join(flips) or 'none'} |"
        )


def _list_means(collection: Collection, names: list[str]) -> list[float]:
    """The means of the systems; those that agree to 12 decimal places tie."""
    means = (collection.system(name).measures[MEASURE].mean for name in names)
    return [round(mean or 0.0, 12) for mean in means]


def _list_answers(collection: Collection) -> dict[str, str | None]:
    """System → the verdict on it, but for the baseline."""
    compared = {name: collection.comparison(name, MEASURE) for name in collection.competitors}
    return {name: each.answer for name, each in compared.items() if each is not None}


def format_table(collections: list[dict[str, Collection]]) -> str:
    """As Markdown."""
    lines = [
        "| collection | machine | τ with people | swapped systems | verdicts that change |",
        "|:--|:--|--:|:--|:--|",
        *(row for each in collections for row in list_rows(each)),
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Compare the judges of each collection, and renew the table in docs/studies/judges.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dry-run", action="store_true", help="print only, write nothing")
    options = parser.parse_args()
    table = format_table([evaluate_judges(collection) for collection in SYSTEMS])
    print(table)
    if not options.dry_run:
        replace_between_marks(PAGE, table, mark=MARK)


if __name__ == "__main__":
    main()
