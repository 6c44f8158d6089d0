"""A decision in words, and as Markdown for a pull request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fusion_bench.gate.power_check import power_warning, required_queries_text
from fusion_bench.gate.result import (
    CheckResult,
    DocumentChange,
    GateVerdict,
    GoldenResult,
    GuardResult,
    QueryCheck,
    QueryRegression,
)
from fusion_bench.report.markdown import escape_markdown as escape
from fusion_bench.util.formatting import escape_control_chars, format_number, pluralize

__all__ = [
    "bound",
    "check_row",
    "golden_words",
    "guard_words",
    "headings",
    "losses",
    "markdown",
    "sentence",
    "text",
    "wishes",
]

MARKS = {"pass": "✅", "regressed": "❌", "inconclusive": "❔"}


def headings() -> tuple[str, ...]:
    """Headings of the table of checks."""
    return (
        "check",
        "verdict",
        "before",
        "after",
        "difference",
        "lower bound",
        "max_drop",
        "p (Holm)",
        "changed",
        "would see a drop of",
        "false pass",
    )


def check_row(check: CheckResult) -> tuple[str, ...]:
    """Cells of one check, in the order of :func:`headings`."""
    return (
        check.name,
        check.status + _reach(check),
        format_number(check.baseline_mean),
        format_number(check.candidate_mean),
        format_number(check.difference, signed=True),
        format_number(check.lower_bound, signed=True),
        f"{check.max_drop:g}",
        format_number(check.p_holm),
        f"{check.changed} of {check.queries}",
        format_number(check.min_detectable_drop),
        "n/a" if check.false_pass_rate is None else f"{100 * check.false_pass_rate:.1f} %",
    )


def _reach(check: CheckResult) -> str:
    if check.error is None and not check.changed:
        return " (no query changed)"
    return " (on these queries only)" if check.few_changed else ""


def sentence(check: CheckResult) -> str:
    """What a check says, in words."""
    if check.error is not None:
        return f"could not be checked: {check.error}"
    words = (
        f"mean {format_number(check.baseline_mean)} → {format_number(check.candidate_mean)} "
        f"({format_number(check.difference, signed=True)}, "
        f"lower bound "
        f"{format_number(check.lower_bound, signed=True)}, max_drop {check.max_drop:g}, "
        f"p {format_number(check.p_holm)} after Holm, "
        f"{check.changed} of "
        f"{pluralize(check.queries, 'query')} changed, {check.losses} worse)"
    )
    if check.few_changed:
        return f"{words}; fewer than 10 changed, so this holds on these queries only"
    if check.status == "inconclusive" and check.min_detectable_drop is not None:
        words += (
            f"; too noisy to tell: only a drop of {format_number(check.min_detectable_drop)} would "
            f"have been called regressed with power .8; {required_queries_text(check)}"
        )
    return words


def wishes(result: GateVerdict) -> Iterator[str]:
    """Checks that passed although they cannot guard their tolerance."""
    for check in result.checks:
        if check.status == "pass" and (words := power_warning(check)) is not None:
            yield f"! {check.name}: {words}"


def guard_words(guard: GuardResult) -> str:
    """What a guard counted, and what it allows."""
    return (
        f"{pluralize(guard.violations, 'query')} ({100 * guard.share:.2f} %) losing more than "
        f"{guard.max_loss:g} in {guard.measure}; at most {100 * guard.max_share:g} % may"
    )


def golden_words(golden: GoldenResult) -> str:
    """Where a golden document stands, and where it must."""
    place = "nowhere" if golden.rank is None else f"at {golden.rank}"
    return (
        f"query {golden.query!r} has {golden.document!r} {place}; it must be in the top "
        f"{golden.top}"
    )


def bound(row: QueryCheck) -> str:
    """A guard or a golden query in words, with what became of it."""
    words = guard_words(row) if isinstance(row, GuardResult) else golden_words(row)
    if row.error is not None:
        return f"{words}: could not be checked: {row.error}"
    return f"{words}: {'holds' if row.holds else 'broken'}"


def losses(lost: QueryRegression) -> Iterator[str]:
    """What became of the relevant documents of a query: those that moved, and how many did not."""
    for document in lost.documents:
        if document.is_moved:
            yield _fate(lost, document)
    still = sum(not document.is_moved for document in lost.documents)
    if still:
        yield f"{pluralize(still, 'more relevant document')}: rank unchanged, or in neither list"


def _fate(lost: QueryRegression, document: DocumentChange) -> str:
    """What became of a document, and by which term."""
    before, after = (
        _place(*place)
        for place in (
            (document.rank_before, document.cut_rank_before, lost.top_k[0]),
            (document.rank_after, document.cut_rank_after, lost.top_k[1]),
        )
    )
    return f"{document.document} (grade {document.grade}) {before} → {after}: {document.cause}"


def _place(rank: int | None, below: int | None, top_k: int | None) -> str:
    if rank is None and below is not None:
        return f"{below} (below top_k {top_k})"
    return "–" if rank is None else str(rank)


def text(result: GateVerdict) -> str:
    """The decision without any markup: the headline, and whatever did not pass."""
    lines = [f"fusion-bench gate, {result.experiment}: {result.headline}"]
    lines += [
        f"{check.name}: {check.status}: {sentence(check)}"
        for check in result.checks
        if check.status != "pass"
    ]
    lines += wishes(result)
    lines += [f"{row.collection}: {bound(row)}" for row in result.query_checks if not row.holds]
    for lost in result.regressions:
        change = (
            f"{lost.measure} {format_number(lost.value_before)} → {format_number(lost.value_after)}"
        )
        lines += [f"lost: {lost.collection}, query {lost.query}: {change}"]
        lines += [f"    {line}" for line in losses(lost)]
    return shown_lines(lines)


def shown_lines(lines: Sequence[str]) -> str:
    """Lines in which a name cannot break a line or colour a terminal."""
    return "\n".join(escape_control_chars(line) for line in lines)


def markdown(result: GateVerdict) -> str:
    """The decision for people who review a change."""
    mark = {0: "✅", 3: "❔"}.get(result.exit_code, "❌")
    lines = [f"## {mark} fusion-bench gate: {escape(result.experiment)}", ""]
    lines += [f"**{escape(result.headline)}**", "", *_background(result)]
    if result.checks:
        lines += _table(
            headings(), [(MARKS[check.status], *check_row(check)) for check in result.checks]
        )
        lines += [
            f"- {escape(check.name)}: {escape(sentence(check))}"
            for check in result.checks
            if check.status != "pass"
        ]
        lines += [f"- {escape(words)}" for words in wishes(result)]
        lines += [""]
    lines += [*_bounds(result), *_worst(result)]
    return "\n".join(lines).rstrip() + "\n"


def _background(result: GateVerdict) -> Iterator[str]:
    against = f"`{result.baseline}`"
    if result.baseline_reason:
        against += f" ({escape(result.baseline_system)}: “{escape(result.baseline_reason)}”)"
    yield from (f"Candidate {escape(result.system)} against {against}.", "")
    if result.config_changes:
        rows = [
            (path, *("–" if side is None else str(side) for side in pair))
            for path, pair in result.config_changes.items()
        ]
        yield from _table(("configuration", "before", "after"), [("", *row) for row in rows])


def _bounds(result: GateVerdict) -> Iterator[str]:
    for row in result.query_checks:
        yield f"- {'✅' if row.holds else '❌'} {escape(row.collection)}: {escape(bound(row))}"
    if result.query_checks:
        yield ""


def _worst(result: GateVerdict) -> Iterator[str]:
    if not result.regressions:
        return
    yield from ("<details>", "<summary>Queries that lost most</summary>", "")
    for lost in result.regressions:
        yield (
            f"- {escape(lost.collection)}, query {escape(lost.query)}: {escape(lost.measure)} "
            f"{format_number(lost.value_before)} → {format_number(lost.value_after)}"
        )
        yield from (f"  - {escape(line)}" for line in losses(lost))
    yield from ("", "</details>", "")


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A table; each row begins with a mark for its first cell."""
    yield f"| {' | '.join(header)} |"
    yield f"|{'|'.join(':--' for _ in header)}|"
    for mark, first, *rest in rows:
        cells = [f"{mark} {escape(first)}".strip(), *(escape(cell) for cell in rest)]
        yield f"| {' | '.join(cells)} |"
    yield ""
