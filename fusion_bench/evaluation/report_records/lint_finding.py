"""What lint finds in a configuration, as the result files of all commands hold it."""

from __future__ import annotations

from typing import Literal, TypeAlias

from fusion_bench.evaluation.report_records.record import ReportRecord

Severity: TypeAlias = Literal["warning", "note"]


class LintFinding(ReportRecord):
    """What one rule says of the systems that have the same numbers.

    Attributes:
        id: The rule; ``docs/lint.md`` has a section of this name.
        severity: ``warning`` = results suffer, or are not what the numbers suggest; ``note`` =
            worth knowing.
        message: What the configuration does, with its numbers.
        systems: The systems that do it.
        query_types: The query types for which they do it; empty = all queries.
        intents: The intents for which they do it; empty = all queries.
        datasets: The datasets on which they do it; empty where none is known.
        where: ``file:line: path`` of the first system's value.
    """

    id: str
    severity: Severity
    message: str
    systems: tuple[str, ...]
    query_types: tuple[str, ...] = ()
    intents: tuple[str, ...] = ()
    datasets: tuple[str, ...] = ()
    where: str = ""

    @property
    def docs(self) -> str:
        """The section of the documentation."""
        return f"docs/lint.md#{self.id}"
