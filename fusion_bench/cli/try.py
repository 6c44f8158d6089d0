"""Compare the usual fusions of your own lists in one command, without YAML."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import fusion_bench.cli.application.commands as base
from fusion_bench.cli.application import console, file_options
from fusion_bench.cli.application.next_steps import after_try, format_command
from fusion_bench.config.models import parse_model
from fusion_bench.config.options import (
    Argument,
    CheckOptions,
    Folder,
    Name,
    PaperOptions,
    PictureOptions,
)
from fusion_bench.experiment import DEFAULT_MEASURES
from fusion_bench.io.outputs import refuse_inputs
from fusion_bench.measures.aliases import list_renamed
from fusion_bench.util.files import require_folder, resolve_path

if TYPE_CHECKING:
    from fusion_bench.evaluation.starter import StarterComparison
    from fusion_bench.util.formatting import Progress

    #: Writes what was compared, or None, into a folder.
    Save = Callable[[StarterComparison | None, Path], list[Path]]
    Compare = Callable[[Progress], tuple[StarterComparison | None, Save]]


class TryOptions(
    file_options.ListOptions,
    file_options.ColumnOptions,
    CheckOptions,
    PaperOptions,
    PictureOptions,
    base.PluginOptions,
    base.PageOptions,
):
    """Options of ``try``.

    Attributes:
        lists: A ranked list and its name; two or more.
        qrels: Judgments file, needed with lists.
        dataset: Take lists and judgments of this dataset: its name, folder or dataset.yaml.
        engine: Only systems that this search engine can express, such as elasticsearch.
        save: Write dataset.yaml, experiment.yaml and copies of the lists for eval, tune and gate;
            with --dataset the experiment alone.
        out: Folder of report and picture.
    """

    lists: Annotated[Sequence[str], Argument("NAME=FILE")] = ()
    dataset: Name | None = None
    engine: Name | None = None
    save: Folder | None = None
    out: Folder = Path("reports/try")


@base.single_command()
def command(options: TryOptions) -> None:
    """Compare the usual fusions of your own lists in one command, without YAML.

    Compares each list alone, RRF v1 and v2, weighted scores (raw, min-max), z-scores and the
    fusions of --plugin, all against RRF v1. With a reranker, also its order alone and its blends
    with each fusion: linear .7 and bands 75/60/40. RRF v2 needs a list with the role question: one
    named question, query or original, or the list of --role. Nothing is tuned.

    Examples:
        fusion-bench try --qrels judged.csv bm25=a.jsonl dense=b.jsonl
        fusion-bench try --qrels judged.csv bm25=a.jsonl dense=b.jsonl --rerank cohere=c.jsonl
        fusion-bench try --qrels judged.csv bm25=a.jsonl dense=b.jsonl --role dense=question
        fusion-bench try --qrels judged.csv bm25=a.jsonl dense=b.jsonl --save mine
        fusion-bench try --qrels judged.csv bm25=a.jsonl dense=b.jsonl --plugin own.py
        fusion-bench try --qrels judged.csv bm25=a.jsonl dense=b.jsonl --engine opensearch
        fusion-bench try --qrels sheet.csv --qrels-columns query='search term' a.jsonl b.jsonl
        fusion-bench try --dataset datasets/pulled --save mine
    """
    from fusion_bench.checks.lint import describe_dataset, lint_experiment
    from fusion_bench.cli.application.progress import progress_bar
    from fusion_bench.experiment.experiment import Experiment
    from fusion_bench.report.write import write_report

    console.check_paper_options(options, options.measure or DEFAULT_MEASURES)
    compare = _plan_files(options) if options.dataset is None else _plan_dataset(options)
    _check_folders(options.save, options.out)
    with progress_bar() as progress:
        compared, save = compare(progress)
        if compared is None:
            _print_unjudged(options, save)
            return
        experiment = parse_model(Experiment, compared.source.data).apply_switch()
        facts = [describe_dataset(compared.dataset)]
        findings = lint_experiment(experiment, compared.source, facts)
        done = compared._replace(report=compared.report.model_copy(update={"lint": findings}))
        progress("writing the report", 1, 1)
        from fusion_bench.report.evaluation_page import build_starter_page

        repeated = ("queries", "rerank", "measure", "binary_relevance", *file_options.FILES)
        files: list[object] = ["--dataset", options.dataset]
        if options.dataset is None:
            files = ["--qrels", options.qrels, *options.lists]
        words = ["try", *files, *options.words(*repeated, "engine", "role")]
        steps = tuple(after_try(done.report, words, options.save, done.starter))
        page = replace(build_starter_page(done.report, done.notes), next_steps=steps)
        written = write_report(
            *(done.report, options.out, options),
            max_figures=1,
            next_steps=page.next_steps,
            tables=console.paper_files(options, "report", done.report),
        )
        if options.save is not None:
            written += save(done, options.save)
    verdict = page.headline and page.headline.text
    record = {"verdict": verdict, "notes": done.notes, "report": done.report}
    console.print_result(record, page, options, written)
    choices = () if options.json else done.starter.choices
    base.echo_notes([*list_renamed(options.measure), *choices])


def _plan_files(options: TryOptions) -> Compare:
    """Compare the lists of files, which are saved with a dataset."""
    from fusion_bench.evaluation.starter import StarterInput, compare_starter_systems, save_starter

    if not options.lists:
        raise typer.BadParameter("name two lists or more, or a --dataset", param_hint="NAME=FILE")
    runs = file_options.parse_named_files(options.lists, "NAME=FILE")
    rerankers = file_options.parse_rerank_files(options.rerank)
    if options.qrels is None:
        raise typer.BadParameter(
            "a judgments file is needed. No judgments yet? 'fusion-bench dataset new DIR "
            "NAME=FILE NAME=FILE' makes a dataset without any, which 'fusion-bench judge DIR' "
            "reads",
            param_hint="--qrels",
        )
    given = options.call(
        StarterInput,
        *(options.qrels, runs, rerankers),
        measures=options.measure or DEFAULT_MEASURES,
        engine=options.engine,
        roles=options.parse_roles(),
        settings=options.state_files([*runs, *rerankers]),
    )
    refuse_inputs([*given.runs.values(), *(each.path for each in given.rerankers.values())])

    def compare(progress: Progress) -> tuple[StarterComparison | None, Save]:
        done = compare_starter_systems(given, progress, allowed=options.allowed)
        return done, partial(save_starter, given)

    return compare


def _plan_dataset(options: TryOptions) -> Compare:
    """Compare the lists of a dataset, which an experiment then names where it is."""
    from fusion_bench.evaluation.starter import (
        compare_starter,
        read_starter_dataset,
        save_dataset_experiment,
    )

    rest = ("lists", "qrels", "queries", "rerank", "binary_relevance")
    base.refuse(options, "does not go with --dataset", *rest, *file_options.FILES)
    path = base.find_dataset_file(str(options.dataset))
    measures = options.measure or DEFAULT_MEASURES

    def compare(progress: Progress) -> tuple[StarterComparison | None, Save]:
        roles, is_saved = options.parse_roles(), options.save is not None
        dataset, starter = read_starter_dataset(path, options.engine, roles, is_saved=is_saved)
        refuse_inputs(dataset.spec.file_paths(path.parent))
        done = None
        if dataset.is_judged:
            done = compare_starter(dataset, starter, measures, progress, allowed=options.allowed)
        return done, partial(save_dataset_experiment, path, starter, measures)

    return compare


def _print_unjudged(options: TryOptions, save: Save) -> None:
    """Say that nothing is judged, and write the experiment all the same.

    Raises:
        typer.BadParameter: There is no place for it.
    """
    if options.save is None:
        raise typer.BadParameter(
            "nothing is judged, so nothing is compared: write the experiment with --save DIR",
            param_hint="--dataset",
        )
    written = save(None, options.save)
    if options.json:
        console.print_json({"verdict": None, "written": written})
        return
    console.echo("Nothing is judged, so the starter systems were not compared.")
    console.echo_written(written)
    judge = format_command("judge", Path(str(options.dataset)))
    console.echo(f"Next: {judge}, then {format_command('eval', written[0])}")


def _check_folders(save: Path | None, out: Path) -> None:
    """Refuse a folder in which files would be overwritten, or not committed.

    Raises:
        ConfigError: Something is in the way.
        typer.BadParameter: It lies among the outputs.
    """
    from fusion_bench.evaluation.starter import check_free

    require_folder(out)
    if save is None:
        return
    check_free(save)
    if resolve_path(save).is_relative_to(resolve_path(out)):
        raise typer.BadParameter(
            f"{save} lies in the folder of outputs {out}, which git ignores: name another",
            param_hint="--save",
        )
