"""What a report says of unjudged documents: how many there are, and which answers they decide."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fusion_bench.evaluation.report_records.collection import Collection
from fusion_bench.evaluation.report_records.results.unjudged import SPARSE
from fusion_bench.report.judging.judge_line import JudgePlace, format_judge_line
from fusion_bench.stats.unjudged_rule import MAX_UNJUDGED
from fusion_bench.util.formatting import format_number, format_percent, list_names


def unjudged_warnings(
    shares: Mapping[str, float], judgments: str | None, *, is_sparse: bool = False
) -> Iterator[tuple[str, str]]:
    """Key and text where too many documents are unjudged to trust a measure.

    Args:
        shares: System → share of unjudged documents in its top 10.
        judgments: What an unjudged document means; None = not declared.
        is_sparse: Whether no document is judged not relevant.
    """
    many = {name: share for name, share in shares.items() if share > MAX_UNJUDGED}
    if many and judgments != "complete":
        sparse = f" {SPARSE}" if is_sparse else ""
        yield (
            "unjudged",
            f"More than {MAX_UNJUDGED:.0%} of the top 10 is unjudged for {list_names([*many])} "
            f"(at most {format_percent(max(many.values()))}). Relevant documents may count as "
            f"not relevant.{sparse}",
        )


def describe_decided(collection: Collection, place: JudgePlace) -> str:
    """Which differences unjudged documents decide, with both others; empty = none.

    Args:
        collection: What was compared.
        place: What is judged.
    """
    decided = [c for c in collection.ranked_comparisons if c.answer == "unjudged decide"]
    if not decided:
        return ""
    first, names = decided[0], [each.candidate for each in decided]
    # The experiment that try saves may have another baseline.
    baseline = None if place.is_file else first.baseline
    views = "" if first.unjudged is None else f": {first.unjudged.description}"
    return (
        f"Unjudged documents decide the difference of {list_names(names)} from the baseline. "
        f"{first.candidate} differs by {format_number(first.difference, signed=True)}{views}. "
        "If unlisted documents are not relevant, set judgments: complete. "
        f"Judge these first: {format_judge_line(place, first.candidate, baseline)}"
    )
