"""What ``judge`` does with its options, and what it prints."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

import fusion_bench.cli._base as base
from fusion_bench.cli.judging.notes import describe_plan, echo_next, note_missing_texts
from fusion_bench.cli.judging.sheets import export_sheet, show_import
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
    from fusion_bench.judge.work_record import describe_work

    is_shown = actions.is_list or actions.is_json or actions.export is not None
    if not is_shown:
        require_terminal()
    work = open_work(judged, options, progress)
    if actions.export is not None:
        export_sheet(work, actions.export, as_json=actions.is_json)
    elif actions.is_json:
        print_json(describe_work(work))
    elif actions.is_list:
        _print_list(work)
    else:
        _judge(work)


def _print_list(work: JudgeWork) -> None:
    """Tab-separated values; what they decide goes to standard error."""
    from fusion_bench.judge.work_record import list_effects
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
        file, folder = resolve_path(path), resolve_path(judged.path.parent)
        is_inside = file.is_relative_to(folder)
        named = file.relative_to(folder).as_posix() if is_inside else path.name
        copied = "" if is_inside else f"copy it into {judged.path.parent}, and "
        echo(f"Next: {copied}write 'qrels: {named}' into {judged.path}")


def _list_judges(judges: Sequence[str]) -> str:
    from fusion_bench.util.formatting import list_names, pluralize

    return f"{pluralize(len(judges), 'judge')} ({list_names(judges)})"
