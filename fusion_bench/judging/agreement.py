"""Agreement of each two judges of a dataset, before any of their grades count."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from fusion_bench.config.json_records import OptionalFloat, ReportRecord
from fusion_bench.data.ordering import FloatArray
from fusion_bench.data.qrels import Qrels
from fusion_bench.errors import ConfigError, DataError, UnknownNameError
from fusion_bench.io.dataset import load_dataset, load_judge
from fusion_bench.io.dataset_config import JudgeKind
from fusion_bench.io.looks import record_shown
from fusion_bench.report.page import Column, Finding, Page, Row, Section, Table, make_table
from fusion_bench.stats.agreement import (
    GradePairs,
    Kappa,
    Weighting,
    make_weights,
    measure_kappa,
    pair_grades,
)
from fusion_bench.util.formatting import (
    Columns,
    TableView,
    format_interval,
    format_number,
    format_percent,
    pluralize,
)

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
        weighted = () if self.weighting == "none" else ("weighted",)
        for kind in ("graded", *weighted, "binary"):
            results = [getattr(each, kind) for each in rows]
            for field in ("kappa", "low", "high"):
                columns[f"{kind}_{field}"] = [getattr(each, field) for each in results]
        return columns


#: Most queries that are listed because they lower κ.
MOST_QUERIES = 5


@dataclass(frozen=True)
class JudgeGrades:
    """The grades of one judge.

    Attributes:
        qrels: The grades.
        kind: People or a machine; None = not known.
    """

    qrels: Qrels
    kind: JudgeKind | None = None


def measure_agreement(
    judges: Mapping[str, JudgeGrades],
    *,
    binary_relevance: int,
    weighting: Weighting = "none",
    references: Collection[str] = (),
) -> AgreementReport:
    """Agreement of each judge with each reference judge.

    Args:
        judges: Grades by judge, at least two.
        binary_relevance: Grade from which a document counts as relevant.
        weighting: With another than ``none``, weighted κ too.
        references: The judges that others are compared with; by default those of kind ``human``,
            and where there are none, every two judges are compared.

    Raises:
        UnknownNameError: A reference is no judge.
        ConfigError: There are fewer than two judges, or no such weighting or grade of relevance.
        DataError: No two judges graded the same document.
    """
    if weighting not in get_args(Weighting):
        raise ConfigError(f"weighting: no {weighting!r}; known: {', '.join(get_args(Weighting))}")
    if binary_relevance < 1:
        raise ConfigError(f"binary_relevance: at least 1 is needed, not {binary_relevance}")
    for name in references:
        if name not in judges:
            raise UnknownNameError("judge", name, judges, where="--human-judge")
    if len(judges) < 2:
        raise ConfigError(
            f"agreement needs two judges, given {', '.join(judges) or 'none'}: name another file "
            "of grades, or add one under 'judges' of dataset.yaml"
        )
    chosen = [*references] or [name for name, judge in judges.items() if judge.kind == "human"]
    ordered = [*chosen, *(name for name in judges if name not in chosen)]
    comparisons = tuple(
        _compare_judges(pair, judges, binary_relevance, weighting)
        for pair in combinations(ordered, 2)  # two references are compared once
        if not chosen or pair[0] in chosen
    )
    if not any(each.pairs for each in comparisons):
        raise DataError(
            f"no two of the judges {', '.join(judges)} graded the same document: check that their "
            "files use the same query and document ids"
        )
    return AgreementReport(
        binary_relevance=binary_relevance, weighting=weighting, comparisons=comparisons
    )


def _compare_judges(
    names: tuple[str, str],
    judges: Mapping[str, JudgeGrades],
    binary_relevance: int,
    weighting: Weighting,
) -> PairAgreement:
    first, second = (judges[name] for name in names)
    pairs = pair_grades(first.qrels, second.qrels)
    total, count = pairs.total, int(pairs.counts.sum())
    graded = measure_kappa(pairs.counts, make_weights(pairs.grades, "none"))
    binary = measure_kappa(pairs.binary_counts(binary_relevance), make_weights((0, 1), "none"))
    weighted = None
    if weighting != "none":
        weighted = _record(measure_kappa(pairs.counts, make_weights(pairs.grades, weighting)))
    per_grade = []
    for i, grade in enumerate(pairs.grades):
        reference, judge, both = total[i].sum(), total[:, i].sum(), total[i, i]
        each = GradeAgreement(
            grade=grade,
            reference=int(reference),
            judge=int(judge),
            both=int(both),
            recall=float(both / reference) if reference else math.nan,
            precision=float(both / judge) if judge else math.nan,
        )
        per_grade.append(each)
    distance = np.subtract.outer(np.array(pairs.grades), np.array(pairs.grades)).T
    return PairAgreement(
        reference=names[0],
        judge=names[1],
        reference_kind=first.kind,
        judge_kind=second.kind,
        queries=len(pairs.queries),
        pairs=count,
        equal=float(np.trace(total) / count) if count else None,
        mean_difference=float((distance * total).sum() / count) if count else None,
        graded=_record(graded),
        weighted=weighted,
        binary=_record(binary),
        grades=pairs.grades,
        confusion=tuple(tuple(row) for row in total.tolist()),
        per_grade=tuple(per_grade),
        lowering=tuple(_list_lowering(pairs, graded)),
    )


def _record(kappa: Kappa) -> KappaResult:
    return KappaResult(kappa=kappa.value, low=kappa.low, high=kappa.high)


def _list_lowering(pairs: GradePairs, kappa: Kappa) -> Iterator[QueryAgreement]:
    """The queries without which κ is higher, by how much it is."""
    without: FloatArray = np.nan_to_num(kappa.without_query, nan=-math.inf)
    for q in np.argsort(-without, kind="stable")[:MOST_QUERIES].tolist():
        if without[q] > kappa.value:
            counts = pairs.counts[q]
            yield QueryAgreement(
                query=pairs.queries[q],
                pairs=int(counts.sum()),
                equal=float(np.trace(counts) / counts.sum()),
                kappa_without=float(without[q]),
            )


def read_judges(path: Path) -> tuple[dict[str, JudgeGrades], int]:
    """The grades of each judge by name, the judgments as ``qrels``; and the grade of relevance.

    Args:
        path: The ``dataset.yaml``.

    Raises:
        ConfigError: It names no further judge.
        DataError: A file breaks a rule.
    """
    dataset = load_dataset(path, runs=(), rerankers=(), every_query=None)
    record_shown(dataset.folder, dataset.qrels, dataset.qrels.queries)
    spec = dataset.spec
    if not spec.judges:
        raise ConfigError(
            f"{path}: no 'judges': add the file of a second judge, such as "
            "judges: {people: {path: people.csv, kind: human}}"
        )
    judges = {} if spec.qrels is None else {"qrels": JudgeGrades(dataset.qrels, spec.qrels.kind)}
    judges |= {
        name: JudgeGrades(load_judge(dataset, name), judge.kind)
        for name, judge in spec.judges.items()
    }
    return judges, spec.binary_relevance


NOTE = (
    "κ = Cohen's kappa: 1 = equal on every pair, 0 = as two judges agree by chance. Brackets: 95 % "
    "interval over queries (jackknife). Difference: mean grade of the judge − the reference's."
)


def build_agreement_page(report: AgreementReport) -> Page:
    """A table of all comparisons, then a section for each."""
    is_weighted = report.weighting != "none"
    weighted = Column[KappaResult](f"κ {report.weighting}", _format_kappa)
    columns: list[Column[PairAgreement]] = [
        Column("reference", lambda each: each.reference, is_text=True, is_name=True),
        Column("judge", lambda each: each.judge, is_text=True, is_name=True),
        Column("pairs", lambda each: f"{each.pairs:,}"),
        Column("queries", lambda each: f"{each.queries:,}"),
        Column("κ graded", lambda each: _format_kappa(each.graded)),
        *([weighted.of(lambda each: each.weighted)] if is_weighted else ()),
        Column(f"κ from grade {report.binary_relevance}", lambda e: _format_kappa(e.binary)),
        Column("equal", lambda each: format_percent(each.equal)),
        Column(
            "difference", lambda e: format_number(e.mean_difference, signed=True), is_optional=True
        ),
    ]
    sections = [
        Section(parts=(make_table("Agreement", columns, report.comparisons, notes=(NOTE,)),))
    ]
    sections += [_build_section(each) for each in report.comparisons if each.pairs]
    lines = []
    for each in report.comparisons:
        names = f"{each.judge} and {each.reference}"
        line = f"{names} graded no document in common."
        if each.pairs:
            line = (
                f"{names}: κ {_format_kappa(each.graded)} graded, {_format_kappa(each.binary)} "
                f"relevant from grade {report.binary_relevance}, over "
                f"{pluralize(each.pairs, 'pair')} of {pluralize(each.queries, 'query')}."
            )
        lines.append(line)
    headline = Finding(lines[0], details=tuple(lines[1:]))
    return Page("Agreement of judges", tuple(sections), headline)


def _format_kappa(result: KappaResult) -> str:
    """κ and its interval, such as ``.301 [.262, .340]``."""
    if result.kappa is None:
        return "not defined"
    interval = "" if result.low is None else f" {format_interval(result.low, result.high)}"
    return f"{format_number(result.kappa)}{interval}"


def _build_section(comparison: PairAgreement) -> Section:
    judge, reference = comparison.judge, comparison.reference
    columns: tuple[Column[object], ...] = (
        Column(reference, is_text=True),
        *(Column(f"{judge} {grade}") for grade in comparison.grades),
        Column("recall"),
    )
    rows = [
        Row((f"grade {each.grade}", *(f"{n:,}" for n in counts), format_percent(each.recall)))
        for each, counts in zip(comparison.per_grade, comparison.confusion, strict=True)
    ]
    precision = (format_percent(each.precision) for each in comparison.per_grade)
    rows.append(Row(("precision", *precision, ""), "reference"))
    note = (
        f"Rows: grades of {reference}; columns: grades of {judge}. Recall = share of the "
        f"reference's grade that {judge} gives too; precision = share of {judge}'s grade that "
        f"{reference} gives too."
    )
    table = Table("Grades", columns, tuple(rows), (note,))
    findings: tuple[Finding, ...] = ()
    if comparison.lowering:
        lines = tuple(
            f"{each.query}: {format_percent(each.equal)} of {pluralize(each.pairs, 'pair')} equal; "
            f"κ without it {format_number(each.kappa_without)}"
            for each in comparison.lowering
        )
        text = f"Queries that lower κ ({format_number(comparison.graded.kappa)}) most:"
        findings = (Finding(text, key="queries", details=lines),)
    return Section(f"{judge} against {reference}", findings=findings, parts=(table,))
