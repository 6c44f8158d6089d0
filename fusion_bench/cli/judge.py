"""Judge documents: in the terminal, in a spreadsheet, or only those that still matter."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

import fusion_bench.cli._base as base
from fusion_bench.cli.application.exit_codes import ExitCode, describe_exit_codes
from fusion_bench.cli.judging.language_models import (
    DoubleJudged,
    DryRun,
    LlmFile,
    LlmOptions,
    MaxCost,
    StoreFile,
    judge_by_models,
)
from fusion_bench.config.limits import MOST_RANK

command = base.command_app()


class PoolOrder(StrEnum):
    """The order of a pool."""

    POOL = "pool"
    SYSTEM = "system"
    MOVE_TO_FRONT = "move-to-front"
    UNCERTAINTY = "uncertainty"
    RANDOM = "random"


class Combine(StrEnum):
    """How several grades become one."""

    MAJORITY = "majority"
    MEAN = "mean"
    FIRST = "first"


@command.command(
    epilog=base.format_examples(
        "fusion-bench judge datasets/mine --judge ann",
        "fusion-bench judge experiments/mine.yaml --judge ann --next 50",
        "fusion-bench judge experiments/mine.yaml --next 50 --list",
        "fusion-bench judge experiments/mine.yaml --judge ann --queries sample.txt",
        "fusion-bench judge datasets/mine --judge ann --export to-judge.csv",
        "fusion-bench judge datasets/mine --judge ann --import judged.csv",
        "fusion-bench judge datasets/mine --llm judge.yaml --dry-run",
        "fusion-bench judge datasets/mine --write-qrels datasets/mine/judgments/qrels.txt",
    )
    + "\n\n"
    + describe_exit_codes(ExitCode.DEGRADED),
)
def judge(
    target: Annotated[
        Path,
        typer.Argument(
            help="An experiment, or a dataset: its name, its folder or its dataset.yaml.",
            metavar="EXPERIMENT|DATASET",
        ),
    ],
    judge: Annotated[
        str, typer.Option(help="Name of the judge; each has a file.", metavar="NAME")
    ] = "judge",
    next_: Annotated[
        int | None,
        typer.Option(
            "--next",
            help="Only documents that could still change the comparison, so many at most.",
            metavar="BUDGET",
            min=1,
        ),
    ] = None,
    queries: Annotated[
        Path | None,
        typer.Option(
            help="Only documents of the queries in FILE, one id a line, such as 'grades sample' "
            "draws; also those that the judgments hold.",
            metavar="FILE",
        ),
    ] = None,
    depth: Annotated[int, typer.Option(help="Depth of the pool.", min=1, max=MOST_RANK)] = 10,
    order: Annotated[
        PoolOrder, typer.Option(help="Order of the pool; random hides the ranks.")
    ] = PoolOrder.RANDOM,
    system: Annotated[
        list[str] | None,
        typer.Option(help="System, beside the baseline; repeatable. Default: all.", metavar="NAME"),
    ] = None,
    dataset: Annotated[
        str | None, typer.Option(help="One of the experiment's datasets.", metavar="NAME")
    ] = None,
    measure: Annotated[
        str | None,
        typer.Option(help="With --next: the measure. Default: the primary one.", metavar="NAME"),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(help="With --next. Default: the experiment's.", metavar="NAME"),
    ] = None,
    candidate: Annotated[
        str | None,
        typer.Option(help="With --next. Default: the best other system.", metavar="NAME"),
    ] = None,
    max_grade: Annotated[
        int | None,
        typer.Option(help="Greatest grade. Default: the greatest of the judgments.", min=1),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the random order.", min=0)] = 0,
    export: Annotated[
        Path | None,
        typer.Option(help="Write the documents to a spreadsheet, .csv.", metavar="FILE"),
    ] = None,
    import_: Annotated[
        Path | None,
        typer.Option("--import", help="Read grades from a spreadsheet.", metavar="FILE"),
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="Only list the documents.")] = False,
    write_qrels: Annotated[
        Path | None,
        typer.Option(help="Write the grades of all judges as qrels.", metavar="FILE"),
    ] = None,
    combine: Annotated[
        Combine | None,
        typer.Option(help="With --write-qrels: how several grades become one. Default: majority."),
    ] = None,
    llm: LlmFile = None,
    dry_run: DryRun = False,
    max_cost: MaxCost = None,
    double_judged: DoubleJudged = None,
    store: StoreFile = None,
    datasets: base.DatasetFolders = None,
    overrides: base.SetOption = None,
    json: base.JsonFlag = False,
) -> None:
    """Judge the documents that systems return, one key a grade.

    Shows query and document side by side, without the names of systems and without ranks. Each
    grade is in judgments/NAME.csv beside the dataset.yaml before the next document is shown. The
    same command goes on where the last one ended.

    With --llm, language models grade the pool and the pairs that people graded; each writes
    machine-judgments/NAME.csv. API keys come from environment variables, and no answer is paid for
    twice.
    """
    from fusion_bench.cli.judging.actions import JudgeActions
    from fusion_bench.cli.judging.output import judge_as_asked
    from fusion_bench.judge.judge_work import JudgeOptions, Question
    from fusion_bench.judge.pool.chosen_queries import read_query_ids
    from fusion_bench.judge.pool.judged_systems import is_experiment, read_judged_systems

    models = LlmOptions(llm, dry_run, max_cost, double_judged, store)
    models.check(
        {
            "--next": next_,
            "--queries": queries,
            "--export": export,
            "--import": import_,
            "--write-qrels": write_qrels,
            "--list": list_ or None,
            "--max-grade": max_grade,
            "--judge": None if judge == "judge" else judge,
            "--order": None if order is PoolOrder.RANDOM else order,
            "--seed": seed or None,
        }
    )
    actions = JudgeActions(export, import_, write_qrels, is_list=list_, is_json=json)
    pair = {"--measure": measure, "--baseline": baseline, "--candidate": candidate}
    actions.check(pair, next_, has_combine=combine is not None)
    if next_ is not None or import_ is not None or write_qrels is not None:
        base.refuse_options("--next, --import or --write-qrels", {"--queries": queries})
    question = None if next_ is None else Question(next_, measure, baseline, candidate)
    ids = None if queries is None else read_query_ids(queries)
    options = JudgeOptions(judge, depth, order.value, seed, max_grade, question, ids)
    folders = base.folders_for(datasets, target if is_experiment(target) else None)
    judged = read_judged_systems(
        target, folders=folders, systems=system or (), dataset=dataset, overrides=overrides or ()
    )
    if llm is not None:
        judge_by_models(judged, models, depth=depth, as_json=json)
    else:
        judge_as_asked(judged, options, actions, (combine or Combine.MAJORITY).value)
