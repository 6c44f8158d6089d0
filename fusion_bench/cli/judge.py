"""Judge documents in the terminal or a spreadsheet, those that matter first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

import fusion_bench.cli.application.commands as base
from fusion_bench.cli.application.console import echo, echo_written, print_json
from fusion_bench.cli.application.exit_codes import ExitCode
from fusion_bench.cli.application.progress import progress_bar
from fusion_bench.config.options import Amount, Argument, Changes, File, Name, Option
from fusion_bench.errors import DataError
from fusion_bench.judging.options import CombineName, JudgeOptions
from fusion_bench.util import files
from fusion_bench.util.formatting import escape_control_chars, list_names, pluralize

if TYPE_CHECKING:
    from fusion_bench.judging.judge_work import JudgeWork
    from fusion_bench.judging.llm_run import WrittenGrades
    from fusion_bench.judging.pools import JudgedSystems


class JudgeCommand(JudgeOptions, base.DatasetOptions, base.PluginOptions):
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
        llm: YAML file of the language models that grade the pool.
        dry_run: With --llm-config: print the price and ask no model.
        max_cost: With --llm-config: stop before the price of all judges exceeds this.
        double_judged: With --llm-config: pairs with people's grades that are graded too, to measure
            agreement. Default: 200.
        store: With --llm-config: SQLite file of the answers. Default: reports/judge/answers.sqlite.
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
    llm: Annotated[File, Option("--llm-config")] | None = None
    dry_run: bool = False
    max_cost: Amount | None = None
    double_judged: Annotated[int, Option(min=0, metavar="N")] | None = None
    store: File | None = None
    overrides: Changes = ()

    def check(self) -> None:
        """Refuse options that do not go together.

        Raises:
            typer.BadParameter: Two do not, or the spreadsheet is not named ``.csv``.
        """
        if self.llm is not None:
            base.refuse(self, "does not go with --llm-config", *OF_PEOPLE)
            if "=" in str(self.llm) and not self.llm.exists():
                raise typer.BadParameter(
                    f"{self.llm}: the YAML file of the judges is needed, not KEY=VALUE",
                    param_hint="--llm-config",
                )
        else:
            base.refuse(
                self, "needs --llm-config FILE", "dry_run", "max_cost", "double_judged", "store"
            )
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

    With --llm-config, language models grade the pool and the pairs that people graded; each writes
    machine-judgments/NAME.csv. API keys come from environment variables, and no answer is paid for
    twice.

    Examples:
        fusion-bench judge datasets/mine --judge ann
        fusion-bench judge experiments/mine.yaml --judge ann --next 50
        fusion-bench judge experiments/mine.yaml --next 50 --list
        fusion-bench judge experiments/mine.yaml --judge ann --queries sample.txt
        fusion-bench judge datasets/mine --judge ann --export to-judge.csv
        fusion-bench judge datasets/mine --judge ann --import judged.csv
        fusion-bench judge datasets/mine --llm-config judge.yaml --dry-run
        fusion-bench judge datasets/mine --write-qrels datasets/mine/judgments/qrels.txt
    """
    options.check()
    if options.llm is not None:
        _judge_by_models(options.read_systems(), options, options.llm)
    else:
        _judge_as_asked(options.read_systems(), options)


def _judge_as_asked(judged: JudgedSystems, options: JudgeCommand) -> None:
    """Judge in the terminal, or list, export or import the documents.

    Raises:
        ConfigError: A file to write is one that the command reads.
        FusionBenchError: The data break a rule, or there is no terminal.
    """
    from fusion_bench.io.outputs import refuse_inputs
    from fusion_bench.judging.judge_work import describe_work, list_effects, open_work
    from fusion_bench.judging.terminal import require_terminal

    refuse_inputs((judged.path, judged.source.path))
    if options.export is not None:
        refuse_inputs(judged.dataset.spec.file_paths(judged.path.parent))
    if options.sheet is not None:
        _show_import(judged, options.sheet, options, as_json=options.json)
    elif options.write_qrels is not None:
        how = options.combine or "majority"
        _show_qrels(judged, options.write_qrels, how, as_json=options.json)
    else:
        with progress_bar() as progress:
            queries = None if options.queries is None else _read_query_ids(options.queries)
            if not (options.listed or options.json or options.export is not None):
                require_terminal()
            work = open_work(judged, options, progress, queries=queries)
            if options.export is not None:
                _export_sheet(work, options.export, as_json=options.json)
            elif options.json:
                print_json(describe_work(work))
            elif options.listed:
                documents, effects = work.documents(), list_effects(work)
                columns = ["query", "document", "best_rank"]
                base.echo_notes(_describe_plan(work))
                if work.plan is not None:
                    columns.append("effect")
                typer.echo("\t".join(columns))
                for each in documents:
                    cells = [each.query, each.document, str(each.best_rank)]
                    cells += [f"{effects[each.pair]:.4f}"] if effects else []
                    typer.echo("\t".join(map(escape_control_chars, cells)))
            else:
                _judge(work)


def _read_query_ids(path: Path) -> frozenset[str]:
    """Ids of queries, one a line; empty lines count for nothing.

    Raises:
        DataError: The file cannot be read, or holds no id.
    """
    try:
        text = files.read_regular_text(path)
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: {files.explain_error(error)}") from None
    ids = frozenset(line.strip() for line in text.splitlines()) - {""}
    if not ids:
        raise DataError(f"{path}: no query: name the id of one on each line")
    return ids


def _describe_plan(work: JudgeWork) -> list[str]:
    """Describe in sentences what could still change the comparison; empty without one."""
    from fusion_bench.judging.next_documents import describe_ends, describe_rest

    plan = work.plan
    if plan is None:
        return []
    lines = [describe_ends(plan)]
    if plan.ignored_queries:
        total = pluralize(plan.ignored_queries + plan.queries, "query")
        lines.append(
            f"Without any judgment, and left out: {plan.ignored_queries:,} of {total}. Their "
            f"documents could change the answer. Judge them first: {_format_judge(work)}"
        )
    return [*lines, describe_rest(plan, len(work.documents()))]


def _format_judge(work: JudgeWork, *words: object) -> str:
    """The command with which the same judge judges the pool of every query."""
    from fusion_bench.cli.application.next_steps import format_command

    options = work.options
    limit = () if options.max_grade is None else ("--max-grade", options.max_grade)
    return format_command("judge", work.judged.path, "--judge", options.judge, *limit, *words)


def _note_missing_texts(work: JudgeWork) -> list[str]:
    """Describe what a judge misses if the dataset names no texts; else empty."""
    if work.judged.dataset.documents is not None:
        return []
    return [
        "a judge sees ids alone, as the dataset names no texts: add 'documents: FILE' to "
        f"{work.judged.path} (pull writes the file with --texts)"
    ]


def _echo_next(judged: JudgedSystems) -> None:
    """Print the command that makes qrels of the grades."""
    from fusion_bench.cli.application.next_steps import format_command
    from fusion_bench.judging.judge_files import JUDGMENTS_FOLDER

    target = judged.path.parent / JUDGMENTS_FOLDER / "qrels.txt"
    echo("Next: " + format_command("judge", judged.path, "--write-qrels", target))


def _export_sheet(work: JudgeWork, path: Path, *, as_json: bool) -> None:
    """Write the documents to judge as a spreadsheet.

    Raises:
        ConfigError: Another file would be replaced, or a sheet that was edited and not imported.
    """
    from fusion_bench.io.outputs import write_output
    from fusion_bench.judging.judge_files import render_sheet

    documents, known = work.documents(), work.task.file.judgments
    sheet = render_sheet(documents, work.query_texts(), work.document_texts(), known)
    write_output(path, sheet.encode(), option="--export")
    base.echo_notes([*_describe_plan(work), *(_note_missing_texts(work) if documents else ())])
    if as_json:
        print_json({"file": path, "documents": len(documents)})
        return
    echo(f"{pluralize(len(documents), 'document')} to judge, grades 0 to {work.task.greatest}")
    echo_written([path])
    if not documents:
        _echo_next(work.judged)
        return
    command = _format_judge(work, "--import", path)
    echo(f"Next: fill in the column 'grade', then {command}")


def _show_import(
    judged: JudgedSystems, path: Path, options: JudgeOptions, *, as_json: bool
) -> None:
    """Read a spreadsheet into the judge's file."""
    from fusion_bench.io.outputs import record_output
    from fusion_bench.judging.judge_work import import_sheet, open_work

    file, count = import_sheet(judged, path, options)
    record_output(path, files.read_regular(path))  # its grades are kept
    work = open_work(judged, options)
    left = len(work.documents())
    if as_json:
        record = {"file": file.path, "grades": count, "judged": len(file.judgments), "left": left}
        print_json(record)
        return
    echo(
        f"{pluralize(count, 'grade')} read; {options.judge} has judged "
        f"{pluralize(len(file.judgments), 'document')}: {file.path}"
    )
    if not count:
        echo(f"Next: fill in the column 'grade' of {path}, and run the same command again")
        return
    if left:
        echo(f"Left of the pool: {pluralize(left, 'document')}, for {_format_judge(work)}")
    _echo_next(judged)


def _judge(work: JudgeWork) -> None:
    """A sitting at the terminal, and what comes next."""
    from fusion_bench.judging.judge_work import open_work
    from fusion_bench.judging.terminal import judge_in_terminal

    documents = work.documents()
    for line in _describe_plan(work):
        echo(line)
    if not documents:
        if work.plan is None or not work.plan.ignored_queries:
            echo(f"Nothing left to judge for {work.options.judge}.")
        return
    base.echo_notes(_note_missing_texts(work))
    session = judge_in_terminal(work.task, work.query_texts(), work.document_texts())
    left = len(documents) - session.judged
    echo(
        f"{pluralize(session.judged, 'document')} judged, {session.skipped:,} skipped, "
        f"{left:,} left: {work.task.file.path}"
    )
    if not session.judged:
        return
    if work.plan is not None:
        for line in _describe_plan(open_work(work.judged, work.options)):
            echo(line)
    elif left:
        echo(f"The same command asks for the {pluralize(left, 'document')} left.")
    _echo_next(work.judged)


def _show_qrels(judged: JudgedSystems, path: Path, how: CombineName, *, as_json: bool) -> None:
    """Write the grades of all judges as qrels."""
    from fusion_bench.judging.judge_work import write_qrels

    counts, judges = write_qrels(judged, path, how)
    if as_json:
        print_json({"file": path, "judges": judges, "combine": how, **counts})
        return
    echo(
        f"{pluralize(counts['judged'], 'document')} of {pluralize(len(judges), 'judge')} "
        f"({list_names(judges)}): "
        f"{counts['added']:,} new, {counts['changed']:,} with another grade than before. "
        f"{counts['judged_by_several']:,} have several judges, who disagree on "
        f"{counts['disagreements']:,} ({how} decides)."
    )
    echo_written([path])
    spec = judged.dataset.spec.qrels
    if spec is None or files.resolve_path(path) != files.resolve_path(
        judged.path.parent / spec.path
    ):
        file, folder = files.resolve_path(path), files.resolve_path(judged.path.parent)
        is_inside = file.is_relative_to(folder)
        named = file.relative_to(folder).as_posix() if is_inside else path.name
        copied = "" if is_inside else f"copy it into {judged.path.parent}, and "
        echo(f"Next: {copied}write 'qrels: {named}' into {judged.path}")


def _judge_by_models(judged: JudgedSystems, options: JudgeCommand, path: Path) -> None:
    """Grade the pool by each model of a configuration, or print what that would cost.

    Raises:
        FusionBenchError: The data or the configuration break a rule, or a model cannot be asked.
        typer.Exit: Some pairs have no grade.
    """
    from fusion_bench.judging.llm_request import prepare_grading
    from fusion_bench.judging.llm_run import estimate_judges, run_judges

    count = DOUBLE_JUDGED if options.double_judged is None else options.double_judged
    request = prepare_grading(judged, path, options.depth, count)
    store = options.store or Path("reports/judge/answers.sqlite")
    if options.dry_run:
        estimates = estimate_judges(request, store)
        if options.json:
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
        return
    with progress_bar() as show:
        on_progress = base.show_price(show, "grading")
        written = options.call(run_judges, request, store, on_progress=on_progress)
    _print_written(written, as_json=options.json)
    _name_grades(judged, written, as_json=options.json)
    if any(result.meta.graded < result.meta.pairs for result in written):
        raise typer.Exit(ExitCode.DEGRADED)


def _print_written(written: Sequence[WrittenGrades], *, as_json: bool) -> None:
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


def _name_grades(judged: JudgedSystems, written: Sequence[WrittenGrades], *, as_json: bool) -> None:
    """Name the files in the dataset.yaml, and say which command then compares the grades."""
    from fusion_bench.judging.llm_run import list_new_entries

    spec, dataset = judged.dataset.spec, quote(str(judged.path))
    qrels, judges = list_new_entries(spec, judged.path, written)
    changes = {key: value for key, value in (("qrels", qrels), ("judges", judges)) if value}
    lines = base.name_in_dataset(judged.path, changes)
    if as_json:
        return
    for line in lines:
        echo(line)
    if not judges and not spec.judges:
        echo("Then grade pairs yourself, and run this command again:")
        echo(f"  fusion-bench judge {dataset} --judge NAME")
        return
    echo("Then measure agreement with people before these grades count:")
    echo(f"  fusion-bench grades agreement {dataset}")
