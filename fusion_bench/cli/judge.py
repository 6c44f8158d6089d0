"""Judge documents: in the terminal, in a spreadsheet, or only those that still matter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

import fusion_bench.cli.application.commands as base
from fusion_bench.cli.application.console import echo, print_json
from fusion_bench.cli.application.process import ExitCode
from fusion_bench.config.options import Amount, Argument, File, Name, Option
from fusion_bench.judging.options import CombineName, JudgeOptions

if TYPE_CHECKING:
    from fusion_bench.judging.llm_run import WrittenGrades
    from fusion_bench.judging.pools import JudgedSystems
    from fusion_bench.models.call_limits import CostEstimate


class JudgeCommand(JudgeOptions, base.DatasetOptions):
    """Options of ``judge``.

    Attributes:
        target: An experiment, or a dataset: its name, its folder or its dataset.yaml.
        queries: Only documents of the queries in FILE, one id a line, such as 'grades sample'
            draws; also those that the judgments hold.
        systems: System, beside the baseline; repeatable. Default: all.
        dataset: One of the experiment's datasets.
        export: Write the documents to a spreadsheet, .csv.
        sheet: Read grades from a spreadsheet.
        listed: Only list the documents.
        write_qrels: Write the grades of all judges as qrels.
        combine: With --write-qrels: how several grades become one. Default: majority.
        llm: Language models grade the pool, as this YAML file says.
        dry_run: With --llm: print the price and ask no model.
        max_cost: With --llm: stop before the price of all judges exceeds this.
        double_judged: With --llm: pairs with people's grades that are graded too, to measure
            agreement. Default: 200.
        store: With --llm: SQLite file of the answers. Default: reports/judge/answers.sqlite.
        overrides: Replace a value of the experiment, such as systems.rrf.fusion.k=20; repeatable.
    """

    target: Annotated[Path, Argument("EXPERIMENT|DATASET")]
    queries: File | None = None
    systems: base.Systems = ()
    dataset: Name | None = None
    export: File | None = None
    sheet: Annotated[File, Option("--import")] | None = None
    listed: Annotated[bool, Option("--list")] = False
    write_qrels: File | None = None
    combine: CombineName | None = None
    llm: File | None = None
    dry_run: bool = False
    max_cost: Amount | None = None
    double_judged: Annotated[int, Option(min=0, metavar="N")] | None = None
    store: File | None = None
    overrides: base.Overrides = ()

    def check(self) -> None:
        """Refuse options that do not go together.

        Raises:
            typer.BadParameter: Two do not, or the spreadsheet is not named ``.csv``.
        """
        if self.llm is not None:
            base.refuse(self, "does not go with --llm", *OF_PEOPLE)
            if "=" in str(self.llm) and not self.llm.exists():
                raise typer.BadParameter(
                    f"{self.llm}: the YAML file of the judges is needed, not KEY=VALUE",
                    param_hint="--llm",
                )
        else:
            base.refuse(self, "needs --llm FILE", "dry_run", "max_cost", "double_judged", "store")
        chosen = [*self.given("export", "sheet", "write_qrels", "listed")]
        if len(chosen) > 1:
            raise typer.BadParameter(f"does not go with {chosen[0]}", param_hint=chosen[1])
        if self.export is not None and self.export.suffix.lower() != ".csv":
            raise typer.BadParameter(
                f"{self.export}: it writes comma-separated values (CSV), which every spreadsheet "
                "opens: name it .csv",
                param_hint="--export",
            )
        if self.write_qrels is None:
            base.refuse(self, "needs --write-qrels FILE", "combine")
        if self.budget is None:
            base.refuse(self, "needs --next BUDGET", "measure", "baseline", "candidate")
        if self.sheet is not None or self.write_qrels is not None:
            base.refuse(self, f"does not go with {chosen[0]}", "budget")
        if self.given("budget", "sheet", "write_qrels"):
            others = "does not go with --next, --import or --write-qrels"
            base.refuse(self, others, "queries")

    def read_systems(self) -> JudgedSystems:
        """The systems whose documents are judged."""
        from fusion_bench.judging.pools import is_experiment, read_judged_systems

        experiment = self.target if is_experiment(self.target) else None
        folders = base.folders_for(self.datasets, experiment)
        return self.call(read_judged_systems, self.target, folders=folders)


#: Options of judging by people.
OF_PEOPLE = (
    *("budget", "queries", "export", "sheet", "write_qrels", "listed"),
    *("max_grade", "judge", "order", "seed"),
)
#: Pairs with people's grades that a model grades too.
DOUBLE_JUDGED = 200


@base.single_command(ExitCode.DEGRADED)
def command(options: JudgeCommand) -> None:
    """Judge the documents that systems return, one key a grade.

    Shows query and document side by side, without the names of systems and without ranks. Each
    grade is in judgments/NAME.csv beside the dataset.yaml before the next document is shown. The
    same command goes on where the last one ended.

    With --llm, language models grade the pool and the pairs that people graded; each writes
    machine-judgments/NAME.csv. API keys come from environment variables, and no answer is paid for
    twice.

    Examples:
        fusion-bench judge datasets/mine --judge ann
        fusion-bench judge experiments/mine.yaml --judge ann --next 50
        fusion-bench judge experiments/mine.yaml --next 50 --list
        fusion-bench judge experiments/mine.yaml --judge ann --queries sample.txt
        fusion-bench judge datasets/mine --judge ann --export to-judge.csv
        fusion-bench judge datasets/mine --judge ann --import judged.csv
        fusion-bench judge datasets/mine --llm judge.yaml --dry-run
        fusion-bench judge datasets/mine --write-qrels datasets/mine/judgments/qrels.txt
    """
    options.check()
    if options.llm is not None:
        judge_by_models(options.read_systems(), options, options.llm)
    else:
        from fusion_bench.cli.application.judging import judge_as_asked

        judge_as_asked(options.read_systems(), options)


def judge_by_models(judged: JudgedSystems, options: JudgeCommand, path: Path) -> None:
    """Grade the pool by each model of a configuration, or print what that would cost.

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

    config = read_judge_config(path)
    pool = [each.pair for each in build_pool(judged, options.depth).documents]
    count = DOUBLE_JUDGED if options.double_judged is None else options.double_judged
    pairs = add_double_judged(judged.path, judged.dataset, pool, count)
    request = prepare_grading(judged.path, judged.dataset, pairs, config, path.parent)
    store = options.store or Path("reports/judge/answers.sqlite")
    if options.dry_run:
        _print_estimates(estimate_judges(request, config, store), as_json=options.json)
        return
    with progress_bar() as show:
        on_progress = base.show_price(show, "grading")
        written = options.call(run_judges, request, config, store, on_progress=on_progress)
    _print_written(judged, written, as_json=options.json)
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
