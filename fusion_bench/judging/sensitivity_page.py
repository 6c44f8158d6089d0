"""The same systems under several judges, as a page."""

from __future__ import annotations

from collections.abc import Iterator

from fusion_bench.checks.judges import SHARED_FAMILY
from fusion_bench.judging.sensitivity import JudgeSensitivity, OrderAgreement, SystemSensitivity
from fusion_bench.report.answer_texts import format_answer
from fusion_bench.report.data_warnings import judge_section
from fusion_bench.report.page import Column, Finding, Page, Row, Section, Table, Tone
from fusion_bench.util.formatting import (
    format_coverage,
    format_difference,
    format_interval,
    format_number,
    format_p_value,
    format_percent,
    list_names,
    pluralize,
)

#: Share of a top 10 without grades from which a warning says so.
MUCH_UNJUDGED = 0.2
#: Pairs of systems that a table names.
NAMED_PAIRS = 3


def build_sensitivity_page(sensitivity: JudgeSensitivity) -> Page:
    """Means, verdicts and orders by judge."""
    section = Section(
        facts=dict(_list_facts(sensitivity)),
        summary="; ".join(f"{name} {value}" for name, value in _list_facts(sensitivity)),
        findings=tuple(_list_warnings(sensitivity)),
        parts=(
            _build_mean_table(sensitivity),
            _build_verdict_table(sensitivity),
            _build_order_table(sensitivity),
        ),
    )
    headline = Finding(_describe(sensitivity), _find_tone(sensitivity), key="decision")
    made = sensitivity.provenance
    facts = {
        "created": made.created,
        "experiment": f"{made.source} (SHA-256 {made.source_sha256})",
        "versions": ", ".join(f"{name} {v}" for name, v in made.versions.items()),
    }
    provenance = Section("Provenance", summary=f"{made.source}, {made.created}", facts=facts)
    sections = (*judge_section(sensitivity.data_warnings), section)
    return Page(f"Judges of {sensitivity.name}", sections, headline, provenance)


def _list_facts(sensitivity: JudgeSensitivity) -> Iterator[tuple[str, str]]:
    yield "dataset", sensitivity.dataset
    yield "queries that all judges graded", f"{sensitivity.queries:,}"
    yield "reference", sensitivity.judges[0].name
    yield "baseline", sensitivity.baseline


def _list_warnings(sensitivity: JudgeSensitivity) -> Iterator[Finding]:
    for judge in sensitivity.judges:
        if judge.queries > sensitivity.queries:
            text = (
                f"{judge.name!r} graded {judge.queries:,} queries. The comparison is over the "
                f"{sensitivity.queries:,} that all of these judges graded: choose judges with "
                "--judge."
            )
            yield Finding(text, "warning", "common queries")
        if judge.related:
            text = (
                f"{judge.name!r} is of the same model family as {list_names(judge.related)}, and "
                "may favor them."
            )
            yield Finding(text, "warning", SHARED_FAMILY)
        if judge.sample == "chosen":
            text = (
                f"The queries of {judge.name!r} are no random sample: the verdicts hold for these "
                "queries alone."
            )
            yield Finding(text, "warning", "chosen queries")
        shares = {name: share for name, share in judge.unjudged.items() if share is not None}
        most = max(shares, key=lambda name: shares[name], default=None)
        if most is not None and shares[most] > MUCH_UNJUDGED:
            text = (
                f"{judge.name!r} did not grade {format_percent(shares[most])} of the top 10 of "
                f"{most}. These documents count as not relevant."
            )
            yield Finding(text, "warning", "unjudged documents")


def _build_mean_table(sensitivity: JudgeSensitivity) -> Table:
    """A column a judge: the mean of each system, and its place."""
    places = {
        judge.name: sorted(
            (each.verdicts[n].mean or 0.0 for each in sensitivity.systems), reverse=True
        )
        for n, judge in enumerate(sensitivity.judges)
    }
    rows = tuple(
        Row(
            (
                each.system,
                *(
                    f"{format_number(v.mean)} ({places[v.judge].index(v.mean or 0.0) + 1})"
                    for v in each.verdicts
                ),
            ),
            "baseline" if each.system == sensitivity.baseline else "plain",
        )
        for each in sensitivity.systems
    )
    columns: tuple[Column[object], ...] = (
        Column("system", is_text=True),
        *(Column(each.name) for each in sensitivity.judges),
    )
    note = "In brackets: the place among the systems; equal means share the better one."
    return Table(f"{sensitivity.measure} by judge", columns, rows, (note,))


def _build_verdict_table(sensitivity: JudgeSensitivity) -> Table:
    """A row a system and judge."""
    coverage = format_coverage(sensitivity.alpha)
    columns: tuple[Column[object], ...] = (
        Column("system", is_text=True),
        Column("judge", is_text=True, is_name=True),
        Column("difference"),
        Column(f"{coverage} interval"),
        Column("adjusted p"),
        Column("verdict", is_text=True, is_name=True),
        Column(f"shift from {sensitivity.judges[0].name}"),
        Column("together", is_text=True, is_name=True),
    )
    rows = tuple(row for each in sensitivity.systems for row in _list_rows(sensitivity, each))
    notes = (
        f"Verdicts are those of eval under each judge: adjusted p and {coverage} intervals of one "
        "judge hold together.",
        "Shift: this judge's difference − the reference's, paired by query; all these intervals "
        "hold together (Bonferroni). Where one includes 0, no bias between the two is shown, even "
        "if their verdicts differ.",
    )
    return Table(
        f"{sensitivity.measure}: difference to {sensitivity.baseline}", columns, rows, notes
    )


def _list_rows(sensitivity: JudgeSensitivity, each: SystemSensitivity) -> Iterator[Row]:
    if each.stability is None:
        return
    tone: Tone = "plain" if each.stability == "same" else "warning"
    for n, verdict in enumerate(each.verdicts):
        shift = ""
        if verdict.shift is not None:
            shift = format_difference(verdict.shift, verdict.shift_low, verdict.shift_high)
        cells = (
            each.system if n == 0 else "",
            verdict.judge,
            format_number(verdict.difference, signed=True),
            format_interval(verdict.low, verdict.high, signed=True),
            format_p_value(verdict.p_adjusted, alpha=sensitivity.alpha),
            format_answer(verdict.answer, sensitivity.min_gain, alpha=sensitivity.alpha),
            shift,
            each.stability if n == 0 else "",
        )
        yield Row(cells, tone)


def _build_order_table(sensitivity: JudgeSensitivity) -> Table:
    """A row a pair of judges."""
    columns: tuple[Column[object], ...] = (
        Column("judges", is_text=True, is_name=True),
        Column("Kendall's τ"),
        Column("same order"),
        Column("opposite"),
        Column("tied"),
        Column("swapped", is_text=True),
    )
    rows = tuple(
        Row(
            (
                f"{each.first}, {each.second}",
                format_number(each.tau, signed=True),
                str(each.agreeing),
                str(each.opposite),
                str(each.tied),
                _list_pairs(each),
            )
        )
        for each in sensitivity.orders
    )
    notes = (
        "τ-b over the means of the systems, the baseline included: 1 = the same order, 0 = no "
        "agreement, -1 = the opposite one. Tied: equal means to one of the two judges.",
    )
    return Table("Order of the systems", columns, rows, notes)


def _list_pairs(order: OrderAgreement) -> str:
    shown = [f"{a} / {b}" for a, b in order.swapped[:NAMED_PAIRS]]
    more = len(order.swapped) - len(shown)
    return ", ".join([*shown, *([f"{more} more"] if more else [])])


def _describe(sensitivity: JudgeSensitivity) -> str:
    """How many verdicts depend on the judge, and which."""
    compared = [each for each in sensitivity.systems if each.stability is not None]
    unstable = sensitivity.unstable
    taus = [each.tau for each in sensitivity.orders if each.tau is not None]
    order = f" Least τ of two judges: {format_number(min(taus), signed=True)}." if taus else ""
    start = (
        f"{pluralize(len(sensitivity.judges), 'judge')} on {sensitivity.queries:,} queries of "
        f"{sensitivity.dataset}: "
    )
    if not unstable:
        return f"{start}all of them give the same verdict on every system.{order}"
    names = list_names([each.system for each in unstable])
    reversed_names = [each.system for each in unstable if each.stability == "reversed"]
    worst = f" Better to one and worse to another: {list_names(reversed_names)}." * bool(
        reversed_names
    )
    return (
        f"{start}{len(unstable)} of {pluralize(len(compared), 'verdict')} "
        f"{'depends' if len(unstable) == 1 else 'depend'} on the judge ({names}).{worst}{order}"
    )


def _find_tone(sensitivity: JudgeSensitivity) -> Tone:
    return "warning" if sensitivity.unstable else "plain"
