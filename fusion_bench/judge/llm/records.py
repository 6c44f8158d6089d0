"""What a model's file of grades says of its making: the record that stands beside it."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from fusion_bench.config.models import StrictModel


class GradesMeta(StrictModel):
    """Provenance of the grades of one model.

    Attributes:
        format: Always ``fusion-bench-machine-grades``.
        format_version: Always 1.
        grades_sha256: SHA-256 of the file of grades as it was written.
        created: When, UTC, ISO 8601.
        dataset: The dataset.
        judge: Name of the judge.
        family: Family of the model; None = not declared.
        asked: The model that was asked, as ``chat/MODEL``.
        models: Model as the provider resolved it → its answers; several where the provider
            changed it meanwhile.
        endpoint: URL of the endpoint.
        prompt_sha256: SHA-256 of everything in the prompts but the texts.
        examples: Query, document and grade of each pair that may stand in a prompt.
        temperature: Sampling temperature; None = the provider's own.
        samples: Answers for each pair.
        combine: How they become one grade.
        pairs: Pairs of query and document.
        by_grade: Grade → pairs that have it.
        refused: Pairs without a grade because the model declines.
        malformed: Pairs without a grade because no answer could be read.
        failed: Pairs without an answer.
        unread_answers: Refused and malformed answers among all samples.
        mean_spread: Mean standard deviation of the samples of a pair; None with one sample.
        ungraded: The first pairs without a grade: ``QUERY DOCUMENT: PROBLEM: REASON``.
        ledger: What all runs with this model on this dataset cost, see ``rerank.ledger``.
    """

    format: Literal["fusion-bench-machine-grades"] = "fusion-bench-machine-grades"
    format_version: Literal[1] = 1
    grades_sha256: str
    created: str
    dataset: str
    judge: str
    family: str | None
    asked: str
    models: dict[str, int]
    endpoint: str
    prompt_sha256: str
    examples: tuple[tuple[str, str, int], ...] = ()
    temperature: float | None
    samples: int
    combine: Literal["majority", "mean"]
    pairs: int
    by_grade: dict[str, int]
    refused: int
    malformed: int
    failed: int
    unread_answers: int
    mean_spread: float | None
    ungraded: tuple[str, ...] = ()
    ledger: dict[str, Any] = Field(default_factory=dict)

    @property
    def graded(self) -> int:
        """Pairs with a grade."""
        return sum(self.by_grade.values())
