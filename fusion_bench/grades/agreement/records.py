"""What ``fusion-bench grades agreement --json`` prints."""

from __future__ import annotations

from typing import Any, Literal

from fusion_bench.evaluation.report_records.record import OptionalFloat, ReportRecord
from fusion_bench.io.specs.judgment_specs import JudgeKind
from fusion_bench.stats.agreement.kappa import Weighting
from fusion_bench.util.formatting import format_number, pluralize
from fusion_bench.util.table_view import Columns, TableView

#: Pairs of judges that a summary names.
NAMED_PAIRS = 3


class KappaResult(ReportRecord):
    """Cohen's kappa; None where both judges give one grade alone.

    Attributes:
        kappa: κ over all pairs.
        low: Lower end of the 95 % interval over queries; None with one query.
        high: Upper end.
    """

    kappa: OptionalFloat
    low: OptionalFloat
    high: OptionalFloat


class GradeAgreement(ReportRecord):
    """Agreement on one grade.

    Attributes:
        grade: The grade.
        reference: Pairs to which the reference judge gave it.
        judge: Pairs to which the other judge gave it.
        both: Pairs to which both gave it.
        recall: ``both`` / ``reference``; None where the reference never gave it.
        precision: ``both`` / ``judge``; None where the other never gave it.
    """

    grade: int
    reference: int
    judge: int
    both: int
    recall: OptionalFloat
    precision: OptionalFloat


class QueryAgreement(ReportRecord):
    """What one query does to κ.

    Attributes:
        query: Its id.
        pairs: Its double-judged documents.
        equal: Share of them with equal grades.
        kappa_without: κ (graded, unweighted) without this query.
    """

    query: str
    pairs: int
    equal: float
    kappa_without: OptionalFloat


class PairAgreement(ReportRecord):
    """Agreement of one judge with a reference judge.

    Attributes:
        reference: The judge that is taken as the reference: people where there are some.
        judge: The other judge.
        reference_kind: Who it is; None = not known.
        judge_kind: Likewise.
        queries: Queries with double-judged documents.
        pairs: Double-judged pairs of query and document.
        equal: Share of them with equal grades; None without pairs.
        mean_difference: Mean of the judge's grade − the reference's; None without pairs.
        graded: κ of the grades.
        weighted: κ with disagreements weighted by distance; None = not asked for.
        binary: κ of relevant and not relevant.
        grades: The K grades, ascending.
        confusion: (K, K): pairs by the reference's grade (row) and the judge's (column).
        per_grade: Agreement on each grade.
        lowering: The queries that lower κ most, the worst first.
    """

    reference: str
    judge: str
    reference_kind: JudgeKind | None = None
    judge_kind: JudgeKind | None = None
    queries: int
    pairs: int
    equal: OptionalFloat
    mean_difference: OptionalFloat
    graded: KappaResult
    weighted: KappaResult | None = None
    binary: KappaResult
    grades: tuple[int, ...]
    confusion: tuple[tuple[int, ...], ...]
    per_grade: tuple[GradeAgreement, ...]
    lowering: tuple[QueryAgreement, ...]


class AgreementReport(TableView, ReportRecord):
    """Agreement of judges.

    Attributes:
        format: Always ``fusion-bench-agreement``.
        format_version: Always 1.
        binary_relevance: Grade from which a document counts as relevant.
        weighting: How ``weighted`` weights disagreements; ``none`` = it is not computed.
        comparisons: One for each two judges.
    """

    format: Literal["fusion-bench-agreement"] = "fusion-bench-agreement"
    format_version: Literal[1] = 1
    binary_relevance: int
    weighting: Weighting = "none"
    comparisons: tuple[PairAgreement, ...]

    def to_dict(self) -> dict[str, Any]:
        """Everything, as ``fusion-bench grades agreement --json`` prints it."""
        return self.model_dump(mode="json")

    def _summary(self) -> str:
        named = [
            f"{each.judge} - {each.reference} κ {format_number(each.graded.kappa)}"
            for each in self.comparisons[:NAMED_PAIRS]
        ]
        more = ["…"] if len(self.comparisons) > NAMED_PAIRS else []
        pairs = pluralize(len(self.comparisons), "pair")
        return f"AgreementReport({pairs} of judges: {', '.join([*named, *more])})"

    def _table_columns(self, limit: int | None = None) -> Columns:
        """One row a pair of judges."""
        rows = self.comparisons[:limit]
        columns: dict[str, list[Any]] = {
            name: [getattr(each, name) for each in rows]
            for name in ("reference", "judge", "pairs", "queries", "equal", "mean_difference")
        }
        kinds = (
            ("graded", "binary") if self.weighting == "none" else ("graded", "weighted", "binary")
        )
        for kind in kinds:
            results = [getattr(each, kind) for each in rows]
            columns[f"{kind}_kappa"] = [each.kappa for each in results]
            columns[f"{kind}_low"] = [each.low for each in results]
            columns[f"{kind}_high"] = [each.high for each in results]
        return columns
