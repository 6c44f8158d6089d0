"""A verdict as a page: its checks as rows, its parts as sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fusion_bench.checks.collection_warnings import warn_v2
from fusion_bench.gate.baseline import (
    DocumentChange,
    ListChange,
    PolicyChange,
    QueryRegression,
    format_side,
)
from fusion_bench.gate.result import GateVerdict
from fusion_bench.gate.verdict import (
    CheckOutcome,
    CheckResult,
    FalseAnswersResult,
    GoldenResult,
    GuardResult,
)
from fusion_bench.measures.aliases import display_measure
from fusion_bench.report import data_warnings
from fusion_bench.report.answer_texts import DIFFERENCE, name_verdict, unseen_losses
from fusion_bench.report.page import Column, Finding, Page, Section, Table, Tone, make_table
from fusion_bench.stats.intervals import ALPHA
from fusion_bench.util.formatting import (
    escape_control_chars,
    format_change,
    format_number,
    format_percent,
    pluralize,
    quote_text,
)

#: Above this many tolerances, noise and not the tolerance sets the minimum detectable drop.
NOISY = 1.5
#: Of a check that draws do not decide.
FEW_CHANGES = "few changed queries: nothing is promised"


def _format_rate(rate: float | None) -> str:
    return "n/a" if rate is None else f"{100 * rate:.1f} %"


#: Of the table of checks.
CHECK_COLUMNS: tuple[Column[CheckResult], ...] = (
    Column("check", lambda check: check.display_name, is_text=True),
    Column("status", lambda c: c.stated_status if c.error is None else "error", is_text=True),
    Column("baseline", lambda check: format_number(check.baseline_mean), is_optional=True),
    Column("candidate", lambda check: format_number(check.candidate_mean), is_optional=True),
    DIFFERENCE,
    Column("lower end", lambda c: format_number(c.lower_end, signed=True), is_optional=True),
    Column("upper end", lambda c: format_number(c.upper_end, signed=True), is_optional=True),
    Column("max_drop", lambda check: f"{check.max_drop:g}"),
    Column("p", lambda check: format_number(check.p), is_optional=True),
    Column("changed", lambda check: f"{check.changed} of {check.queries}", is_optional=True),
    Column("min. detectable drop", lambda check: format_number(check.min_detectable_drop)),
    Column("P(pass)", lambda check: _format_rate(check.pass_rate), is_optional=True),
    Column("P(regressed)", lambda check: _format_rate(check.regressed_rate), is_optional=True),
    Column("P(pass) at −max_drop", lambda c: _format_rate(c.false_pass_rate), is_optional=True),
    Column("unseen losses", lambda c: _format_rate(c.unseen_loss), is_optional=True),
)


#: Of the table of false answers.
ANSWER_COLUMNS: tuple[Column[FalseAnswersResult], ...] = (
    Column("check", lambda each: each.name, is_text=True),
    Column("status", lambda each: each.status, is_text=True),
    Column("answered", lambda each: f"{each.answered} of {each.queries}"),
    Column("share", lambda each: format_percent(each.share)),
    Column("lower limit", lambda each: format_percent(each.low), is_optional=True),
    Column("upper limit", lambda each: format_percent(each.high)),
    Column("max", lambda each: format_percent(each.max)),
)


def check_tone(check: CheckOutcome) -> Tone:
    """The tone of a check, whatever the policy does with its status."""
    return "inconclusive" if check.error is not None else status_tone(check)


def status_tone(check: CheckOutcome | FalseAnswersResult) -> Tone:
    """The tone of a status."""
    if check.status in {"inconclusive", "unjudged decide"}:
        return "inconclusive"
    return "failed" if check.status == "regressed" else "passed"


def describe_check(check: CheckResult, verdict: GateVerdict | None = None) -> str:
    """The reason of a check's status in one sentence, then the statistics of the check.

    Args:
        check: The check.
        verdict: That it belongs to: from it comes the command that judges what decides.
    """
    if check.error is not None:
        return f"not checked: {check.error}"
    is_decided = check.status == "unjudged decide"
    reason = _find_reason(check)
    statistics = ", ".join(f"{each.header} {each.cell(check)}" for each in CHECK_COLUMNS[2:9])
    text = f"{reason}. {statistics[0].upper()}{statistics[1:]}" if reason else statistics
    queries = pluralize(check.queries, "query")
    text += f"; {check.changed} of {queries} changed, {check.losses} for the worse"
    if check.unjudged is not None and (check.unjudged.has_unjudged or is_decided):
        text += f"; {check.unjudged.description}"
    if check.status in {"pass", "inconclusive"} and check.unseen_loss is not None:
        text += f"; a loss of 1 on up to {_format_rate(check.unseen_loss)} of queries may be unseen"
    if check.trials is not None:
        text += f"; {check.trials.description}"
    if is_decided and verdict is not None:
        collections = {each.collection for each in verdict.checks}
        dataset = check.collection if len(collections) > 1 else None
        name = verdict.experiment_file or f"{verdict.experiment}.yaml"
        place = data_warnings.JudgePlace(name, dataset, verdict.overrides)
        text += f"; judge these first: {data_warnings.format_pool_line(place, verdict.system)}"
    if check.status == "inconclusive" and check.min_detectable_drop is not None:
        text += f"; {_describe_power(check)}"
    return text


def _find_reason(check: CheckResult) -> str:
    """Why a check blocks a change, without a full stop; empty if it does not."""
    difference = check.difference or 0.0
    if check.status == "regressed":
        condition = "" if check.unjudged is None else check.unjudged.condition
        reason = f"it drops by {format_number(-difference)}, allowed {check.max_drop:g}"
        return f"{reason}. This holds{condition}" if condition else reason
    if check.status == "unjudged decide" and check.unjudged is not None:
        unjudged, is_drop = check.unjudged, difference < -check.max_drop
        for value, where in (
            (unjudged.filled, "with estimated grades"),
            (unjudged.judged_only, "over judged documents"),
        ):
            if value is not None and (value < -check.max_drop) != is_drop:
                return f"{where} the difference is {format_number(value, signed=True)}"
        return f"{format_percent(unjudged.candidate_share)} of its top 10 is unjudged"
    if check.is_withheld:
        return "it would pass, but too many queries depend on others that no group joins"
    if check.status == "inconclusive" and not check.has_few_changes:
        return f"a drop of more than {check.max_drop:g} is neither shown nor excluded"
    return FEW_CHANGES if check.has_few_changes else ""


def describe_query_check(check: GuardResult | GoldenResult) -> str:
    """A guard or a golden query in one sentence, with its outcome."""
    if isinstance(check, GuardResult):
        text = (
            f"{pluralize(check.violations, 'query')} ({100 * check.share:.2f} %) lost more than "
            f"{check.max_loss:g} in {display_measure(check.measure)}, allowed "
            f"{100 * check.max_share:g} %"
        )
    else:
        rank = "not in the list" if check.rank is None else f"at rank {check.rank}"
        text = f"query {check.query!r}: {check.document!r} is {rank}, allowed top {check.top}"
    return f"{text}: {check.outcome}"


def power_warning(check: CheckResult) -> str | None:
    """Why a check cannot detect drops near its tolerance; None = it can, or it is not known.

    An alarm requires a mean below −m, so the minimum detectable drop exceeds m for any number
    of queries. Up to about 1.4 m the tolerance itself sets it. Beyond that noise does, which the
    square root of the number of queries divides.
    """
    drop = check.min_detectable_drop
    if drop is None or drop <= NOISY * check.max_drop:
        return None
    return _describe_power(check)


def _describe_power(check: CheckResult) -> str:
    """The minimum detectable drop, and the queries that the check has and needs to pass."""
    needed = "no number suffices" if check.max_drop == 0 else "an unknown number is needed"
    if check.needed is not None:
        needed = f"about {check.needed} are needed"
    elif check.max_drop > 0 and check.trials is not None and check.trials.share > 0:
        needed = "more trials are needed, as queries alone never remove their effect,"
    groups = ""
    if check.groups < check.queries:
        groups = f" in {pluralize(check.groups, 'group')}"
        if check.design_effect is not None:
            groups += f" (variance × {check.design_effect:.2g})"
    drop = format_number(check.min_detectable_drop)
    return (
        f"minimum detectable drop (about 80 % power) {drop} with "
        f"{pluralize(check.queries, 'query')}{groups}; "
        f"{needed} to pass with max_drop {check.max_drop:g} if nothing is lost (80 % power)"
    )


EXIT_TONES: dict[int, Tone] = {0: "passed", 3: "inconclusive"}
REFERENCE_NOTE = (
    "The queries and judgments are the same. The reference is the baseline's stored value of each "
    "query: the new lists cannot reproduce it, so its old ranks are unknown."
)
UNREPRODUCED_NOTE = (
    "the lists changed, so the baseline's values cannot be computed again, and a forged or an old "
    "file would look like this one. Where the baseline is not part of the change, --base COMMIT "
    "accepts it: its file must be the same at that commit. Otherwise --update --reason makes the "
    "new values the baseline"
)
STRICTER_NOTE = (
    "the policy is stricter than the one that the baseline holds: an update makes it the one that "
    "later changes are held to"
)
NOTES = (
    "Lower end: of the check's own one-sided 95 % interval. Upper end and p: over all checks "
    "together. Minimum detectable drop: about 80 % power. P(…): probability of a status if there "
    "is no true difference, or at a true drop of exactly max_drop. Unseen losses: up to this share "
    "of all queries may lose 1 although no query here shows it.",
    "A candidate that was chosen on these queries passes more often than stated: choose on dev, "
    "gate on test.",
)


def build_gate_page(verdict: GateVerdict) -> Page:
    """The page of a verdict; the terminal and Markdown render it."""
    effects: list[str] = []
    for collection in dict.fromkeys(check.collection for check in verdict.checks):
        check = next(check for check in verdict.checks if check.collection == collection)
        before, after = check.baseline_mean, check.candidate_mean
        if check.changed and before is not None and after is not None:
            wins = check.changed - check.losses
            effect = format_change(
                after - before, before, wins=wins, losses=check.losses, queries=check.queries
            )
            means = f"{format_number(before)} → {format_number(after)}"
            effects.append(f"{check.display_name}: {means}, {effect}")
    tone = EXIT_TONES.get(verdict.exit_code, "failed")
    provenance = None
    if verdict.baseline_system:
        names = f"experiment {verdict.baseline_experiment}, system {verdict.baseline_system}"
        text = f"Baseline {verdict.baseline} ({names}), written for: “{verdict.baseline_reason}”."
        if verdict.base is not None:
            same = "the same as" if verdict.is_base else "not the same as"
            text += f" Its file is {same} at {verdict.base}."
        if verdict.anchor_reason:
            text += f" Its anchor was accepted for: “{verdict.anchor_reason}”."
        provenance = Section("Baseline", summary=text, text=text)
    return Page(
        f"fusion-bench gate: {verdict.experiment}",
        (
            *data_warnings.judge_section(verdict.data_warnings),
            *_build_sections(verdict),
            *data_warnings.lint_section(verdict.lint),
        ),
        headline=Finding(verdict.headline, tone, details=tuple(effects)),
        provenance=provenance,
        answer=f"{verdict.headline[:1].upper()}{verdict.headline[1:]}",
    )


def _build_sections(verdict: GateVerdict) -> Iterator[Section]:
    if verdict.checks:
        notes = [*NOTES]
        if verdict.max_drops:
            drops = "; ".join(each.description for each in verdict.max_drops)
            notes.append(f"max_drop: auto: {drops}.")
        tables = [make_table("Checks", CHECK_COLUMNS, verdict.checks, notes=notes, tone=check_tone)]
        judged = [check for check in verdict.checks if check.bounds is not None]
        if judged:
            columns: list[Column[CheckResult]] = [
                Column("check", lambda check: check.display_name, is_text=True),
                *data_warnings.judged_columns(judged, lambda check: check.bounds),
            ]
            ends = ((check.measure, check.bounds) for check in judged)
            unknown = data_warnings.note_unknown_ends(ends)
            notes = [*data_warnings.describe_columns(columns), *unknown]
            tables.append(
                make_table("Judged documents of the candidate", columns, judged, notes=notes)
            )
        text = f"{verdict.system}: {verdict.changed_parts}."
        yield Section(text=text, parts=tuple(tables), key="checks")
    if verdict.false_answers:
        note = (
            f"Limits: one-sided, {100 - 100 * ALPHA / verdict.runs:.4g} % each (Clopper–Pearson), "
            "with one query of each group."
        )
        rows = verdict.false_answers
        title = "Answered unanswerable queries"
        table = make_table(title, ANSWER_COLUMNS, rows, notes=(note,), tone=status_tone)
        yield Section(parts=(table,), key="false answers")
    findings = tuple(_build_findings(verdict))
    if findings:
        yield Section("Findings", findings=findings)
    if verdict.regressions:
        yield Section(
            "Queries that lost most", findings=tuple(map(_describe_loss, verdict.regressions))
        )
    for table in _changes_tables(verdict):
        yield Section(parts=(table,))


def _changes_tables(verdict: GateVerdict) -> Iterator[Table]:
    """What the candidate changed: lists, configuration and policy."""
    if verdict.list_changes:
        yield make_table(
            "Changed lists", LIST_COLUMNS, verdict.list_changes, notes=(REFERENCE_NOTE,)
        )
    if verdict.config_changes:
        yield changes_table("configuration", verdict.config_changes)
    if verdict.policy_changes:
        columns: list[Column[PolicyChange]] = [
            Column("policy", lambda change: change.path, is_text=True),
            Column("baseline", lambda change: format_side(change.before), is_text=True),
            Column("candidate", lambda change: format_side(change.after), is_text=True),
            Column("effect", lambda change: change.effect, is_text=True),
        ]
        yield make_table("Changed policy", columns, verdict.policy_changes)


def changes_table(name: str, changes: Mapping[str, tuple[Any, Any]]) -> Table:
    """What differs in two nested mappings, by path."""
    columns: list[Column[tuple[str, tuple[Any, Any]]]] = [
        Column(name, lambda change: change[0], is_text=True),
        Column("baseline", lambda change: _format_value(change[1][0]), is_text=True),
        Column("candidate", lambda change: _format_value(change[1][1]), is_text=True),
    ]
    return make_table(f"Changed {name}", columns, changes.items())


def _format_value(value: object) -> str:
    return "–" if value is None else str(value)


def _format_list_side(change: ListChange, side: str | None) -> str:
    """A checksum is shortened."""
    if change.change in {"contents", "missing"}:
        return "–" if side is None else side[:12]
    return str(side)


LIST_COLUMNS: tuple[Column[ListChange], ...] = (
    Column("list", lambda change: f"{change.collection}: {change.part}", is_text=True),
    Column("change", lambda change: change.change, is_text=True),
    Column("baseline", lambda change: _format_list_side(change, change.before), is_text=True),
    Column("candidate", lambda change: _format_list_side(change, change.after), is_text=True),
)


def _build_findings(verdict: GateVerdict) -> Iterator[Finding]:
    if not verdict.is_reproduced:
        yield Finding(UNREPRODUCED_NOTE, "inconclusive", key="unreproduced")
    before = verdict.baseline_v2_enabled
    baseline = {} if before is None else {"the baseline": before}
    warnings = (*verdict.data_warnings, *warn_v2({**baseline, "the candidate": verdict.v2_enabled}))
    yield from data_warnings.list_findings(warnings)
    yield from _describe_checks(verdict)
    for note in verdict.policy_notes:
        yield Finding(note, "warning", key="policy")
    if verdict.policy_changes and not verdict.refusals:
        yield Finding(STRICTER_NOTE, key="policy")
    if verdict.runs > 1:
        text = f"every check is decided at {100 * ALPHA / verdict.runs:.2g} %: candidates"
        if verdict.candidate_number is not None:
            text += f"; candidate {verdict.candidate_number} of at most {verdict.runs}"
            line = verdict.candidate_line
            text += "" if line is None else f" (line {line.line} of the ledger)"
        yield Finding(f"{text} since the last update", key="candidates")
    for query_check in verdict.query_checks:
        tone: Tone = "passed" if query_check.holds else "failed"
        if query_check.error is not None:
            tone = "inconclusive"
        key = "guard" if isinstance(query_check, GuardResult) else "golden"
        text = f"{query_check.collection}: {describe_query_check(query_check)}"
        yield Finding(text, tone, key=key)


def _describe_checks(verdict: GateVerdict) -> Iterator[Finding]:
    """The checks that did not pass, that hardly can, and what no rule can see."""
    for check in verdict.checks:
        is_unsure = check.status not in {"unchanged", "pass"} or check.has_few_changes
        if check.error is not None or is_unsure:
            text = (
                f"{check.display_name}: {name_verdict(check.status)}: "
                f"{describe_check(check, verdict)}"
            )
            yield Finding(text, check_tone(check), key=check.status)
        elif (warning := power_warning(check)) is not None:
            yield Finding(f"{check.display_name}: {warning}", "warning", key="power")
    for each in verdict.unshown_answers:
        yield Finding(each.statement, status_tone(each), key="false answers")
    units = [check.groups for check in verdict.checks if check.changed and check.error is None]
    unseen = unseen_losses(min(units)) if units else None
    if unseen is not None:
        yield Finding(unseen, key="unseen losses")


def _describe_loss(query: QueryRegression) -> Finding:
    """A query that lost, with a line for each relevant document that moved, and for the others."""
    before, after = format_number(query.value_before), format_number(query.value_after)
    is_shown = [change.is_moved or not query.has_old_ranks for change in query.documents]
    details = [
        _describe_document(change, query)
        for change, shown in zip(query.documents, is_shown, strict=True)
        if shown
    ]
    unmoved = is_shown.count(False)
    if unmoved:
        more = pluralize(unmoved, "more relevant document")
        details.append(f"{more}: same rank, or in neither list")
    name = quote_text(f"query {query.query}", query.text)
    text = f"{query.collection}, {name}: {display_measure(query.measure)} {before} → {after}"
    if query.trial is not None:
        text += f" (mean over trials; ranks of trial {query.trial})"
    return Finding(text, details=tuple(details))


def _describe_document(change: DocumentChange, query: QueryRegression) -> str:
    """The ranks of a relevant document before and after, and why it moved."""
    name = quote_text(change.document, change.title)
    after = _format_rank(change.rank_after, change.cut_rank_after, query.top_k[1])
    if not query.has_old_ranks:
        place = "not in the list" if after == "–" else f"at rank {after}"
        return f"{name} (grade {change.grade}) now {place}"
    before = _format_rank(change.rank_before, change.cut_rank_before, query.top_k[0])
    return f"{name} (grade {change.grade}) {before} → {after}: {change.cause}"


def _format_rank(rank: int | None, cut_rank: int | None, top_k: int | None) -> str:
    if rank is None and cut_rank is not None:
        return f"{cut_rank} (below top_k {top_k})"
    return "–" if rank is None else str(rank)


def format_text(verdict: GateVerdict) -> str:
    """The headline, and what did not pass, as plain lines."""
    page = build_gate_page(verdict)
    lines = [f"{page.title}: {verdict.headline}"]
    for section in page.sections:
        for finding in section.findings:
            if finding.tone != "passed":
                lines += [finding.text, *(f"    {line}" for line in finding.details)]
    return "\n".join(map(escape_control_chars, lines))
