"""Agreement of judges as a page."""

from __future__ import annotations

from collections.abc import Iterator

from fusion_bench.grades.agreement.records import AgreementReport, KappaResult, PairAgreement
from fusion_bench.report.page import Column, Finding, Page, Row, Section, Table
from fusion_bench.util.formatting import (
    format_interval,
    format_number,
    format_percent,
    pluralize,
)

NOTE = (
    "κ = Cohen's kappa: 1 = equal on every pair, 0 = as two judges agree by chance. Brackets: 95 % "
    "interval over queries (jackknife). Difference: mean grade of the judge − the reference's."
)


def build_agreement_page(report: AgreementReport) -> Page:
    """A table of all comparisons, then a section for each."""
    sections = [Section(parts=(_build_table(report),))]
    sections += [_build_section(each) for each in report.comparisons if each.pairs]
    first, *others = (_describe(report, each) for each in report.comparisons)
    return Page("Agreement of judges", tuple(sections), Finding(first, details=tuple(others)))


def format_kappa(result: KappaResult) -> str:
    """κ and its interval, such as ``.301 [.262, .340]``."""
    if result.kappa is None:
        return "not defined"
    interval = format_interval(result.low, result.high)
    return (
        f"{format_number(result.kappa)} {interval}"
        if result.low is not None
        else (format_number(result.kappa))
    )


def _describe(report: AgreementReport, comparison: PairAgreement) -> str:
    names = f"{comparison.judge} and {comparison.reference}"
    if not comparison.pairs:
        return f"{names} graded no document in common."
    return (
        f"{names}: κ {format_kappa(comparison.graded)} graded, {format_kappa(comparison.binary)} "
        f"relevant from grade {report.binary_relevance}, over "
        f"{pluralize(comparison.pairs, 'pair')} of {pluralize(comparison.queries, 'query')}."
    )


def _build_table(report: AgreementReport) -> Table:
    is_weighted = report.weighting != "none"
    columns = (
        Column("reference", is_text=True, is_name=True),
        Column("judge", is_text=True, is_name=True),
        *map(Column, ("pairs", "queries", "κ graded")),
        *((Column(f"κ {report.weighting}"),) if is_weighted else ()),
        Column(f"κ from grade {report.binary_relevance}"),
        Column("equal"),
        Column("difference", is_optional=True),
    )
    rows = []
    for each in report.comparisons:
        weighted = () if each.weighted is None else (format_kappa(each.weighted),)
        rows.append(
            Row(
                (
                    each.reference,
                    each.judge,
                    f"{each.pairs:,}",
                    f"{each.queries:,}",
                    format_kappa(each.graded),
                    *weighted,
                    format_kappa(each.binary),
                    format_percent(each.equal),
                    format_number(each.mean_difference, signed=True),
                )
            )
        )
    return Table("Agreement", columns, tuple(rows), (NOTE,))


def _build_section(comparison: PairAgreement) -> Section:
    judge, reference = comparison.judge, comparison.reference
    columns = (
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
    findings = tuple(_describe_lowering(comparison))
    return Section(f"{judge} against {reference}", findings=findings, parts=(table,))


def _describe_lowering(comparison: PairAgreement) -> Iterator[Finding]:
    if comparison.lowering:
        lines = tuple(
            f"{each.query}: {format_percent(each.equal)} of {pluralize(each.pairs, 'pair')} equal; "
            f"κ without it {format_number(each.kappa_without)}"
            for each in comparison.lowering
        )
        text = f"Queries that lower κ ({format_number(comparison.graded.kappa)}) most:"
        yield Finding(text, key="queries", details=lines)
