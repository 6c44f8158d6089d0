"""The tables of docs/studies/referee.md, from ``experiments/referee.yaml``.

    python -m benchmarks.studies.referee --write

The tuned numbers behind the last table cost some minutes.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.studies.leaderboard.methods import ROOT
from benchmarks.studies.study import parse_options
from benchmarks.table import replace_between_marks
from fusion_bench.evaluation.diagnosis import FailureCount, diagnose_experiment
from fusion_bench.evaluation.report_records import Collection
from fusion_bench.evaluation.run_experiment import run_experiment
from fusion_bench.experiment.experiment import read_experiment
from fusion_bench.report.tuning_records import ThresholdReport, ThresholdRule, TuningReport
from fusion_bench.util.formatting import format_interval, format_number, format_p_value

PAGE = ROOT / "docs" / "studies" / "referee.md"
EXPERIMENT = ROOT / "experiments" / "referee.yaml"
DATASET = ROOT / "datasets" / "referee" / "dataset.yaml"
#: Rows of the first table: system → what it is.
WEIGHTS: Mapping[str, str] = {
    "rrf": "`rrf`: six sources, weights 1",
    "question x2": "`question x2`",
    "bonus": "`bonus`: +.05 at rank 1, +.02 at ranks 2–3",
    "rrf-v2": "`rrf-v2`: both",
    "rrf without hyde": "`rrf without hyde`",
    "question x2 without hyde": "`question x2 without hyde`",
    "convex": "`convex`: min-max scores, weights 1",
}
#: Rows of the second table.
TYPES: Mapping[str, str] = {
    "as hybrid": "`as hybrid`: .33 / .34 / .33 for all",
    "as untyped": "`as untyped`: .35 / .35 / .30 for all",
    "by type": "`by type`: CONV-03-05's table, types known",
}


def compare_systems(
    baseline: str, names: Sequence[str] = (), overrides: Sequence[str] = ()
) -> Collection:
    """The systems of the experiment, or those of these names, against one of them."""
    experiment, source = read_experiment(EXPERIMENT, overrides=[f"baseline={baseline}", *overrides])
    if names:
        systems = {name: experiment.systems[name] for name in names}
        experiment = experiment.model_copy(update={"systems": systems, "crag": None})
    report = run_experiment(experiment, source, folders=[ROOT / "datasets"], cache=False)
    return report.collections[0]


def count_dilutions() -> list[tuple[str, FailureCount]]:
    """Each system of the first table, and what is diluted in it."""
    experiment, source = read_experiment(EXPERIMENT)
    diagnosis = diagnose_experiment(
        experiment, source, folders=[ROOT / "datasets"], systems=[*WEIGHTS][1:]
    )
    return [(each.name, each.count("dilution")) for each in diagnosis.collections[0].systems]


def format_dilutions(counts: Sequence[tuple[str, FailureCount]]) -> str:
    """What each system cures and causes, with the difference a question."""
    lines = ["| system | dilutions | cured | caused | difference a question |"]
    lines.append("|:--|--:|--:|--:|--:|")
    for name, count in counts:
        if (change := count.change) is None:
            lines.append(f"| `{name}` | {count.failures} of {count.exposed} |  |  |  |")
            continue
        difference = _format_change(change.difference, change.low, change.high)
        cells = (count.failures, change.cures, change.causes, difference)
        lines.append(f"| `{name}` | {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def format_comparisons(
    collection: Collection, labels: Mapping[str, str], dilutions: Mapping[str, str]
) -> str:
    """One row a system, against the collection's baseline."""
    measure = collection.primary_measure
    heads = ["system", measure, f"− `{collection.baseline}`", "adjusted p", "answer", "detectable"]
    heads += ["dilutions"] if dilutions else []
    lines = [f"| {' | '.join(heads)} |", f"|:--|{'--:|' * (len(heads) - 1)}"]
    for name, label in labels.items():
        mean = _format(collection.system(name).measures[measure].mean)
        cells = [label, mean, *_format_comparison(collection, name)]
        cells += [dilutions[name]] if dilutions else []
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _format_comparison(collection: Collection, name: str) -> list[str]:
    result = collection.comparison(name, collection.primary_measure)
    if result is None:
        return [""] * 4
    interval = format_interval(result.low, result.high, signed=True).replace("0.", ".")
    difference = f"{_format(result.difference, signed=True)} {interval}"
    p = format_p_value(result.p, alpha=0.05)
    detectable = _format(result.min_detectable_difference)
    return [difference.replace("-", "−"), p, str(result.answer), detectable]


def _count_changed(collection: Collection, name: str) -> int:
    """Queries on which a system and the baseline differ."""
    result = collection.comparison(name, collection.primary_measure)
    return 0 if result is None else result.wins + result.losses


def _format(value: float | None, *, signed: bool = False) -> str:
    """A number without its leading 0."""
    return format_number(value, signed=signed).replace("0.", ".", 1)


def run_tuning(trials: int) -> TuningReport:
    """What the command says at the first look, in a copy of the project; 0 = as the experiment."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        skip = shutil.ignore_patterns("looks.jsonl")
        shutil.copytree(DATASET.parent, root / "datasets" / "referee", ignore=skip)
        experiment = shutil.copy(EXPERIMENT, root)
        command = [sys.executable, "-m", "fusion_bench", "tune", str(experiment), "--out", folder]
        command += ["--set", f"tune.trials={trials}"] if trials else []
        subprocess.run(command, cwd=root, check=True, capture_output=True)  # noqa: S603 - ours
        return TuningReport.model_validate_json((root / "tuning.json").read_bytes())


def format_tuned(report: TuningReport) -> str:
    """The tuned numbers against the default and the best untuned system, and the front."""
    gain, front = report.held_out, report.front
    match = next((row for row in report.floor if row.name == report.advice.name), None)
    lines = ["| held out | nDCG@10 | difference |", "|:--|--:|--:|"]
    change = _format_change(gain.difference, gain.low, gain.high)
    p = format_p_value(gain.p, alpha=0.05)
    lines.append(f"| tuned − default | {_format(gain.tuned)} | {change}, p {p} |")
    if match is not None:
        change = _format_change(match.difference, match.low, match.high)
        lines.append(f"| `{match.name}`, not tuned, − tuned | {_format(match.mean)} | {change} |")
    if front is not None:
        least = min(front.points, key=lambda point: (not point.efficient, point.depth))
        over = least.over_best
        change = _format_change(over.mean, over.low, over.high)
        name = f"depth {least.depth} − depth {front.best.depth}"
        lines.append(f"| efficient points: {name} | {_format(least.held_out)} | {change} |")
    verdict = (
        f"Verdict against the default: `{report.verdict}`. Recommendation: {report.advice.sentence}"
    )
    return "\n".join([*lines, "", verdict])


def _format_change(mean: float, low: float | None, high: float | None) -> str:
    interval = format_interval(low, high, signed=True).replace("0.", ".")
    return f"{_format(mean, signed=True)} {interval}".replace("-", "−")


def format_thresholds(report: ThresholdReport) -> str:
    """The default and the fitted thresholds, and no threshold."""
    lines = ["| rule | `correct` | `ambiguous` | `incorrect` | utility |", "|:--|--:|--:|--:|--:|"]
    rules = {"default": report.default, "fitted on dev": report.tuned}
    for name, rule in rules.items():
        lines.append(f"| {' | '.join((_name_rule(rule, name), *_format_rule(rule)))} |")
    counts = (report.default.correct, report.default.ambiguous, report.default.incorrect)
    relevant, total = sum(each[0] for each in counts), sum(map(sum, counts))
    answered = f"{total}, {relevant} with a relevant passage"
    lines.append(f"| none: always answer | {answered} |  |  | {_format(relevant / total)} |")
    gain = report.gain
    interval = format_interval(gain.low, gain.high, signed=True)
    change = f"{format_number(gain.difference, signed=True)} {interval}"
    return "\n".join([*lines, "", f"Fitted − default: {change}, verdict `{report.verdict}`."])


def _name_rule(rule: ThresholdRule, name: str) -> str:
    return f"{rule.upper:.2g} / {rule.lower:.2g} ({name})"


def _format_rule(rule: ThresholdRule) -> Iterator[str]:
    """Queries of each verdict, of these with a relevant document, and the utility."""
    for relevant, others in (rule.correct, rule.ambiguous, rule.incorrect):
        yield f"{relevant + others}, {relevant} with a relevant passage"
    yield _format(rule.utility)


def make_quick_tables() -> Iterator[tuple[str, str]]:
    """What takes some seconds, each table after its mark."""
    types = compare_systems("as hybrid")
    changed = f"{_count_changed(types, 'by type')} of {len(types.queries)} questions"
    yield "types", f"{format_comparisons(types, TYPES, {})}\n\n`by type` changes {changed}."
    english = compare_systems("rrf", overrides=["where={language: en}"])
    rows = {
        "rrf": f"`rrf`, {len(english.queries)} English questions",
        "question x2": "`question x2`",
    }
    yield "english", format_comparisons(english, rows, {})
    counts = count_dilutions()
    dilutions = {
        name: f"{each.failures} of {each.exposed}" if name == "rrf" else f"{each.failures}"
        for name, each in counts
    }
    yield "weights", format_comparisons(compare_systems("rrf"), WEIGHTS, dilutions)
    yield "dilutions", format_dilutions(counts)


def make_tables(trials: int) -> Iterator[tuple[str, str]]:
    """Each table after its mark."""
    yield from make_quick_tables()
    report = run_tuning(trials)
    yield "thresholds", format_thresholds(next(t for t in report.thresholds if t.kind == "system"))
    yield "tuned", format_tuned(report)


def make_toy_tables() -> Iterator[tuple[str, str]]:
    """The first rows of the first table."""
    rows = dict([*WEIGHTS.items()][:2])
    yield "weights", format_comparisons(compare_systems("rrf", [*rows]), rows, {})


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables, and write them where asked."""
    options = parse_options(arguments, __doc__, {"trials": 0}, {"trials": 0})
    for mark, table in make_toy_tables() if options.toy else make_tables(options.trials):
        print(f"{table}\n", flush=True)
        if options.write:
            replace_between_marks(PAGE, f"\n{table}\n\n", mark)


if __name__ == "__main__":
    main()
