"""What docs/reference/queries.md shows: what types, given or predicted by the rules, are worth.

    python -m benchmarks.studies.classify_table --write

The row of tuned numbers costs a minute.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import yaml

from benchmarks.studies.leaderboard.methods import ROOT
from benchmarks.studies.study import parse_options
from benchmarks.table import replace_between_marks
from fusion_bench.evaluation.report_file import Report
from fusion_bench.io.json_objects import read_objects
from fusion_bench.models.query_types import RuleClassifier, classify_file
from fusion_bench.report.tuning_records import TuningReport
from fusion_bench.stats.agreement import kappa_of_counts, make_weights
from fusion_bench.util.formatting import format_interval, format_number
from fusion_bench.util.json_text import encode_json_lines

PAGE = ROOT / "docs" / "reference" / "queries.md"
RUNS = ["question", "bm25", "graph"]
PUBLISHED = {"method": "rrf", "weights": {"by_query_type": "conv-03-05"}}
SYSTEMS = {
    "hybrid for all": {"runs": RUNS, "fusion": PUBLISHED, "types": "hybrid"},
    "given types": {"runs": RUNS, "fusion": PUBLISHED},
    "predicted types": {"runs": RUNS, "fusion": PUBLISHED, "types": "predicted"},
}
#: What is tuned by type: the name of its types, and the system.
TUNED = {
    "given types": {"runs": RUNS, "fusion": "rrf"},
    "predicted types": {"runs": RUNS, "fusion": "rrf", "types": "predicted"},
}


def make_project(root: Path) -> None:
    """A copy of ``referee`` whose queries have predicted types."""
    folder = root / "typed"
    shutil.copytree(
        ROOT / "datasets" / "referee", folder, ignore=shutil.ignore_patterns("looks.jsonl")
    )
    run(root, "classify", "typed/queries.jsonl", "--out", "typed/predicted.jsonl")
    spec = folder / "dataset.yaml"
    text = spec.read_text(encoding="utf-8")
    text = text.replace("queries: queries.jsonl", "queries: predicted.jsonl")
    spec.write_text(text, encoding="utf-8")


def run(root: Path, *words: str) -> None:
    """Run the command in a project."""
    command = [sys.executable, "-m", "fusion_bench", *words]
    subprocess.run(command, cwd=root, check=True, capture_output=True)  # noqa: S603 - ours


def run_experiment(root: Path, command: str, systems: object, **keys: object) -> Path:
    """Run ``eval`` or ``tune`` on an experiment; the folder of its output."""
    data = {"dataset": "typed/dataset.yaml", "split": "test", "measures": ["nDCG@10"], **keys}
    data["systems"] = systems
    (root / "experiment.yaml").write_text(yaml.safe_dump(data), encoding="utf-8")
    out = root / command
    run(root, command, "experiment.yaml", "--out", str(out))
    return out


def format_published(root: Path) -> Iterator[str]:
    """The row of the published weights, and what it could have detected."""
    out = run_experiment(root, "eval", SYSTEMS, baseline="hybrid for all")
    report = Report.model_validate_json((out / "report.json").read_bytes())
    [collection] = report.collections
    found = [collection.comparison(name, "nDCG@10") for name in [*SYSTEMS][1:]]
    rows = [each for each in found if each is not None]
    baseline = collection.system("hybrid for all").measures["nDCG@10"].mean
    cells = [_format(each.difference, each.low, each.high) for each in rows]
    label = f"the published weights, less `hybrid`'s for all ({_short(baseline)})"
    yield f"| {label} | {' | '.join(cells)} |"
    smallest = (_short(each.min_detectable_difference) for each in rows)
    yield f"| minimum detectable difference of that row (80 % power) | {' | '.join(smallest)} |"


def format_tuned(root: Path, trials: int) -> str:
    """The row of numbers tuned by type."""
    cells, base = [], 0.0
    for name, system in TUNED.items():
        tune = {"system": name, "by_query_type": True, "trials": trials, "folds": 0}
        out = run_experiment(root, "tune", {name: system}, baseline=name, tune=tune)
        report = TuningReport.model_validate_json((out / "tuning.json").read_bytes())
        if report.per_type is None:
            raise SystemExit(f"{name}: nothing was tuned by type")
        gain = report.per_type.over_global
        cells.append(_format(gain.difference, gain.low, gain.high))
        base = gain.default
        shutil.rmtree(out)
        (root / "typed" / "looks.jsonl").unlink(missing_ok=True)
    label = f"weights and k tuned by type on dev, less one set for all ({_short(base)})"
    return f"| {label} | {' | '.join(cells)} |"


def _short(value: float | None, *, signed: bool = False) -> str:
    return format_number(value, signed=signed).replace("0.", ".", 1).replace("-", "−")


def _format(mean: float, low: float | None, high: float | None) -> str:
    interval = format_interval(low, high, signed=True).replace("0.", ".").replace("-", "−")
    return f"{_short(mean, signed=True)} {interval}"


def format_agreement(root: Path) -> str:
    """How often the rules predict the given types of the test queries."""
    queries = [row for _, row in read_objects(root / "typed" / "queries.jsonl")]
    path = root / "test.jsonl"
    path.write_bytes(encode_json_lines(row for row in queries if row["split"] == "test"))
    found = classify_file(path, RuleClassifier(), root / "predicted.jsonl")
    counts = np.array([[*row.values()] for row in found.confusion.values()])
    weights = make_weights(tuple(range(len(counts))), "none")
    kappa = f"{kappa_of_counts(counts, weights):.2f}".replace("0.", ".", 1)
    same = counts.trace() / counts.sum()
    hybrid = sum(found.confusion["hybrid"].values()) / counts.sum()
    return (
        f"The rules agree with the given types of {100 * same:.0f} % of these queries "
        f"(Cohen's κ {kappa});\nalways saying `hybrid` agrees with {100 * hybrid:.0f} %."
    )


def make_tables(trials: int) -> dict[str, str]:
    """What stands behind each mark; without tuned numbers where there are no trials."""
    lines = ["| parameters by type | given types | predicted by the rules |", "|:--|--:|--:|"]
    with tempfile.TemporaryDirectory() as folder:
        make_project(Path(folder))
        lines += format_published(Path(folder))
        lines += [format_tuned(Path(folder), trials)] if trials else []
        return {"types": "\n".join(lines), "agreement": format_agreement(Path(folder))}


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table and the agreement, and write them where asked."""
    options = parse_options(arguments, __doc__, {"trials": 150}, {"trials": 0})
    for mark, text in make_tables(options.trials).items():
        print(f"{text}\n")
        if options.write:
            replace_between_marks(PAGE, f"\n{text}\n\n", mark)


if __name__ == "__main__":
    main()
