"""What ``fusion-bench grades sensitivity --json`` prints."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from fusion_bench.evaluation.report_records.data_warning import DataWarning
from fusion_bench.evaluation.report_records.record import OptionalFloat, ReportRecord
from fusion_bench.evaluation.report_records.report import Provenance
from fusion_bench.io.specs.judgment_specs import JudgeKind
from fusion_bench.stats.answers import Answer
from fusion_bench.util.formatting import list_names, pluralize
from fusion_bench.util.table_view import Columns, TableView

#: What judges say of a system together: the same; better and worse; shown by some of them only.
Stability: TypeAlias = Literal["same", "reversed", "not shown by all"]


class ComparedJudge(ReportRecord):
    """One judge.

    Attributes:
        name: Its name; ``qrels`` = the judgments.
        kind: People or a machine.
        family: The family of the machine's model; None = not stated.
        queries: The queries that it graded.
        sample: How these were chosen; None = not stated.
        unjudged: System → share of its top 10 without a grade, over the common queries.
        related: The lists that come from the judge's own model family.
    """

    name: str
    kind: JudgeKind
    family: str | None
    queries: int
    sample: Literal["random", "chosen"] | None
    unjudged: dict[str, OptionalFloat]
    related: tuple[str, ...] = ()


class JudgeVerdict(ReportRecord):
    """One system under the grades of one judge, on the primary measure.

    Attributes:
        judge: Its name.
        mean: Over the common queries.
        difference: To the baseline; None for the baseline itself.
        low: Lower end of its interval; None likewise, and with one group.
        high: Upper end.
        p_adjusted: Over all systems; None for the baseline.
        answer: As ``eval`` gives it; None for the baseline.
        shift: This judge's difference − the reference judge's; None for either's own row.
        shift_low: Lower end of the interval of the shift; these hold together (Bonferroni).
        shift_high: Upper end.
    """

    judge: str
    mean: OptionalFloat
    difference: OptionalFloat = None
    low: OptionalFloat = None
    high: OptionalFloat = None
    p_adjusted: OptionalFloat = None
    answer: Answer | None = None
    shift: OptionalFloat = None
    shift_low: OptionalFloat = None
    shift_high: OptionalFloat = None


class SystemSensitivity(ReportRecord):
    """One system under the grades of every judge.

    Attributes:
        system: Its name.
        verdicts: One a judge, in their order.
        stability: What they say together; None for the baseline.
    """

    system: str
    verdicts: tuple[JudgeVerdict, ...]
    stability: Stability | None


class OrderAgreement(ReportRecord):
    """How far two judges agree on the order of the systems.

    Attributes:
        first: The one.
        second: The other.
        tau: Kendall's τ-b; None where one of them gives all systems the same mean.
        agreeing: Pairs of systems in the same order.
        opposite: Pairs in the opposite order.
        tied: Pairs with equal means to one of them.
        swapped: The pairs in the opposite order, the better one to the first judge first.
    """

    first: str
    second: str
    tau: OptionalFloat
    agreeing: int
    opposite: int
    tied: int
    swapped: tuple[tuple[str, str], ...]


class JudgeSensitivity(TableView, ReportRecord):
    """The systems of an experiment under the grades of several judges.

    Attributes:
        name: The experiment.
        dataset: The dataset.
        measure: The primary measure.
        baseline: The system compared with.
        alpha: Level of each judge's comparisons together.
        min_gain: A smaller difference is not worth a change.
        queries: The queries that all judges graded.
        judges: The first is the reference.
        systems: In the order of the experiment.
        orders: One a pair of judges.
        data_warnings: Greatest grades that differ; judges whose family also made a list that the
            systems read.
        provenance: What made it.
    """

    name: str
    dataset: str
    measure: str
    baseline: str
    alpha: float
    min_gain: float
    queries: int
    judges: tuple[ComparedJudge, ...]
    systems: tuple[SystemSensitivity, ...]
    orders: tuple[OrderAgreement, ...]
    data_warnings: tuple[DataWarning, ...] = ()
    provenance: Provenance

    @property
    def unstable(self) -> tuple[SystemSensitivity, ...]:
        """The systems of which not all judges say the same."""
        return tuple(each for each in self.systems if each.stability not in (None, "same"))

    def to_dict(self) -> dict[str, Any]:
        """Everything, as ``fusion-bench grades sensitivity --json`` prints it."""
        return self.model_dump(mode="json")

    def _summary(self) -> str:
        judges = pluralize(len(self.judges), "judge")
        unstable = list_names([each.system for each in self.unstable]) or "no system"
        return (
            f"JudgeSensitivity({self.dataset}, {self.measure}: {judges} on "
            f"{pluralize(self.queries, 'query')})\nThe verdict depends on the judge for: {unstable}"
        )

    def _table_columns(self, limit: int | None = None) -> Columns:
        """One row a system and judge."""
        rows = [(each, verdict) for each in self.systems for verdict in each.verdicts][:limit]
        return {
            "system": [each.system for each, _ in rows],
            **{
                name: [getattr(verdict, name) for _, verdict in rows]
                for name in JudgeVerdict.model_fields
            },
            "stability": [each.stability for each, _ in rows],
        }
