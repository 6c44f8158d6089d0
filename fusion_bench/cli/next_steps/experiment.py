"""The commands that follow a command, ready to be copied."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from fusion_bench.cli.next_steps.command_words import format_command, format_explain
from fusion_bench.report.page import NextStep

if TYPE_CHECKING:
    from fusion_bench.evaluation.report_records.collection import Collection
    from fusion_bench.evaluation.report_records.report import Report
    from fusion_bench.experiment.experiment import Experiment
    from fusion_bench.gate.inputs import GateInputs
    from fusion_bench.gate.result import GateVerdict
    from fusion_bench.report.tuning_records.tuning_report import TuningReport


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
            command = format_explain(
                query,
                experiment=experiment,
                system=system,
                dataset=collection.name if len(report.collections) > 1 else None,
                datasets=datasets,
                overrides=overrides,
            )
            yield NextStep(command, f"the query on which {system} loses most")
    if has_decided(report):
        options = _decided_options(report, parsed)
        yield next_judgments(experiment, *options, datasets=datasets, overrides=overrides)
    name = _system_to_tune(report, parsed)
    if name is not None and not (experiment.parent / "tuning.json").exists():
        system_option = () if parsed.tune is not None else ("--system", name)
        command = to_command("tune", experiment, *system_option)
        yield NextStep(command, f"search better parameters of {name}")
    if parsed.gate is not None:
        yield _after_eval_gate(experiment, to_command)


def _after_eval_gate(experiment: Path, to_command: Callable[..., str]) -> NextStep:
    """Check against the stored baseline, or store one."""
    from fusion_bench.gate.baselines.storage import baseline_path

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
    losses = list_losses(collection.queries, before, after)
    return (min(losses)[1], best.name) if losses else None


def list_losses(
    queries: Sequence[str], before: Sequence[float | None], after: Sequence[float | None]
) -> list[tuple[float, str]]:
    """The difference and the id of each query whose value fell."""
    return [
        (new - old, query)
        for query, old, new in zip(queries, before, after, strict=True)
        if old is not None and new is not None and new < old
    ]


def after_tune(
    report: TuningReport, files: Sequence[Path], datasets: Sequence[Path] | None
) -> Iterator[NextStep]:
    """Evaluate what was written, and export what was shown to gain over everything untuned."""
    purposes = {"front.yaml": "the efficient systems, quality against effort"}
    if not report.is_default_chosen and report.untuned_match is None:
        purposes["tuned.yaml"] = "the tuned system and the default on every measure"
    for file in files:
        if file.name in purposes:
            command = format_command("eval", file, datasets=datasets)
            yield NextStep(command, purposes[file.name])
        if file.name == "tuned.yaml" and report.verdict == "unjudged decide":
            yield next_judgments(file, datasets=datasets)
        if file.name == "tuned.yaml" and file.name in purposes and report.verdict == "ship":
            config = report.choice.config
            yield from _export_system({**config, "name": report.system}, (file,), datasets)


def has_decided(report: Report) -> bool:
    """Whether unjudged documents decide an answer."""
    return any(
        comparison.answer == "unjudged decide"
        for collection in report.collections
        for comparison in collection.comparisons
    )


def _decided_options(report: Report, parsed: Experiment) -> Iterator[str]:
    """The first comparison that unjudged documents decide, as options of ``judge``."""
    names = parsed.dataset_names
    for name, collection in zip(names, report.collections, strict=True):
        for comparison in collection.comparisons:
            if comparison.answer == "unjudged decide":
                yield from ("--dataset", name) if len(names) > 1 else ()
                yield from ("--candidate", comparison.candidate)
                return


def next_judgments(
    experiment: Path,
    *options: str,
    datasets: Sequence[Path] | None,
    overrides: Sequence[str] = (),
    is_pool: bool = False,
) -> NextStep:
    """Judge what could still change the answer, where unjudged documents decide.

    Args:
        experiment: Its file.
        options: Which dataset and systems.
        datasets: Folders of named datasets.
        overrides: Values of ``--set``.
        is_pool: No two systems of the experiment are compared: judge what is returned.
    """
    from fusion_bench.report.judging.judge_line import BUDGET

    order = ("--order", "pool") if is_pool else ("--next", BUDGET)
    words = ("judge", experiment, *options, *order)
    command = format_command(*words, datasets=datasets, overrides=overrides)
    return NextStep(command, "judge these first, as unjudged documents decide")


def after_update(
    experiment: Path, baseline: Path, datasets: Sequence[Path] | None
) -> Iterator[NextStep]:
    """Check later changes against a written baseline."""
    from fusion_bench.gate.baselines.storage import baseline_path

    options = () if baseline == baseline_path(experiment) else ("--baseline", baseline)
    command = format_command("gate", experiment, *options, datasets=datasets)
    yield NextStep(command, "check later changes against it")


def after_try(report: Report, words: Sequence[object], saved: Path | None) -> Iterator[NextStep]:
    """Go on with what was saved, or the same command with ``--save``.

    Args:
        report: What was found.
        words: The command.
        saved: The folder that it wrote; None = none.
    """
    from fusion_bench.evaluation.starter.saved_files import EXPERIMENT_FILE

    if saved is None:
        yield NextStep(
            format_command(*words, "--save", "mine"), "write the files for eval, tune and gate"
        )
        return
    experiment, system = saved / EXPERIMENT_FILE, report.collections[0].best_system
    yield NextStep(format_command("eval", experiment), "every measure and every warning")
    if has_decided(report):
        yield next_judgments(experiment, datasets=None)
    yield NextStep(format_command("tune", experiment), "search better parameters")
    update = ("--update", "--reason", "first baseline")
    yield NextStep(format_command("gate", experiment, *update), f"guard {system} from now on")
    config = report.collections[0].system(system).config or {}
    yield from _export_system({**config, "name": system}, (experiment, "--system", system))


def _export_system(
    config: Mapping[str, object],
    words: Sequence[object],
    datasets: Sequence[Path] | None = None,
) -> Iterator[NextStep]:
    """Write a system for an engine; nothing where it fuses no lists, or no engine has its fusion.

    Args:
        config: The system with its name, every default spelled out.
        words: The experiment and further options.
        datasets: Folders of named datasets.
    """
    from fusion_bench.experiment.system import System
    from fusion_bench.export.translate import suggest_engine

    engine = suggest_engine(System.model_validate(config))
    if engine is not None:
        command = format_command("export", *words, "--to", engine.name, datasets=datasets)
        yield NextStep(command, f"what to type into {engine.title}, or another engine")


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
    from fusion_bench.gate.baselines.storage import gate_command, update_command

    experiment = inputs.source.path
    if not verdict.is_reproduced and verdict.exit_code == 3 and not (verdict.base or overrides):
        command = f"{gate_command(experiment, baseline, datasets or ())} --base HEAD"
        yield NextStep(command, "trust the baseline if it is as committed; in CI name the branch")
    if verdict.regressions and verdict.exit_code:
        loss, names = verdict.regressions[0], inputs.experiment.dataset_names
        collections = list(dict.fromkeys(check.collection for check in verdict.checks))
        command = format_explain(
            loss.query,
            experiment=experiment,
            dataset=names[collections.index(loss.collection)] if len(names) > 1 else None,
            datasets=datasets,
            overrides=overrides,
        )
        yield NextStep(command, f"look closer: {loss.measure} of this query fell most")
    if any(check.status == "unjudged decide" for check in verdict.checks):
        options = ("--system", verdict.system)
        yield next_judgments(
            experiment, *options, datasets=datasets, overrides=overrides, is_pool=True
        )
    changes = (verdict.list_changes, verdict.config_changes, verdict.policy_changes)
    has_changed = verdict.exit_code or any(changes)
    if has_changed and verdict.is_acceptable and not overrides:
        purpose = "make this the baseline"
        if verdict.exit_code:
            purpose = "accept these values, if the change is intended"
        if not baseline.exists():
            purpose = "store today's values, to check changes against"
        command = update_command(experiment, baseline, datasets or (), anchor=verdict.needs_anchor)
        yield NextStep(command, purpose)
