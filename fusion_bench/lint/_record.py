"""What ``fusion-bench lint`` prints and stores nowhere: the findings with their witnesses.

Format history:
    1   first version
    2   ``engine``, ``untranslated``
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from fusion_bench.config.files.json_records import StoredRecord
from fusion_bench.evaluation.report_records.lint_finding import LintFinding


class WitnessDocument(StoredRecord):
    """One document of a witness.

    Attributes:
        document: Its id.
        ranks: Source → rank; a source that does not return it is left out.
        scores: Source → score in its list.
        rerank: Raw rerank score; None = there is none.
        final_rank: Its rank in the real system's list; None = not returned.
        final_score: Its final score.
    """

    document: str
    ranks: dict[str, int]
    scores: dict[str, float]
    rerank: float | None = None
    final_rank: int | None = None
    final_score: float | None = None


class WitnessRecord(StoredRecord):
    """Ranks and scores, and what the real system made of them.

    Attributes:
        claim: What they show.
        system: The system that was run, with every default.
        documents: In the order of the system's list; those that are dropped come last.
    """

    claim: str
    system: dict[str, Any]
    documents: tuple[WitnessDocument, ...]


class WitnessedFinding(LintFinding):
    """A finding with the witness that the real system reproduced."""

    witness: WitnessRecord


class LintReport(StoredRecord):
    """What ``fusion-bench lint --json`` prints.

    Attributes:
        format: Always ``fusion-bench-lint``.
        format_version: See the history in this module.
        experiment: Its name.
        datasets: The datasets that were looked at; empty = the configuration alone.
        systems: The systems that were looked at.
        findings: Warnings first.
        unchecked: Rules that need a dataset, where there is none.
        unchecked_systems: Systems whose weights hang on roles that are not known.
        engine: The engine of ``--engine``; None = none was named.
        untranslated: System that was not looked at for this engine → why.
        ignored: Rules that the experiment ignores.
    """

    format: Literal["fusion-bench-lint"] = "fusion-bench-lint"
    format_version: int = 2
    experiment: str
    datasets: tuple[str, ...]
    systems: tuple[str, ...]
    findings: tuple[WitnessedFinding, ...]
    unchecked: tuple[str, ...] = ()
    unchecked_systems: tuple[str, ...] = ()
    engine: str | None = None
    untranslated: dict[str, str] = Field(default_factory=dict)
    ignored: tuple[str, ...] = ()
