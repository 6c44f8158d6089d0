"""Documents that a judge is asked for, for people who work in Python."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from fusion_bench.judge.files.spreadsheet import render_sheet
from fusion_bench.judge.judge_work import JudgeWork
from fusion_bench.judge.next.plan import JudgingPlan
from fusion_bench.judge.next.plan_sentences import describe_ends, describe_rest
from fusion_bench.judge.pool.pool import PooledDocument
from fusion_bench.judge.work_record import describe_work, list_effects
from fusion_bench.util.files.atomic_files import write_atomic
from fusion_bench.util.formatting import pluralize
from fusion_bench.util.table_view import Columns, TableView


@dataclass(frozen=True, eq=False, repr=False)
class DocumentsToJudge(TableView):
    """Documents that a judge is asked for, in order.

    Attributes:
        work: Systems, options and the judge's task.
    """

    work: JudgeWork

    @cached_property
    def documents(self) -> tuple[PooledDocument, ...]:
        """The documents; those that the judge has judged are left out."""
        return tuple(self.work.documents())

    @property
    def plan(self) -> JudgingPlan | None:
        """What could still change the comparison; None of a pool."""
        return self.work.plan

    @property
    def is_decided(self) -> bool | None:
        """Whether no grades could change the comparison's answer; None of a pool."""
        return None if self.plan is None else self.plan.is_decided

    def to_spreadsheet(self, path: str | os.PathLike[str]) -> Path:
        """Write the documents with their texts and empty grades, for :func:`import_grades`.

        Raises:
            FusionBenchError: The file cannot be written.
        """
        texts = self.work.query_texts(), self.work.document_texts()
        sheet = render_sheet(self.documents, *texts, self.work.task.file.judgments)
        return write_atomic(Path(path), sheet.encode())

    def to_dict(self) -> dict[str, Any]:
        """Everything, as ``fusion-bench judge --json`` prints it."""
        return describe_work(self.work)

    def _summary(self) -> str:
        count = pluralize(len(self.documents), "document")
        if self.plan is None:
            return f"DocumentsToJudge({count}, grades 0 to {self.work.task.greatest})"
        lines = [describe_ends(self.plan)]
        if self.plan.ignored_queries:
            ignored = pluralize(self.plan.ignored_queries, "query")
            lines.append(f"Without any judgment, and left out: {ignored}. Judge their pool first.")
        return "\n".join([*lines, describe_rest(self.plan, len(self.documents))])

    def _table_columns(self, limit: int | None = None) -> Columns:
        """One row a document."""
        rows, effects = self.documents[:limit], list_effects(self.work)
        columns: dict[str, list[Any]] = {
            "query": [each.query for each in rows],
            "document": [each.document for each in rows],
            "best_rank": [each.best_rank for each in rows],
        }
        if self.plan is not None:
            columns["effect"] = [effects[each.pair] for each in rows]
        return columns
