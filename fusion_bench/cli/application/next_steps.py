"""The commands that follow a command, ready to be copied."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from shlex import join
from typing import TYPE_CHECKING, Final

from fusion_bench.cli.application.commands import ExperimentOptions, NamedExperimentOptions
from fusion_bench.config.plugins import plugin_words
from fusion_bench.data.run import QUESTION
from fusion_bench.evaluation.recommendation import preferred_system
from fusion_bench.experiment.system import System
from fusion_bench.report.page import NextStep
from fusion_bench.util.files import baseline_path, resolve_path, show_path

if TYPE_CHECKING:
    from fusion_bench.evaluation.compared_reports import CollectionComparison
    from fusion_bench.evaluation.diagnosis import Diagnosis
    from fusion_bench.evaluation.explanation import Explanation
    from fusion_bench.evaluation.failures import FailureKind
    from fusion_bench.evaluation.report_file import Report
    from fusion_bench.evaluation.report_records import Collection
    from fusion_bench.evaluation.starter_systems import StarterSystems
    from fusion_bench.experiment.experiment import Experiment
    from fusion_bench.gate.inputs import GateInputs
    from fusion_bench.gate.result import GateVerdict
    from fusion_bench.report.tuning_records import TuningReport


#: Standard deviation of differences where none is known, as the help of ``power`` assumes it.
USUAL_SD: Final = 0.2
#: Commands that take ``--plugin``, among those that are proposed.
WITH_PLUGINS: Final = frozenset(
    {
        *("compare", "diagnose", "eval", "explain", "export", "fuse", "gate", "judge", "lint"),
        *("methods", "serve", "try", "tune"),
    }
)


def format_command(
    *words: object, datasets: Sequence[Path] = (), overrides: Sequence[str] = ()
) -> str:
    """A ``fusion-bench`` command, quoted for a shell.

    Args:
        words: The command and its arguments.
        datasets: Folders of named datasets.
        overrides: Values of the experiment that ``--set`` replaced.
    """
    options = list_words({"--datasets": datasets, "--set": overrides})
    options += plugin_words() if words and words[0] in WITH_PLUGINS else []
    return join(_show_word(word) for word in ("fusion-bench", *words, *options))


def _show_word(word: object) -> str:
    """A word; a path within the working directory names no folder of the machine, as pages do."""
    if isinstance(word, Path) and resolve_path(word).is_relative_to(resolve_path(Path())):
        return show_path(word)
    return str(word)


def list_words(options: Mapping[str, Sequence[object]]) -> list[object]:
    """The words of options: each value after its option."""
    return [word for name, values in options.items() for value in values for word in (name, value)]


def format_explain(*ids: str, of: NamedExperimentOptions, **names: str | None) -> str:
    """The command that explains a query, or a document of it.

    Args:
        ids: Of the query and the document. None that begins with ``-`` is read as an option.
        of: The experiment, folders of named datasets, and values of ``--set``.
        names: The system and the dataset; None = not named.
    """
    named = {f"--{option}": [name] for option, name in names.items() if name is not None}
    options = list_words({**named, "--datasets": of.datasets, "--set": of.overrides})
    if any(name.startswith("-") for name in ids):
        return format_command("explain", *options, "--", of.experiment, *ids)
    return format_command("explain", of.experiment, *ids, *options)


def after_eval(
    report: Report, parsed: Experiment, options: NamedExperimentOptions
) -> Iterator[NextStep]:
    """Explain the query that lost most, tune, and gate where the experiment says so."""
    experiment, collection = options.experiment, report.collections[0]
    to_command = partial(
        format_command, datasets=options.datasets, overrides=report.provenance.overrides
    )
    loss = find_worst_query(collection)
    if loss is not None:
        query, system = loss
        dataset = collection.name if len(report.collections) > 1 else None
        command = format_explain(query, of=options, system=system, dataset=dataset)
        yield NextStep(command, "biggest loss")
    if has_decided(report):
        yield next_judgments(experiment, to_command, *_decided_options(report, parsed))
    name = None if parsed.tune is None else parsed.tune.system
    if name is None:
        collections = report.collections
        preferred = [each.system(preferred_system(each)) for each in collections]
        rows = (*preferred, *(row for each in collections for row in each.ranked_systems))
        name = next((row.name for row in rows if len((row.config or {}).get("runs", ())) > 1), None)
    if name is not None and not (experiment.parent / "tuning.json").exists():
        system_option = () if parsed.tune is not None else ("--system", name)
        command = to_command("tune", experiment, *system_option)
        yield NextStep(command, f"tune {name}")
    if parsed.gate is not None:
        if baseline_path(experiment).exists():
            yield NextStep(to_command("gate", experiment), "check for regressions")
        else:
            words = ("gate", experiment, "--update", "--reason", "first baseline")
            yield NextStep(to_command(*words), "store a baseline, to check changes against")


def find_worst_query(collection: Collection) -> tuple[str, str] | None:
    """The query on which the best system loses most to the baseline, and this system.

    None where it loses on no query, or where there is no other system.
    """
    primary, baseline = collection.primary_measure, collection.baseline
    others = (row for row in collection.ranked_systems if row.name != baseline)
    preferred = preferred_system(collection)
    best = next(others, None) if preferred == baseline else collection.system(preferred)
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
    report: TuningReport, files: Sequence[Path], datasets: Sequence[Path]
) -> Iterator[NextStep]:
    """Evaluate what was written, and export what was shown to gain over everything untuned."""
    to_command = partial(format_command, datasets=datasets)
    purposes = {"front.yaml": "the efficient systems, quality against effort"}
    if not report.is_default_chosen and report.advice.kind != "use untuned":
        purposes["tuned.yaml"] = "the tuned system and the default on every measure"
    if report.verdict.startswith("too few"):
        spread = ("--sd", f"{report.held_out.sd or USUAL_SD:.2g}")
        command = format_command("power", *spread, "--query-count", report.held_out.queries)
        yield NextStep(command, "how many queries it takes to show a gain")
    for file in files:
        if file.name in purposes:
            yield NextStep(to_command("eval", file), purposes[file.name])
        if file.name == "tuned.yaml" and report.advice.kind == "judge first":
            yield next_judgments(file, to_command)
        if file.name == "tuned.yaml" and report.advice.kind == "use tuned":
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
    experiment: Path, to_command: Callable[..., str], *options: str, is_pool: bool = False
) -> NextStep:
    """Judge what could still change the answer, where unjudged documents decide.

    Args:
        experiment: Its file.
        to_command: Makes a command of its words.
        options: Which dataset and systems.
        is_pool: No two systems of the experiment are compared: judge what is returned.
    """
    from fusion_bench.report.data_warnings import JUDGING_BUDGET

    order = ("--order", "pool") if is_pool else ("--next", JUDGING_BUDGET)
    command = to_command("judge", experiment, *options, *order)
    return NextStep(command, "judge these first, as unjudged documents decide")


def after_try(
    report: Report, words: Sequence[object], saved: Path | None, starter: StarterSystems
) -> Iterator[NextStep]:
    """Go on with what was saved, or repeat the command with ``--save`` or ``--role``.

    Args:
        report: What was found.
        words: The command.
        saved: The folder that it wrote; None = none.
        starter: The systems that it compared.
    """
    from fusion_bench.experiment.experiment import EXPERIMENT_FILE

    if saved is None:
        yield NextStep(
            format_command(*words, "--save", "mine"), "write the files for eval, tune and gate"
        )
        if starter.lacks_question:
            command = format_command(*words, "--role", f"{next(iter(starter.systems))}={QUESTION}")
            purpose = "add RRF v2; name the list that was asked with the user's own question"
            yield NextStep(command, purpose)
        return
    experiment, system = saved / EXPERIMENT_FILE, preferred_system(report.collections[0])
    yield NextStep(format_command("eval", experiment), "every measure and every warning")
    if has_decided(report):
        yield next_judgments(experiment, format_command)
    yield NextStep(format_command("tune", experiment), "search better parameters")
    update = ("--update", "--reason", "first baseline")
    yield NextStep(format_command("gate", experiment, *update), f"guard {system} from now on")
    config = report.collections[0].system(system).config or {}
    yield from _export_system({**config, "name": system}, (experiment, "--system", system))


def _export_system(
    config: Mapping[str, object],
    words: Sequence[object],
    datasets: Sequence[Path] = (),
) -> Iterator[NextStep]:
    """Write a system for an engine; nothing where it fuses no lists, or no engine has its fusion.

    Args:
        config: The system with its name, every default spelled out.
        words: The experiment and further options.
        datasets: Folders of named datasets.
    """
    from fusion_bench.engines.export import suggest_engine

    engine = suggest_engine(System.model_validate(config))
    if engine is not None:
        command = format_command("export", *words, "--to", engine.name, datasets=datasets)
        yield NextStep(command, f"what to type into {engine.title}, or another engine")


def after_gate(
    verdict: GateVerdict, inputs: GateInputs, baseline: Path, options: NamedExperimentOptions
) -> Iterator[NextStep]:
    """Explain the query that lost most, and accept the candidate.

    Args:
        verdict: Of the gate.
        inputs: What it ran on.
        baseline: File of the baseline.
        options: Those of the command; a baseline is of the file alone, so values of ``--set``
            cannot be accepted.
    """
    from fusion_bench.gate.baseline_files import gate_command, update_command

    experiment, datasets, overrides = inputs.source.path, options.datasets, options.overrides
    if not verdict.is_reproduced and verdict.exit_code == 3 and not (verdict.base or overrides):
        command = f"{gate_command(experiment, baseline, datasets)} --base HEAD"
        yield NextStep(command, "trust the baseline if it is as committed; in CI name the branch")
    if verdict.regressions and verdict.exit_code:
        loss, names = verdict.regressions[0], inputs.experiment.dataset_names
        collections = list(dict.fromkeys(check.collection for check in verdict.checks))
        dataset = names[collections.index(loss.collection)] if len(names) > 1 else None
        command = format_explain(loss.query, of=options, dataset=dataset)
        yield NextStep(command, f"look closer: {loss.measure} of this query fell most")
    if any(check.status == "unjudged decide" for check in verdict.checks):
        to_command = partial(format_command, datasets=datasets, overrides=overrides)
        yield next_judgments(experiment, to_command, "--system", verdict.system, is_pool=True)
    changes = (verdict.list_changes, verdict.config_changes, verdict.policy_changes)
    has_changed = verdict.exit_code or any(changes)
    if has_changed and verdict.is_acceptable and not overrides:
        purpose = "make this the baseline"
        if verdict.exit_code:
            purpose = "accept these values, if the change is intended"
        if not baseline.exists():
            purpose = "store today's values, to check changes against"
        command = update_command(experiment, baseline, datasets, anchor=verdict.needs_anchor)
        yield NextStep(command, purpose)


def after_compare(
    qrels: Path, lists: Mapping[str, Path], options: Iterable[object]
) -> Iterator[NextStep]:
    """Fuse the lists that were compared.

    Args:
        qrels: File of judgments.
        lists: The files by their names.
        options: Measures and names of columns, as given; ``try`` takes the same.
    """
    if len(lists) > 1:
        named = (f"{name}={path}" for name, path in lists.items())
        command = format_command("try", "--qrels", qrels, *named, *options)
        yield NextStep(command, "fuse these lists, and see whether that pays")


def after_compare_reports(
    files: Sequence[Path],
    reports: Sequence[Report],
    comparison: CollectionComparison,
    *,
    has_summary: bool = False,
) -> Iterator[NextStep]:
    """Explain the query on which the best candidate loses most, and write a summary.

    Args:
        files: The one or two reports.
        reports: What they contain.
        comparison: Of their first collection.
        has_summary: Whether a summary was written.
    """
    primary = comparison.comparisons[0].measure
    rows = [row for row in comparison.comparisons if row.measure == primary]
    best = max(rows, key=lambda row: row.candidate_mean)
    candidate = best.candidate.removesuffix(" (second)") if len(files) > 1 else best.candidate
    sides = (reports[0], best.baseline), (reports[-1], candidate)
    before, after = (
        next(c for c in report.collections if c.name == comparison.collection)
        .system(name)
        .measures[primary]
        .values
        for report, name in sides
    )
    queries = next(c for c in reports[0].collections if c.name == comparison.collection).queries
    losses = list_losses(queries, before, after)
    new = reports[-1]
    name, path = new.provenance.source, Path(new.provenance.experiment_file)
    places = (path, Path("experiments", name), Path(new.name, name))
    experiment = next((place for place in places if place.is_file()), None)
    if losses and experiment is not None:
        overrides = tuple(reports[-1].provenance.overrides)
        command = format_explain(
            min(losses)[1],
            of=ExperimentOptions(experiment=experiment, overrides=overrides),
            system=candidate,
            dataset=comparison.collection if len(reports[-1].collections) > 1 else None,
        )
        yield NextStep(command, f"the query on which {candidate} loses most")
    if not has_summary:
        names = ("--baseline", best.baseline, "--candidate", candidate)
        command = format_command("compare", *files, *names, "--markdown", "comparison.md")
        yield NextStep(command, "this comparison as a summary of at most 40 lines")


def after_explain(
    explanation: Explanation, dataset: str | None, options: NamedExperimentOptions
) -> Iterator[NextStep]:
    """Every term of the first document."""
    if not explanation.traces:
        return
    document = explanation.traces[0].document
    words = (explanation.query, document)
    command = format_explain(*words, of=options, system=explanation.system, dataset=dataset)
    yield NextStep(command, f"every term of {document}")


def after_diagnose(
    diagnosis: Diagnosis,
    options: NamedExperimentOptions,
    dataset: str | None,
    listed: FailureKind | None,
) -> Iterator[NextStep]:
    """Explain the worst failure.

    Args:
        diagnosis: The failures.
        options: Those of the command.
        dataset: The first diagnosed dataset, as the experiment names it; None = it has one only.
        listed: The kind that was asked for; None = any.
    """
    from fusion_bench.evaluation.diagnosis import find_worst_failure

    worst = find_worst_failure(diagnosis.collections[0], listed)
    if worst is None:
        return
    kind, system, failure = worst
    # No list has a miss, so it has no score to explain.
    document = () if kind == "miss" else (failure.document,)
    command = format_explain(failure.query, *document, of=options, system=system, dataset=dataset)
    yield NextStep(command, f"the worst {kind} of {system}")
