"""What unjudged documents could change in one difference."""

from __future__ import annotations

from fusion_bench.evaluation.report_records.record import OptionalFloat, ReportRecord
from fusion_bench.stats.unjudged_rule import CONDITION
from fusion_bench.util.formatting import format_difference, format_number, format_percent

#: Why two of the three views are missing.
SPARSE = (
    "No document is judged not relevant, so neither a difference over judged documents only nor a "
    "filled one can be computed."
)
#: What is asked for where the dataset does not say why.
DECLARE = (
    f"Every answer needs a condition: it holds {CONDITION}. Declare judgments in dataset.yaml: "
    "pooled (the results of some systems were judged), sparse (links of authors) or complete."
)


class UnjudgedResult(ReportRecord):
    """One difference, candidate − baseline, seen through its unjudged documents.

    Attributes:
        candidate_share: Mean share of unjudged documents in the candidate's top 10.
        baseline_share: In the baseline's.
        judged_only: The difference over judged documents only; None = not computed, as no
            document is judged not relevant.
        low: Lower end of its interval; None where no spread is known.
        high: Upper end.
        filled: The difference where an unjudged document has the mean gain of the same system's
            judged documents at its rank; None = not computed, as above, or the measure has no
            formula for it, or no list has a judged document.
        is_conditional: No document is judged not relevant, and the dataset does not declare why:
            an answer holds if unjudged documents are not relevant.
    """

    candidate_share: float
    baseline_share: float
    judged_only: OptionalFloat = None
    low: OptionalFloat = None
    high: OptionalFloat = None
    filled: OptionalFloat = None
    is_conditional: bool = False

    @property
    def condition(self) -> str:
        """What an answer needs, to be put behind it; empty = nothing."""
        return f" {CONDITION}" if self.is_conditional else ""

    @property
    def has_unjudged(self) -> bool:
        """Whether either system returns an unjudged document in its top 10."""
        return max(self.candidate_share, self.baseline_share) > 0

    @property
    def description(self) -> str:
        """All three views in one line."""
        shares = (
            f"unjudged in the top 10: {format_percent(self.candidate_share)} "
            f"(baseline {format_percent(self.baseline_share)})"
        )
        if self.judged_only is None:
            return f"{shares}; no document is judged not relevant, so no difference corrects for it"
        judged = format_difference(self.judged_only, self.low, self.high)
        filled = "not computed" if self.filled is None else format_number(self.filled, signed=True)
        return f"{shares}; over judged documents only {judged}; unjudged filled {filled}"
