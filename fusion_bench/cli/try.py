"""Compare the usual fusions of your own lists in one command, without YAML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import fusion_bench.cli.application.app as base
from fusion_bench.cli.application.console import print_result
from fusion_bench.cli.application.file_options import (
    QrelsColumns,
    RunColumns,
    parse_named_files,
    parse_qrels_columns,
    parse_rerank_files,
    parse_run_columns,
    require_qrels,
)
from fusion_bench.experiment import DEFAULT_MEASURES
from fusion_bench.util.file_paths import resolve_path

if TYPE_CHECKING:
    from fusion_bench.evaluation.starter import StarterComparison, StarterInput
    from fusion_bench.report.page import Page

command = base.command_app()


@command.command(
    "try",
    epilog=base.format_examples(
        "fusion-bench try --qrels judged.csv bm25=a.jsonl dense=b.jsonl",
        "fusion-bench try --qrels judged.csv bm25=a.jsonl dense=b.jsonl --rerank cohere=c.jsonl",
        "fusion-bench try --qrels judged.csv bm25=a.jsonl dense=b.jsonl --save mine",
        "fusion-bench try --qrels sheet.csv --qrels-columns query='search term' a.jsonl b.jsonl",
    ),
)
def try_command(
    lists: Annotated[
        list[str],
        typer.Argument(help="A ranked list and its name; two or more.", metavar="NAME=FILE"),
    ],
    qrels: Annotated[
        Path | None, typer.Option(help="Judgments file, always needed.", metavar="FILE")
    ] = None,
    queries: Annotated[
        Path | None,
        typer.Option(
            help="What is known of the queries, as JSON Lines: id, text, type, group, split.",
            metavar="FILE",
        ),
    ] = None,
    rerank: Annotated[
        list[str] | None,
        typer.Option(
            help="A reranker's scores; repeatable. Without SPACE (unit, logit, log_prob, "
            "unbounded, order) the values decide what they mean.",
            metavar="NAME[:SPACE]=FILE",
        ),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(
            help="Write dataset.yaml, experiment.yaml and copies of the lists for eval, tune "
            "and gate.",
            metavar="DIR",
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder of report and picture.", metavar="DIR")] = Path(
        "reports/try"
    ),
    measure: Annotated[
        list[str] | None,
        typer.Option(
            help=f"Measure, the deciding one first. Default: {', '.join(DEFAULT_MEASURES)}.",
            metavar="NAME",
        ),
    ] = None,
    binary_relevance: Annotated[
        int, typer.Option(help="Grade from which binary measures count.", min=1)
    ] = 1,
    qrels_columns: QrelsColumns = None,
    run_columns: RunColumns = None,
    plots: base.PlotsFlag = True,
    plot_format: base.PlotFormatOption = base.PlotFormat.PNG,
    tables: base.TableFormats = None,
    html: base.HtmlFlag = True,
    markdown: base.MarkdownFile = None,
    json: base.JsonFlag = False,
) -> None:
    """Compare the usual fusions of your own lists in one command, without YAML.

    Each list alone, RRF with k 10 and 60, RRF with one list counting twice, convex combinations
    and z-scores, with and without each reranker, all against RRF with k=60. Nothing is tuned.
    """
    from fusion_bench.cli.application.progress import progress_bar
    from fusion_bench.evaluation.starter import StarterInput, compare_starter_systems, save_starter
    from fusion_bench.io.outputs import refuse_inputs
    from fusion_bench.measures.aliases import list_renamed
    from fusion_bench.report.write import write_report

    base.refuse_two_outputs(markdown, as_json=json)
    qrels = require_qrels(qrels)
    given = StarterInput(
        qrels=qrels,
        runs=parse_named_files(lists, "NAME=FILE"),
        rerankers=parse_rerank_files(rerank or [], "--rerank"),
        queries=queries,
        measures=measure or DEFAULT_MEASURES,
        binary_relevance=binary_relevance,
        qrels_layout=parse_qrels_columns(qrels_columns),
        run_layout=parse_run_columns(run_columns),
    )
    listed = [*given.runs.values(), *(each.path for each in given.rerankers.values())]
    refuse_inputs(listed)
    _check_folders(save, out)
    with progress_bar() as progress:
        done = _add_lint(compare_starter_systems(given, progress))
        progress("writing the report", 1, 1)
        written = write_report(
            done.report,
            out,
            plots=plots,
            plot_format=plot_format.value,
            max_figures=1,
            tables=tables or (),
            html=html,
        )
        if save is not None:
            written += save_starter(given, done, save)
    columns = {"--qrels-columns": qrels_columns, "--run-columns": run_columns}
    words = _list_command_words(given, lists, {"--rerank": rerank, "--measure": measure}, columns)
    page = _build_page(done, words, save)
    print_result(_to_record(done, page), page, as_json=json, written=written, markdown=markdown)
    base.echo_notes(list_renamed(measure or ()))


def _to_record(done: StarterComparison, page: Page) -> dict[str, object]:
    verdict = page.headline and page.headline.text
    return {"verdict": verdict, "notes": done.notes, "report": done.report}


def _add_lint(done: StarterComparison) -> StarterComparison:
    """The comparison with what lint finds in its systems."""
    from fusion_bench.checks.lint import describe_dataset, lint_experiment
    from fusion_bench.config.models import parse_model
    from fusion_bench.experiment.experiment import Experiment

    experiment = parse_model(Experiment, done.source.data).apply_switch()
    findings = lint_experiment(experiment, done.source, [describe_dataset(done.dataset)])
    return done._replace(report=done.report.model_copy(update={"lint": findings}))


def _check_folders(save: Path | None, out: Path) -> None:
    """Refuse a folder in which files would be overwritten, or not committed.

    Raises:
        ConfigError: Something is in the way.
        typer.BadParameter: It lies among the outputs.
    """
    from fusion_bench.evaluation.starter import check_free
    from fusion_bench.util.files import require_folder

    require_folder(out)
    if save is None:
        return
    check_free(save)
    if resolve_path(save).is_relative_to(resolve_path(out)):
        raise typer.BadParameter(
            f"{save} lies in the folder of outputs {out}, which git ignores: name another",
            param_hint="--save",
        )


def _list_command_words(
    given: StarterInput,
    lists: Sequence[str],
    options: Mapping[str, Sequence[object] | None],
    columns: Mapping[str, Sequence[object] | None],
) -> list[object]:
    """The words of the command, to be run again with one more option.

    Args:
        given: What was compared.
        lists: The ranked lists, as given.
        options: The values of the options that may be repeated, as given.
        columns: The same of the options that name columns.
    """
    from fusion_bench.cli.application.next_steps import list_words

    relevance = given.binary_relevance
    repeated = {
        "--queries": None if given.queries is None else [given.queries],
        **options,
        "--binary-relevance": [relevance] if relevance > 1 else None,
        **columns,
    }
    return ["try", "--qrels", given.qrels, *lists, *list_words(repeated)]


def _build_page(done: StarterComparison, words: Sequence[object], save: Path | None) -> Page:
    """The page of the comparison, and the commands that may follow."""
    from fusion_bench.cli.application.next_steps import after_try
    from fusion_bench.report.evaluation_page import build_starter_page

    steps = tuple(after_try(done.report, words, save))
    return replace(build_starter_page(done.report, done.notes), next_steps=steps)
