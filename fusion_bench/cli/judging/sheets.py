"""Judging in a spreadsheet: ``--export`` and ``--import``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import fusion_bench.cli._base as base
from fusion_bench.cli.judging.notes import (
    describe_plan,
    echo_next,
    format_judge,
    note_missing_texts,
)
from fusion_bench.cli.output.console import echo, echo_written, print_json

if TYPE_CHECKING:
    from fusion_bench.judge.judge_work import JudgeOptions, JudgeWork
    from fusion_bench.judge.pool.judged_systems import JudgedSystems


def export_sheet(work: JudgeWork, path: Path, *, as_json: bool) -> None:
    """Write the documents to judge as a spreadsheet.

    Raises:
        ConfigError: Another file would be replaced, or a sheet that was edited and not imported.
    """
    from fusion_bench.io.outputs import write_output
    from fusion_bench.judge.files.spreadsheet import render_sheet
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
    from fusion_bench.judge.judge_work import import_sheet, open_work
    from fusion_bench.util.files.regular_files import read_regular
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
