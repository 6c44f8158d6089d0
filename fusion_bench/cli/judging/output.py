"""What ``judge`` does with its options, and what it prints."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

import fusion_bench.cli._base as base
from fusion_bench.cli.output.console import echo, echo_written, print_json
from fusion_bench.cli.progress.bar import progress_bar

if TYPE_CHECKING:
    from fusion_bench.cli.judging.actions import JudgeActions
    from fusion_bench.evaluation.run_experiment import Progress
    from fusion_bench.judge.files.combined_grades import CombineName
    from fusion_bench.judge.judge_work import JudgeOptions, JudgeWork
    from fusion_bench.judge.pool.judged_systems import JudgedSystems


def judge_as_asked(
    judged: JudgedSystems, options: JudgeOptions, actions: JudgeActions, combine: CombineName
) -> None:
    """Do what the options say.

    Raises:
        FusionBenchError: The data break a rule, or there is no terminal.
    """
    actions.refuse_replaced_inputs(judged)
    if actions.import_ is not None:
        show_import(judged, actions.import_, options, as_json=actions.is_json)
    elif actions.write_qrels is not None:
        show_qrels(judged, actions.write_qrels, combine, as_json=actions.is_json)
    else:
        with progress_bar() as progress:
            judge_or_show(judged, options, actions, progress)


def judge_or_show(
    judged: JudgedSystems, options: JudgeOptions, actions: JudgeActions, progress: Progress
) -> None:
    """List or export the documents, or judge them in the terminal.

    Raises:
        FusionBenchError: The data break a rule, or there is no terminal.
    """
    from fusion_bench.judge.judge_work import open_work
    from fusion_bench.judge.terminal.run import require_terminal

    is_shown = actions.is_list or actions.is_json or actions.export is not None
    if not is_shown:
        require_terminal()
    work = open_work(judged, options, progress)
    if actions.export is not None:
        _export(work, actions.export, as_json=actions.is_json)
    elif actions.is_json:
        print_json(_describe(work))
    elif actions.is_list:
        _print_list(work)
    else:
        _judge(work)


def _describe(work: JudgeWork) -> dict[str, Any]:
    """The record of ``--json``."""
    plan, budget = work.plan, None
    record: dict[str, Any] = {"dataset": work.judged.dataset.name, "judge": work.options.judge}
    effects: dict[tuple[str, str], float] = {}
    if plan is not None:
        effects = {each.document.pair: each.effect for each in plan.documents}
        budget = len(plan.documents)
        record["plan"] = {
            "measure": plan.measure,
            "baseline": plan.baseline,
            "candidate": plan.candidate,
            "queries": plan.queries,
            "difference": plan.difference,
            "low": plan.low,
            "high": plan.high,
            "is_exact": plan.is_exact,
            "answer": plan.answer,
            "low_answer": plan.low_answer,
            "high_answer": plan.high_answer,
            "is_decided": plan.is_decided,
            "documents": budget,
            "ignored_queries": plan.ignored_queries,
        }
    record["max_grade"] = work.task.greatest
    record["documents"] = [
        {
            "query": each.query,
            "document": each.document,
            "best_rank": each.best_rank,
            **({"effect": effects[each.pair]} if each.pair in effects else {}),
        }
        for each in work.documents()
    ]
    return record


def _print_list(work: JudgeWork) -> None:
    """Tab-separated values; what they decide goes to standard error."""
    from fusion_bench.util.formatting import escape_control_chars

    documents, effects = work.documents(), {}
    columns = ["query", "document", "best_rank"]
    base.echo_notes(describe_plan(work))
    if work.plan is not None:
        effects = {each.document.pair: each.effect for each in work.plan.documents}
        columns.append("effect")
    typer.echo("\t".join(columns))
    for each in documents:
        cells = [each.query, each.document, str(each.best_rank)]
        cells += [f"{effects[each.pair]:.4f}"] if effects else []
        typer.echo("\t".join(map(escape_control_chars, cells)))


def describe_plan(work: JudgeWork) -> list[str]:
    """What could still change the comparison, in sentences; none where none was named."""
    from fusion_bench.util.formatting import format_number, pluralize

    plan = work.plan
    if plan is None:
        return []
    low, now, high = (format_number(v, signed=True) for v in (plan.low, plan.difference, plan.high))
    ends = "Judging could make it" if plan.is_exact else "Judging keeps it within"
    pair = f"{plan.candidate} - {plan.baseline}, {plan.measure}"
    lines = [
        f"{pair}: {now} over {pluralize(plan.queries, 'query')} ({plan.answer}). "
        f"{ends} {low} ({plan.low_answer}) to {high} ({plan.high_answer})."
    ]
    if plan.ignored_queries:
        total = pluralize(plan.ignored_queries + plan.queries, "query")
        lines.append(
            f"Without any judgment, and left out: {plan.ignored_queries:,} of {total}. Their "
            f"documents could change the answer. Judge them first: {_format_judge(work)}"
        )
    if plan.is_decided:
        return [*lines, f"Nothing left could change the answer: {plan.answer}."]
    if plan.has_one_answer:
        compared = pluralize(plan.queries, "compared query")
        return [*lines, f"On the {compared} alone, nothing could change it: {plan.answer}."]
    total, count = pluralize(len(plan.documents), "document"), len(work.documents())
    return [*lines, f"{total} could still change it; the first {count:,} change most."]


def _format_judge(work: JudgeWork, *words: object) -> str:
    """The command with which the same judge judges the pool of every query."""
    from fusion_bench.cli.next_steps.command_words import format_command

    options = work.options
    limit = () if options.max_grade is None else ("--max-grade", options.max_grade)
    return format_command("judge", work.judged.path, "--judge", options.judge, *limit, *words)


def _export(work: JudgeWork, path: Path, *, as_json: bool) -> None:
    from fusion_bench.judge.files.spreadsheet import render_sheet
    from fusion_bench.util.files.atomic_files import write_atomic
    from fusion_bench.util.formatting import pluralize

    documents = work.documents()
    base.echo_notes(describe_plan(work))
    texts = work.query_texts(), work.document_texts()
    sheet = render_sheet(documents, *texts, work.task.file.judgments)
    write_atomic(path, sheet.encode())
    if as_json:
        print_json({"file": path, "documents": len(documents)})
        return
    echo(f"{pluralize(len(documents), 'document')} to judge, grades 0 to {work.task.greatest}")
    echo_written([path])
    command = _format_judge(work, "--import", path)
    echo(f"Next: fill in the column 'grade', then {command}")


def _judge(work: JudgeWork) -> None:
    """A sitting at the terminal, and what comes next."""
    from fusion_bench.judge.judge_work import open_work
    from fusion_bench.judge.terminal.run import judge_in_terminal
    from fusion_bench.util.formatting import pluralize

    documents = work.documents()
    for line in describe_plan(work):
        echo(line)
    if not documents:
        if work.plan is None or not work.plan.ignored_queries:
            echo(f"Nothing left to judge for {work.options.judge}.")
        return
    if work.judged.dataset.documents is None:
        base.echo_notes(["the dataset names no 'documents': texts are missing"])
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
    _echo_next(work.judged)


def _echo_next(judged: JudgedSystems) -> None:
    from fusion_bench.cli.next_steps.command_words import format_command
    from fusion_bench.judge.files.judge_file import FOLDER

    target = judged.path.parent / FOLDER / "qrels.txt"
    echo("Next: " + format_command("judge", judged.path, "--write-qrels", target))


def show_import(judged: JudgedSystems, path: Path, options: JudgeOptions, *, as_json: bool) -> None:
    """Read a spreadsheet into the judge's file."""
    from fusion_bench.judge.judge_work import import_sheet, open_work
    from fusion_bench.util.formatting import pluralize

    file, count = import_sheet(judged, path, options)
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
    if left:
        echo(f"Left of the pool: {pluralize(left, 'document')}, for {_format_judge(work)}")
    _echo_next(judged)


def show_qrels(judged: JudgedSystems, path: Path, how: CombineName, *, as_json: bool) -> None:
    """Write the grades of all judges as qrels."""
    from fusion_bench.judge.judge_work import write_qrels
    from fusion_bench.util.files.real_paths import resolve_path
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
        named = os.path.relpath(resolve_path(path), resolve_path(judged.path.parent))
        echo(f"Next: write 'qrels: {named}' into {judged.path}")


def _list_judges(judges: Sequence[str]) -> str:
    from fusion_bench.util.formatting import list_names, pluralize

    return f"{pluralize(len(judges), 'judge')} ({list_names(judges)})"
