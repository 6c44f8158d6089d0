"""The commands that follow a command, ready to be copied."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from shlex import join, quote
from typing import TYPE_CHECKING

from fusion_bench.report.page import NextStep

if TYPE_CHECKING:
    from fusion_bench.evaluation.report_records.collection import Collection
    from fusion_bench.evaluation.report_records.report import Report
    from fusion_bench.experiment.experiment import Experiment
    from fusion_bench.explain.score_trace import Explanation
    from fusion_bench.gate.inputs import GateInputs
    from fusion_bench.gate.result import GateVerdict
    from fusion_bench.report.tuning_records.tuning_report import TuningReport


def format_command(
    *words: object, datasets: Sequence[Path] | None = None, overrides: Sequence[str] | None = None
) -> str:
    """A ``fusion-bench`` command, quoted for a shell.

    Args:
        words: The command and its arguments.
        datasets: Folders of named datasets.
        overrides: Values of the experiment that ``--set`` replaced.
    """
    options = (("--datasets", datasets), ("--set", overrides))
    given = (
        word for option, values in options for value in values or () for word in (option, value)
    )
    return join(str(word) for word in ("fusion-bench", *words, *given))


def after_eval(
    report: Report, experiment: Path, parsed: Experiment, datasets: Sequence[Path] | None
) -> Iterator[NextStep]:
    """Explain the query that lost most, tune, and gate where the experiment says so."""
    overrides = report.provenance.overrides
    to_command = partial(format_command, datasets=datasets, overrides=overrides)
    for collection in report.collections[:1]:
        loss = find_worst_query(collection)
        if loss is not None:
            query, system = loss
            one_of = ("--dataset", collection.name) if len(report.collections) > 1 else ()
            words = ("explain", query, "--experiment", experiment, "--system", system, *one_of)
            purpose = f"the query on which {system} loses most"
            yield NextStep(to_command(*words), purpose)
    name = _system_to_tune(report, parsed)
    if name is not None and not (experiment.parent / "tuning.json").exists():
        system_option = () if parsed.tune is not None else ("--system", name)
        command = to_command("tune", experiment, *system_option)
        yield NextStep(command, f"search better parameters of {name}")
    if parsed.gate is not None:
        yield _after_eval_gate(experiment, to_command)


def _after_eval_gate(experiment: Path, to_command: Callable[..., str]) -> NextStep:
    """Check against the stored baseline, or store one."""
    from fusion_bench.gate.baseline import baseline_path

    if baseline_path(experiment).exists():
        purpose = "check for regressions against the stored baseline"
        return NextStep(to_command("gate", experiment), purpose)
    words = ("gate", experiment, "--update", "--reason", "first baseline")
    return NextStep(to_command(*words), "store a baseline, to check changes against")


def _system_to_tune(report: Report, parsed: Experiment) -> str | None:
    """The system that the experiment tunes, or its best fusion; None where there is none."""
    if parsed.tune is not None:
        return parsed.tune.system
    rows = (row for collection in report.collections for row in collection.ranked_systems)
    return next((row.name for row in rows if len((row.config or {}).get("runs", ())) > 1), None)


def find_worst_query(collection: Collection) -> tuple[str, str] | None:
    """The query on which the best system loses most to the baseline, and this system.

    None where it loses on no query, or where there is no other system.
    """
    primary, baseline = collection.primary_measure, collection.baseline
    best = next((row for row in collection.ranked_systems if row.name != baseline), None)
    if best is None:
        return None
    before = collection.system(baseline).measures[primary].values
    after = best.measures[primary].values
    losses = [
        (new - old, query)
        for query, old, new in zip(collection.queries, before, after, strict=True)
        if old is not None and new is not None and new < old
    ]
    return (min(losses)[1], best.name) if losses else None


def after_tune(
    report: TuningReport, files: Sequence[Path], datasets: Sequence[Path] | None
) -> Iterator[NextStep]:
    """Evaluate what was written, where it is not the default alone."""
    purposes = {"front.yaml": "the efficient systems, quality against effort"}
    if not report.is_default_chosen:
        purposes["tuned.yaml"] = "the tuned system and the default on every measure"
    for file in files:
        if file.name in purposes:
            command = format_command("eval", file, datasets=datasets)
            yield NextStep(command, purposes[file.name])


def after_compare(qrels: Path, lists: Mapping[str, Path]) -> Iterator[NextStep]:
    """Fuse the lists that were compared, by their names."""
    if len(lists) > 1:
        named = (f"{name}={path}" for name, path in lists.items())
        command = format_command("try", "--qrels", qrels, *named)
        yield NextStep(command, "fuse these lists, and see whether that pays")


def after_try(report: Report, words: Sequence[object], saved: Path | None) -> Iterator[NextStep]:
    """Go on with what was saved, or the same command with ``--save``.

    Args:
        report: What was found.
        words: The command.
        saved: The folder that it wrote; None = none.
    """
    from fusion_bench.evaluation.starter.saved_files import EXPERIMENT_FILE, best_system

    if saved is None:
        yield NextStep(
            format_command(*words, "--save", "mine"), "write the files for eval, tune and gate"
        )
        return
    experiment, system = saved / EXPERIMENT_FILE, best_system(report.collections[0])
    yield NextStep(format_command("eval", experiment), "every measure and every warning")
    yield NextStep(format_command("tune", experiment), "search better parameters")
    update = ("--update", "--reason", "first baseline")
    yield NextStep(format_command("gate", experiment, *update), f"guard {system} from now on")


def after_gate(
    verdict: GateVerdict,
    inputs: GateInputs,
    baseline: Path,
    datasets: Sequence[Path] | None,
    overrides: Sequence[str],
) -> Iterator[NextStep]:
    """Explain the query that lost most, and accept the candidate.

    Args:
        verdict: Of the gate.
        inputs: What it ran on.
        baseline: File of the baseline.
        datasets: Folders of named datasets, as given.
        overrides: Values of ``--set``; a baseline is of the file alone, so they cannot be accepted.
    """
    from fusion_bench.gate.baseline import update_command

    experiment = inputs.source.path
    if verdict.regressions and verdict.exit_code:
        loss, names = verdict.regressions[0], inputs.experiment.dataset_names
        collections = list(dict.fromkeys(check.collection for check in verdict.checks))
        words: list[object] = ["explain", loss.query, "--experiment", experiment]
        if len(names) > 1:
            words += ["--dataset", names[collections.index(loss.collection)]]
        words += [word for override in overrides for word in ("--set", override)]
        words += [word for folder in datasets or () for word in ("--datasets", folder)]
        if loss.query.startswith("-"):
            words = [words[0], *words[2:], "--", loss.query]
        yield NextStep(
            format_command(*words), f"look closer: {loss.measure} of this query fell most"
        )
    changes = (verdict.list_changes, verdict.config_changes, verdict.policy_changes)
    if not overrides and (verdict.exit_code or any(changes)):
        folders = "".join(f" --datasets {quote(str(folder))}" for folder in datasets or ())
        purpose = "make this the baseline"
        if verdict.exit_code:
            purpose = "accept these values, if the change is intended"
        if not baseline.exists():
            purpose = "store today's values, to check changes against"
        yield NextStep(update_command(experiment, baseline) + folders, purpose)


def after_explain(
    explanation: Explanation,
    experiment: Path,
    dataset: str | None,
    datasets: Sequence[Path] | None,
    overrides: Sequence[str] | None,
) -> Iterator[NextStep]:
    """Every term of the first document."""
    if not explanation.traces:
        return
    document, one_of = explanation.traces[0].document, ("--dataset", dataset) if dataset else ()
    words = ("explain", explanation.query, document, "--experiment", experiment)
    command = format_command(
        *(*words, "--system", explanation.system, *one_of), datasets=datasets, overrides=overrides
    )
    yield NextStep(command, f"every term of {document}")
