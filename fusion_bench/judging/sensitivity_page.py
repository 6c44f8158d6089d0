"""The same systems under several judges, as a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from fusion_bench.checks.judges import SHARED_FAMILY
from fusion_bench.judging.sensitivity import (
    JudgeSensitivity,
    JudgeVerdict,
    OrderAgreement,
    SystemSensitivity,
)
from fusion_bench.report.answer_texts import DIFFERENCE, format_answer, interval_column
from fusion_bench.report.data_warnings import judge_section
from fusion_bench.report.page import (
    Column,
    Finding,
    Page,
    Section,
    Table,
    Tone,
    columns_of,
    make_columns,
    make_table,
)
from fusion_bench.util.formatting import (
    format_coverage,
    format_difference,
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
    columns: list[Column[SystemSensitivity]] = [
        Column("system", lambda each: each.system, is_text=True),
        *make_columns(
            {n: judge.name for n, judge in enumerate(sensitivity.judges)},
            lambda n, each: _format_place(each.verdicts[n], places),
        ),
    ]
    note = "In brackets: the place among the systems; equal means share the better one."
    return make_table(
        f"{sensitivity.measure} by judge",
        columns,
        sensitivity.systems,
        notes=(note,),
        tone=lambda each: "baseline" if each.system == sensitivity.baseline else "plain",
    )


def _format_place(verdict: JudgeVerdict, places: Mapping[str, Sequence[float]]) -> str:
    place = places[verdict.judge].index(verdict.mean or 0.0) + 1
    return f"{format_number(verdict.mean)} ({place})"


def _build_verdict_table(sensitivity: JudgeSensitivity) -> Table:
    """A row a system and judge."""
    alpha, coverage = sensitivity.alpha, format_coverage(sensitivity.alpha)
    answer = partial(format_answer, min_gain=sensitivity.min_gain, alpha=alpha)
    verdicts: tuple[Column[JudgeVerdict], ...] = (
        Column("judge", lambda verdict: verdict.judge, is_text=True, is_name=True),
        *(DIFFERENCE, interval_column(alpha)),
        Column("adjusted p", lambda verdict: format_p_value(verdict.p_adjusted, alpha=alpha)),
        Column("verdict", lambda verdict: answer(verdict.answer), is_text=True, is_name=True),
        Column(f"shift from {sensitivity.judges[0].name}", _format_shift),
    )
    columns: list[Column[tuple[SystemSensitivity, int]]] = [
        Column("system", lambda pair: "" if pair[1] else pair[0].system, is_text=True),
        *columns_of(verdicts, lambda pair: pair[0].verdicts[pair[1]]),
        Column("together", _format_stability, is_text=True, is_name=True),
    ]
    pairs = [
        (each, n)
        for each in sensitivity.systems
        if each.stability is not None
        for n in range(len(each.verdicts))
    ]
    notes = (
        f"Verdicts are those of eval under each judge: adjusted p and {coverage} intervals of one "
        "judge hold together.",
        "Shift: this judge's difference − the reference's, paired by query; all these intervals "
        "hold together (Bonferroni). Where one includes 0, no bias between the two is shown, even "
        "if their verdicts differ.",
    )
    return make_table(
        f"{sensitivity.measure}: difference to {sensitivity.baseline}",
        columns,
        pairs,
        notes=notes,
        tone=lambda pair: "plain" if pair[0].stability == "same" else "warning",
    )


def _format_shift(verdict: JudgeVerdict) -> str:
    if verdict.shift is None:
        return ""
    return format_difference(verdict.shift, verdict.shift_low, verdict.shift_high)


def _format_stability(pair: tuple[SystemSensitivity, int]) -> str:
    return "" if pair[1] else pair[0].stability or ""


def _build_order_table(sensitivity: JudgeSensitivity) -> Table:
    """A row a pair of judges."""
    columns: tuple[Column[OrderAgreement], ...] = (
        Column("judges", lambda each: f"{each.first}, {each.second}", is_text=True, is_name=True),
        Column("Kendall's τ", lambda each: format_number(each.tau, signed=True)),
        Column("same order", lambda each: str(each.agreeing)),
        Column("opposite", lambda each: str(each.opposite)),
        Column("tied", lambda each: str(each.tied)),
        Column("swapped", _list_pairs, is_text=True),
    )
    notes = (
        "τ-b over the means of the systems, the baseline included: 1 = the same order, 0 = no "
        "agreement, -1 = the opposite one. Tied: equal means to one of the two judges.",
    )
    return make_table("Order of the systems", columns, sensitivity.orders, notes=notes)


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
