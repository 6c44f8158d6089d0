"""What ``judge`` does in each of its modes, for people: terminal, spreadsheet, list."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

import fusion_bench.cli.application.commands as base
from fusion_bench.cli.application.console import echo, echo_written, print_json
from fusion_bench.cli.application.progress import progress_bar

if TYPE_CHECKING:
    from fusion_bench.cli.judge import JudgeCommand
    from fusion_bench.judging.judge_work import JudgeWork
    from fusion_bench.judging.options import CombineName, JudgeOptions
    from fusion_bench.judging.pools import JudgedSystems
    from fusion_bench.util.formatting import Progress


def judge_as_asked(judged: JudgedSystems, options: JudgeCommand) -> None:
    """Do what the options say: in the terminal, or instead of it.

    Raises:
        ConfigError: A file to write is one that the command reads.
        FusionBenchError: The data break a rule, or there is no terminal.
    """
    from fusion_bench.io.outputs import refuse_inputs

    refuse_inputs((judged.path, judged.source.path))
    if options.export is not None:
        refuse_inputs(judged.dataset.spec.file_paths(judged.path.parent))
    if options.sheet is not None:
        show_import(judged, options.sheet, options, as_json=options.json)
    elif options.write_qrels is not None:
        how = options.combine or "majority"
        show_qrels(judged, options.write_qrels, how, as_json=options.json)
    else:
        with progress_bar() as progress:
            judge_or_show(judged, options, progress)


def judge_or_show(judged: JudgedSystems, options: JudgeCommand, progress: Progress) -> None:
    """List or export the documents, or judge them in the terminal.

    Raises:
        FusionBenchError: The data break a rule, or there is no terminal.
    """
    from fusion_bench.judging.judge_work import describe_work, open_work
    from fusion_bench.judging.pools import read_query_ids
    from fusion_bench.judging.terminal import require_terminal

    queries = None if options.queries is None else read_query_ids(options.queries)
    if not (options.listed or options.json or options.export is not None):
        require_terminal()
    work = open_work(judged, options, progress, queries=queries)
    if options.export is not None:
        export_sheet(work, options.export, as_json=options.json)
    elif options.json:
        print_json(describe_work(work))
    elif options.listed:
        _print_list(work)
    else:
        _judge(work)


def describe_plan(work: JudgeWork) -> list[str]:
    """What could still change the comparison, in sentences; none where none was named."""
    from fusion_bench.judging.next_documents import describe_ends, describe_rest
    from fusion_bench.util.formatting import pluralize

    plan = work.plan
    if plan is None:
        return []
    lines = [describe_ends(plan)]
    if plan.ignored_queries:
        total = pluralize(plan.ignored_queries + plan.queries, "query")
        lines.append(
            f"Without any judgment, and left out: {plan.ignored_queries:,} of {total}. Their "
            f"documents could change the answer. Judge them first: {format_judge(work)}"
        )
    return [*lines, describe_rest(plan, len(work.documents()))]


def format_judge(work: JudgeWork, *words: object) -> str:
    """The command with which the same judge judges the pool of every query."""
    from fusion_bench.cli.application.next_steps import format_command

    options = work.options
    limit = () if options.max_grade is None else ("--max-grade", options.max_grade)
    return format_command("judge", work.judged.path, "--judge", options.judge, *limit, *words)


def note_missing_texts(work: JudgeWork) -> list[str]:
    """What a judge misses where the dataset names no texts; nothing where it does."""
    if work.judged.dataset.documents is not None:
        return []
    return [
        "a judge sees ids alone, as the dataset names no texts: add 'documents: FILE' to "
        f"{work.judged.path} (pull writes the file with --texts)"
    ]


def echo_next(judged: JudgedSystems) -> None:
    """Print the command that makes qrels of the grades."""
    from fusion_bench.cli.application.next_steps import format_command
    from fusion_bench.judging.judge_files import JUDGMENTS_FOLDER

    target = judged.path.parent / JUDGMENTS_FOLDER / "qrels.txt"
    echo("Next: " + format_command("judge", judged.path, "--write-qrels", target))


def export_sheet(work: JudgeWork, path: Path, *, as_json: bool) -> None:
    """Write the documents to judge as a spreadsheet.

    Raises:
        ConfigError: Another file would be replaced, or a sheet that was edited and not imported.
    """
    from fusion_bench.io.outputs import write_output
    from fusion_bench.judging.judge_files import render_sheet
    from fusion_bench.util.formatting import pluralize

    documents, known = work.documents(), work.task.file.judgments
    sheet = render_sheet(documents, work.query_texts(), work.document_texts(), known)
    write_output(path, sheet.encode(), option="--export")
    base.echo_notes([*describe_plan(work), *(note_missing_texts(work) if documents else ())])
    if as_json:
        print_json({"file": path, "documents": len(documents)})
        return
    echo(f"{pluralize(len(documents), 'document')} to judge, grades 0 to {work.task.greatest}")
    echo_written([path])
    if not documents:
        echo_next(work.judged)
        return
    command = format_judge(work, "--import", path)
    echo(f"Next: fill in the column 'grade', then {command}")


def show_import(judged: JudgedSystems, path: Path, options: JudgeOptions, *, as_json: bool) -> None:
    """Read a spreadsheet into the judge's file."""
    from fusion_bench.io.outputs import record_output
    from fusion_bench.judging.judge_work import import_sheet, open_work
    from fusion_bench.util.files import read_regular
    from fusion_bench.util.formatting import pluralize

    file, count = import_sheet(judged, path, options)
    record_output(path, read_regular(path))  # its grades are kept
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
        echo(f"Left of the pool: {pluralize(left, 'document')}, for {format_judge(work)}")
    echo_next(judged)


def _print_list(work: JudgeWork) -> None:
    """Tab-separated values; what they decide goes to standard error."""
    from fusion_bench.judging.judge_work import list_effects
    from fusion_bench.util.formatting import escape_control_chars

    documents, effects = work.documents(), list_effects(work)
    columns = ["query", "document", "best_rank"]
    base.echo_notes(describe_plan(work))
    if work.plan is not None:
        columns.append("effect")
    typer.echo("\t".join(columns))
    for each in documents:
        cells = [each.query, each.document, str(each.best_rank)]
        cells += [f"{effects[each.pair]:.4f}"] if effects else []
        typer.echo("\t".join(map(escape_control_chars, cells)))


def _judge(work: JudgeWork) -> None:
    """A sitting at the terminal, and what comes next."""
    from fusion_bench.judging.judge_work import open_work
    from fusion_bench.judging.terminal import judge_in_terminal
    from fusion_bench.util.formatting import pluralize

    documents = work.documents()
    for line in describe_plan(work):
        echo(line)
    if not documents:
        if work.plan is None or not work.plan.ignored_queries:
            echo(f"Nothing left to judge for {work.options.judge}.")
        return
    base.echo_notes(note_missing_texts(work))
    session = judge_in_terminal(work.task, work.query_texts(), work.document_texts())
    left = len(documents) - session.judged
    echo(
        f"{pluralize(session.judged, 'document')} judged, {session.skipped:,} skipped, "
        f"{left:,} left: {work.task.file.path}"
    )
    if not session.judged:
        return
    if work.plan is not None:
        for line in describe_plan(open_work(work.judged, work.options)):
            echo(line)
    elif left:
        echo(f"The same command asks for the {pluralize(left, 'document')} left.")
    echo_next(work.judged)


def show_qrels(judged: JudgedSystems, path: Path, how: CombineName, *, as_json: bool) -> None:
    """Write the grades of all judges as qrels."""
    from fusion_bench.judging.judge_work import write_qrels
    from fusion_bench.util.files import resolve_path
    from fusion_bench.util.formatting import pluralize

    merged, combined, judges = write_qrels(judged, path, how)
    if as_json:
        print_json(
            {
                "file": path,
                "judges": judges,
                "combine": how,
                "judged": len(combined.grades),
                "judged_by_several": combined.several,
                "disagreements": combined.disagreements,
                "added": merged.added,
                "changed": merged.changed,
            }
        )
        return
    echo(
        f"{pluralize(len(combined.grades), 'document')} of {_list_judges(judges)}: "
        f"{merged.added:,} new, {merged.changed:,} with another grade than before. "
        f"{combined.several:,} have several judges, who disagree on {combined.disagreements:,} "
        f"({how} decides)."
    )
    echo_written([path])
    spec = judged.dataset.spec.qrels
    if spec is None or resolve_path(path) != resolve_path(judged.path.parent / spec.path):
        file, folder = resolve_path(path), resolve_path(judged.path.parent)
        is_inside = file.is_relative_to(folder)
        named = file.relative_to(folder).as_posix() if is_inside else path.name
        copied = "" if is_inside else f"copy it into {judged.path.parent}, and "
        echo(f"Next: {copied}write 'qrels: {named}' into {judged.path}")


def _list_judges(judges: Sequence[str]) -> str:
    from fusion_bench.util.formatting import list_names, pluralize

    return f"{pluralize(len(judges), 'judge')} ({list_names(judges)})"
