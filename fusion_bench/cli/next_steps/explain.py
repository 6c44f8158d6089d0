"""The commands that follow an explanation of a query, or a diagnosis of all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fusion_bench.cli.next_steps.command_words import format_explain
from fusion_bench.report.page import NextStep

if TYPE_CHECKING:
    from fusion_bench.explain.diagnose_failures import FailureKind
    from fusion_bench.explain.diagnosis import Diagnosis
    from fusion_bench.explain.score_trace import Explanation


def after_explain(
    explanation: Explanation,
    experiment: Path,
    dataset: str | None,
    datasets: Sequence[Path] | None,
    overrides: Sequence[str] | None,
) -> Iterator[NextStep]:
    """Every term of the first document."""
    if not explanation.traces:
        return
    document = explanation.traces[0].document
    command = format_explain(
        explanation.query,
        document,
        experiment=experiment,
        system=explanation.system,
        dataset=dataset,
        datasets=datasets,
        overrides=overrides,
    )
    yield NextStep(command, f"every term of {document}")


def after_diagnose(
    diagnosis: Diagnosis,
    experiment: Path,
    dataset: str | None,
    *,
    listed: FailureKind | None,
    datasets: Sequence[Path] | None,
    overrides: Sequence[str] | None,
) -> Iterator[NextStep]:
    """Explain the worst failure.

    Args:
        diagnosis: The failures.
        experiment: Its file.
        dataset: The first diagnosed dataset, as the experiment names it; None = it has one only.
        listed: The kind that was asked for; None = any.
        datasets: Folders of named datasets, as given.
        overrides: Values of ``--set``.
    """
    from fusion_bench.explain.worst_failure import find_worst_failure

    worst = find_worst_failure(diagnosis.collections[0], listed)
    if worst is None:
        return
    # No list has a miss, so it has no score to explain.
    document = () if worst.kind == "miss" else (worst.failure.document,)
    command = format_explain(
        *(worst.failure.query, *document),
        experiment=experiment,
        system=worst.system,
        dataset=dataset,
        datasets=datasets,
        overrides=overrides,
    )
    yield NextStep(command, f"the worst {worst.kind} of {worst.system}")
