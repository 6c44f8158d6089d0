"""Pages of a campaign: how it stands, an answer, the asks, the closed whole."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from fusion_bench.campaign import records
from fusion_bench.campaign.state import CampaignState
from fusion_bench.io.campaign_ledger import CampaignEvent
from fusion_bench.report.page import (
    Column,
    Finding,
    NextStep,
    Page,
    Section,
    Tone,
    YamlBlock,
    make_columns,
    make_table,
)
from fusion_bench.util.formatting import format_difference, format_number, format_p_value, pluralize

#: Changed queries that a terminal shows.
MOST_CHANGES: Final = 10
#: Columns of lost documents.
LOST: Final = {
    "query": "query",
    "document": "document",
    "grade": "grade",
    "baseline_rank": "baseline's rank",
    "rank": "rank",
}
TONES: Final[Mapping[str, Tone]] = {"ship": "passed", "keep": "plain", "closed": "inconclusive"}


def build_status_page(status: records.CampaignStatus, steps: Sequence[NextStep] = ()) -> Page:
    """How a campaign stands."""
    rules = status.rules
    facts = {
        "Experiment": status.experiment,
        "Dataset": status.dataset,
        "Measure": status.measure,
        "Tuning queries": f"{status.tuning_queries:,}",
        "Held out": f"{pluralize(status.held_out_queries, 'query')} in "
        f"{pluralize(status.held_out_groups, 'group')}",
        "Asks": f"{status.asked:,} of {rules.asks:,}",
        "Ships": f"{len(status.ships)} of {rules.ships}",
        "Least gain": format_number(rules.min_gain),
    }
    columns: list[Column[records.PhasePower]] = [
        Column("phase", lambda each: str(each.phase)),
        Column("level of an ask", lambda each: f"{each.share:.3g}"),
        Column("gain found with power .8", _format_detectable),
    ]
    note = (
        "Power .8 for differences as the tuning queries have; a change that touches few queries is "
        "found sooner; none = no gain up to 1 is found."
    )
    power = make_table("What each phase can find", columns, status.phases, notes=(note,))
    baseline = YamlBlock("The baseline to beat", status.baseline)
    section = Section(
        facts=facts,
        summary="; ".join(f"{name} {value}" for name, value in facts.items()),
        parts=(power, baseline) if status.phases else (baseline,),
    )
    state = "no more asks" if status.is_closed else f"{status.asks_left:,} asks left"
    headline = Finding(
        f"Campaign {status.campaign}: {state}, phase {status.phase}.",
        "warning" if status.no_guarantee else "plain",
        details=(
            f"{pluralize(status.tuning_queries, 'tuning query')}; held out: {facts['Held out']}.",
            status.guarantee,
        ),
    )
    return Page(f"Campaign {status.campaign}", (section,), headline, next_steps=tuple(steps))


def _format_detectable(phase: records.PhasePower) -> str:
    gain = phase.detectable_gain
    return "none" if gain is None else format_number(gain)


def build_answer_page(answer: records.CampaignAnswer) -> Page:
    """What an ask is told."""
    left = f"{answer.asks_left:,} asks left"
    number = "" if answer.number is None else f"Ask {answer.number}"
    texts = {
        "ship": f"{number}: ship. The candidate is better, and the baseline from now on; {left}.",
        "keep": f"{number}: keep the baseline; {left}.",
        "closed": f"Closed: {answer.reason}.",
    }
    repeated = " Asked before: this is its old answer." if answer.is_repeated else ""
    told = () if answer.tuning is None else (_describe_tuning(answer.tuning),)
    text = texts[answer.answer] + repeated
    headline = Finding(text, TONES[answer.answer], "decision", (*told, answer.guarantee))
    sections = []
    if answer.error:
        error = Finding(f"Tuning queries: {answer.error}", "warning")
        sections.append(Section(findings=(error,)))
    if answer.tuning is not None:
        tuning = answer.tuning
        findings = [
            Finding(
                f"{each.id}: {each.message}", "warning" if each.severity == "warning" else "plain"
            )
            for each in tuning.lint
        ]
        columns: list[Column[records.TuningChange]] = [
            Column("query", lambda each: each.query, is_text=True),
            Column("baseline", lambda each: format_number(each.baseline)),
            Column("candidate", lambda each: format_number(each.candidate)),
        ]
        parts = []
        if tuning.lost is not None and not tuning.lost:
            findings.append(Finding("No relevant document fell out of the first ten."))
        if tuning.lost:
            title = f"{pluralize(len(tuning.lost), 'relevant document')} fell out of the first ten"
            shown = tuning.lost[:MOST_CHANGES]
            parts.append(make_table(title, make_columns(LOST, _format_lost), shown))
        if tuning.changes:
            worst = tuning.changes[:MOST_CHANGES]
            parts.append(make_table("Tuning queries, the greatest loss first", columns, worst))
        sections.append(Section("Tuning queries", findings=tuple(findings), parts=tuple(parts)))
    return Page("Ask", tuple(sections), headline, answer=answer.answer)


def _describe_tuning(tuning: records.TuningAnswer) -> str:
    gain = tuning.gain
    return (
        f"Tuning queries: {format_number(gain.default)} → {format_number(gain.tuned)}, "
        f"{format_difference(gain.difference, gain.low, gain.high)}, "
        f"p {format_p_value(gain.p, alpha=0.05, adjusted=False)}; "
        f"{gain.wins} better, {gain.losses} worse of {gain.queries}."
    )


def _format_lost(key: str, document: records.LostDocument) -> str:
    value = getattr(document, key)
    return "none" if value is None else str(value)


def build_log_page(state: CampaignState) -> Page:
    """The asks of a campaign, without a held-out value."""
    columns: list[Column[CampaignEvent]] = [
        Column("ask", lambda each: str(each.number)),
        Column("date", lambda each: each.date, is_text=True, is_optional=True),
        Column("phase", lambda each: str(state.phases[each.number or 0])),
        Column("answer", lambda each: state.answers.get(each.number or 0, "none"), is_text=True),
        Column("changed", lambda each: _describe_change(state, each), is_text=True),
        Column("new lists", lambda each: ", ".join(each.lists), is_text=True, is_optional=True),
    ]
    table = make_table("Asks", columns, state.asks)
    overrides = [f"{event.date}: {event.by}: {event.command}" for event in state.overrides]
    findings = tuple(Finding(f"Held-out queries shown: {text}", "warning") for text in overrides)
    headline = Finding(
        f"Campaign {state.campaign}: {pluralize(len(state.asks), 'ask')}, "
        f"{pluralize(len(state.ships), 'ship')}.",
        details=(state.guarantee,),
    )
    return Page("Log", (Section(findings=findings, parts=(table,)),), headline)


def _describe_change(state: CampaignState, ask: CampaignEvent) -> str:
    """What differs from the baseline of its phase: ``fusion.k=20``."""
    baseline = state.baseline_of(state.phases[ask.number or 0])
    return ", ".join(list_changes(baseline, ask.config or {}))


def list_changes(
    baseline: Mapping[str, Any], config: Mapping[str, Any], path: str = ""
) -> Iterator[str]:
    """The values of a configuration that another one has not, each as ``KEY=VALUE``."""
    for key in dict.fromkeys([*config, *baseline]):
        before, after = baseline.get(key), config.get(key)
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            yield from list_changes(before, after, f"{path}{key}.")
        elif before != after:
            yield f"{path}{key}={json.dumps(after)}"


def build_report_page(report: records.CampaignReport) -> Page:
    """A closed campaign, whole."""
    status = report.status
    shipped = [ask for ask in report.asks if ask.answer == "ship"]
    findings = [Finding(f"Held-out queries shown: {each}", "warning") for each in report.overrides]
    if report.changes:
        findings.append(Finding(f"The data are not as frozen: {report.changes}", "warning"))
    columns: list[Column[records.ClosedAsk]] = [
        Column("ask", lambda each: str(each.number)),
        Column("phase", lambda each: str(each.phase), is_optional=True),
        Column("answer", lambda each: each.answer or "none", is_text=True),
        Column("tuning", lambda each: format_number(each.tuning_gain, signed=True)),
        Column("held out", _format_gain, is_text=True),
        Column("log e-value", lambda each: format_number(each.log_e_value), is_optional=True),
        Column("tested", lambda each: "no" if each.is_screened else "yes", is_text=True),
    ]
    note = "Intervals are at the level of the ask; an ask that is not tested is not better on the "
    table = make_table("Asks", columns, report.asks, notes=(f"{note}tuning queries.",))
    count = len(shipped)
    outcome = f"{pluralize(count, 'ship')} in {pluralize(len(report.asks), 'ask')}"
    headline = Finding(
        f"{outcome}; closed by {report.closed_by}.",
        "plain",
        "decision",
        (*map(_describe_ship, shipped), status.guarantee),
    )
    section = Section(findings=tuple(findings), parts=(table,))
    return Page(f"Campaign {status.campaign}", (section,), headline, answer=outcome)


def _format_gain(ask: records.ClosedAsk) -> str:
    if ask.gain is None:
        return "cannot be computed"
    return format_difference(ask.gain.difference, ask.gain.low, ask.gain.high)


def _describe_ship(ask: records.ClosedAsk) -> str:
    if ask.is_contradicted:
        return f"Ask {ask.number}: the ledger says ship, its values do not: {_format_gain(ask)}."
    return f"Ask {ask.number} shipped: {_format_gain(ask)}."
