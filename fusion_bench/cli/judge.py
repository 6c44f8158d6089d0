"""Judge documents: in the terminal, in a spreadsheet, or only those that still matter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

import fusion_bench.cli.application.app as base
from fusion_bench.cli.application.console import echo, print_json
from fusion_bench.cli.application.process import ExitCode, describe_exit_codes
from fusion_bench.config.models import MOST_RANK

if TYPE_CHECKING:
    from fusion_bench.judging.llm_run import WrittenGrades
    from fusion_bench.judging.pools import JudgedSystems
    from fusion_bench.models.ledger import CostEstimate


LlmFile = Annotated[
    Path | None,
    typer.Option(help="Language models grade the pool, as this YAML file says.", metavar="FILE"),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="With --llm: print the price and ask no model.")
]
MaxCost = Annotated[
    float | None,
    typer.Option(help="With --llm: stop before the price of all judges exceeds this.", min=0),
]
DoubleJudged = Annotated[
    int | None,
    typer.Option(
        help="With --llm: pairs with people's grades that are graded too, to measure agreement. "
        "Default: 200.",
        min=0,
        metavar="N",
    ),
]
StoreFile = Annotated[
    Path | None,
    typer.Option(
        help="With --llm: SQLite file of the answers. Default: reports/judge/answers.sqlite.",
        metavar="FILE",
    ),
]
#: Pairs with people's grades that a model grades too.
DOUBLE_JUDGED = 200


@dataclass(frozen=True)
class LlmOptions:
    """How language models judge.

    Attributes:
        config: The YAML file; None = people judge.
        is_dry: Only print the price.
        max_cost: Limit of the price of all judges; None = none.
        double_judged: Pairs with people's grades that are graded too; None = the default.
        store: SQLite file of the answers; None = the default.
    """

    config: Path | None
    is_dry: bool
    max_cost: float | None
    double_judged: int | None
    store: Path | None

    def check(self, others: Mapping[str, object]) -> None:
        """Refuse options that do not go together.

        Args:
            others: Options of people's judging, and their values; None = not given.

        Raises:
            typer.BadParameter: Two do not.
        """
        if self.config is not None:
            base.refuse_options("--llm", others)
            if "=" in str(self.config) and not self.config.exists():
                raise typer.BadParameter(
                    f"{self.config}: the YAML file of the judges is needed, not KEY=VALUE",
                    param_hint="--llm",
                )
            return
        given = {
            "--dry-run": self.is_dry or None,
            "--max-cost": self.max_cost,
            "--double-judged": self.double_judged,
            "--store": self.store,
        }
        for option, value in given.items():
            if value is not None:
                raise typer.BadParameter("needs --llm FILE", param_hint=option)


def judge_by_models(
    judged: JudgedSystems, options: LlmOptions, *, depth: int, as_json: bool
) -> None:
    """Grade the pool by each model, or print what that would cost.

    Raises:
        FusionBenchError: The data or the configuration break a rule, or a model cannot be asked.
        typer.Exit: Some pairs have no grade.
    """
    from fusion_bench.cli.application.progress import progress_bar
    from fusion_bench.judging.llm_request import (
        add_double_judged,
        prepare_grading,
        read_judge_config,
    )
    from fusion_bench.judging.llm_run import estimate_judges, run_judges
    from fusion_bench.judging.pools import build_pool

    path = options.config or Path()
    config = read_judge_config(path)
    pool = [each.pair for each in build_pool(judged, depth).documents]
    count = DOUBLE_JUDGED if options.double_judged is None else options.double_judged
    pairs = add_double_judged(judged.path, judged.dataset, pool, count)
    request = prepare_grading(judged.path, judged.dataset, pairs, config, path.parent)
    store = options.store or Path("reports/judge/answers.sqlite")
    if options.is_dry:
        _print_estimates(estimate_judges(request, config, store), as_json=as_json)
        return
    with progress_bar() as show:

        def show_progress(done: int, total: int, spent: float) -> None:
            show(f"grading, price so far {spent:.4f}" if spent else "grading", done, total)

        written = run_judges(
            request, config, store, max_cost=options.max_cost, on_progress=show_progress
        )
    _print_written(judged, written, as_json=as_json)
    if any(each.meta.graded < each.meta.pairs for each in written):
        raise typer.Exit(ExitCode.DEGRADED)


def _print_estimates(estimates: Mapping[str, CostEstimate], *, as_json: bool) -> None:
    if as_json:
        print_json(estimates)
        return
    for name, each in estimates.items():
        unknown = "not known: give it as 'price' of the judge"
        price = unknown if each.cost is None else f"about {each.cost:.4f}"
        echo(
            f"{name} ({each.provider}): {each.queries} queries, {each.documents} answers, "
            f"{each.stored} stored, {each.calls} calls"
        )
        echo(
            f"    about {each.usage.tokens} input tokens, {each.usage.output_tokens} output "
            f"tokens; price {price}"
        )


def _print_written(
    judged: JudgedSystems, written: Sequence[WrittenGrades], *, as_json: bool
) -> None:
    if as_json:
        print_json(
            [
                {"file": each.path, "entry": each.dataset_entry, **each.meta.model_dump()}
                for each in written
            ]
        )
        return
    for each in written:
        meta = each.meta
        cost = meta.ledger["cost"]
        grades = ", ".join(f"{count:,} of grade {grade}" for grade, count in meta.by_grade.items())
        count = f"{meta.graded:,} of {meta.pairs:,} pairs"
        echo(f"{meta.judge} ({', '.join(meta.models)}): {count}: {grades}")
        echo(
            f"    without a grade: {meta.refused} refused, {meta.malformed} malformed, "
            f"{meta.failed} failed; price {'not known' if cost is None else f'{cost:.4f}'}"
        )
        if len(meta.models) > 1:
            answers = ", ".join(f"{name} {count:,}" for name, count in meta.models.items())
            echo(f"    answers of several models, as the provider changed its own: {answers}")
        if meta.mean_spread is not None:
            echo(f"    samples of a pair: mean standard deviation {meta.mean_spread:.3f}")
        for line in meta.ungraded[:3]:
            echo(f"    {line}")
    echo(f"Written: {', '.join(str(each.path) for each in written)}")
    _print_entries(judged, written)


def _print_entries(judged: JudgedSystems, written: Sequence[WrittenGrades]) -> None:
    """What to add to the dataset.yaml, and the command that then compares the grades."""
    from fusion_bench.judging.llm_run import format_new_entries, list_new_entries

    spec, dataset = judged.dataset.spec, quote(str(judged.path))
    qrels, judges = list_new_entries(spec, judged.path, written)
    for line in format_new_entries(spec, qrels, judges):
        echo(line)
    if not judges and not spec.judges:
        echo("Then grade pairs yourself, run this command again, and add what it prints:")
        echo(f"  fusion-bench judge {dataset} --judge NAME")
        return
    echo("Then measure agreement with people before these grades count:")
    echo(f"  fusion-bench grades agreement {dataset}")


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
    from fusion_bench.cli.application.judging import JudgeActions, judge_as_asked
    from fusion_bench.judging.judge_work import JudgeOptions, Question
    from fusion_bench.judging.pools import is_experiment, read_judged_systems, read_query_ids

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
