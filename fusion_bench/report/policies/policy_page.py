"""A policy study as a page."""

from __future__ import annotations

from fusion_bench.report.evaluation.data_warnings import list_findings
from fusion_bench.report.judging.judge_line import JudgePlace, format_pool_line
from fusion_bench.report.judging.judge_section import drop_judge_findings, judge_section
from fusion_bench.report.page import Column, Finding, Page, Row, Section, Table, Tone
from fusion_bench.report.policies.policy_records import PolicyResult, PolicyStudy
from fusion_bench.util.formatting import pluralize

NOTES = (
    "All means are out of fold: the policy's parameters and the fixed variant are those that the "
    "other folds choose. Fixed variants are the policy's own, each for all queries.",
    "shuffled = the same with the features shuffled across queries: mean difference, and what "
    "97.5 % of the shufflings do not exceed. p = share of shufflings that reach the difference.",
    "A policy pays if its interval is above 0, p is at most .025, and unjudged documents do not "
    "contradict it.",
    "oracle = the best variant of each query; no policy can pass it.",
)


def build_policy_page(study: PolicyStudy) -> Page:
    """Every policy against the fixed numbers.

    Args:
        study: What was judged.
    """
    others = drop_judge_findings([*list_findings(study.data_warnings)])
    sections = [*judge_section(study.data_warnings)]
    sections += [Section(findings=others)] if others else []
    for name in dict.fromkeys(result.collection for result in study.results):
        results = [result for result in study.results if result.collection == name]
        sections.append(_build_section(name, results))
    paying = [result for result in study.results if result.verdict == "pays"]
    verb = "pays" if len(paying) == 1 else "pay"
    text = f"{len(paying)} of {pluralize(len(study.results), 'policy')} {verb}."
    if not paying:
        text = "No policy is shown to gain over fixed numbers tuned on the same queries."
    settings, provenance = study.settings, study.provenance
    facts = {
        "created": provenance.created,
        "experiment": f"{provenance.source} (SHA-256 {provenance.source_sha256})",
        "settings": ", ".join(f"{key} {value}" for key, value in settings.items()),
        "versions": ", ".join(f"{name} {v}" for name, v in provenance.versions.items()),
    }
    details = [*map(_describe, paying)]
    decided = [r for r in study.results if r.verdict == "unjudged decide"]
    details += map(_describe_unjudged, decided)
    if decided:
        first, collections = decided[0], {result.collection for result in study.results}
        place = JudgePlace.of_report(provenance, first.collection, len(collections))
        line = format_pool_line(place, first.system)
        details.append(f"Judge these first: {line}")
    summary = f"{provenance.source}, {provenance.created}; {facts['settings']}"
    return Page(
        f"Policies: {study.name}",
        tuple(sections),
        Finding(text, key="decision", details=tuple(details)),
        Section("Provenance", summary=summary, facts=facts),
    )


def _describe(result: PolicyResult) -> str:
    return (
        f"{result.system} on {result.collection}: {result.measure} {result.fixed:.4f} → "
        f"{result.tuned:.4f} ({result.difference:+.4f} [{result.low:+.4f}, {result.high:+.4f}])."
    )


def _describe_unjudged(result: PolicyResult) -> str:
    text = f"{_describe(result)} Unjudged documents decide it"
    return text + (f": {result.unjudged.description}." if result.unjudged else ".")


def _build_section(name: str, results: list[PolicyResult]) -> Section:
    columns = (
        Column("system", is_text=True),
        Column("no policy", is_optional=True),
        Column("as configured", is_optional=True),
        Column("tuned fixed"),
        Column("tuned policy"),
        Column("difference"),
        Column("95 % interval"),
        Column("shuffled", is_optional=True),
        Column("p"),
        Column("oracle", is_optional=True),
        Column("reranked", is_optional=True),
        Column("verdict", is_text=True, is_name=True),
    )
    first = results[0]
    tested = ", ".join(f"{r.system} {r.shuffled_pays}" for r in results)
    table = Table(
        f"{first.measure}: policies against fixed numbers",
        columns,
        tuple(map(_build_row, results)),
        notes=(
            *NOTES,
            f"Of {first.shufflings} further shufflings, so many would pay by this rule: {tested}.",
        ),
        is_transposable=True,
    )
    title = f"{name}, {pluralize(first.queries, 'query')}, {first.folds} folds"
    return Section(title, parts=(table.without_empty_columns(),))


def _build_row(result: PolicyResult) -> Row:
    tones: dict[str, Tone] = {"pays": "better", "unjudged decide": "warning"}
    tone = tones.get(result.verdict, "plain")
    cells = (
        result.system,
        f"{result.default:.4f}",
        "" if result.configured is None else f"{result.configured:.4f}",
        f"{result.fixed:.4f}",
        f"{result.tuned:.4f}",
        f"{result.difference:+.4f}",
        f"[{result.low:+.4f}, {result.high:+.4f}]",
        f"{result.null_mean:+.4f}, {result.null_high:+.4f}",
        f"{result.null_p:.3f}".removeprefix("0"),
        f"{result.oracle:.4f}",
        "" if result.reranked is None else f"{100 * result.reranked:.0f} %",
        result.verdict,
    )
    return Row(cells, tone)
