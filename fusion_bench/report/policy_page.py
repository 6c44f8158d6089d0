"""The record of a policy study, as a page."""

from __future__ import annotations

from typing import Literal

from fusion_bench.checks.records import DataWarning
from fusion_bench.checks.unjudged import UnjudgedResult
from fusion_bench.evaluation.report_file import ExperimentRecord
from fusion_bench.report.answer_texts import name_verdict
from fusion_bench.report.data_warnings import JudgePlace, format_pool_line, warning_sections
from fusion_bench.report.page import Column, Finding, Page, Section, Tone, make_table
from fusion_bench.stats.comparison import MeanDifference
from fusion_bench.util.formatting import pluralize

PolicyVerdict = Literal["pays", "no gain shown", "unjudged decide"]


class PolicyResult(MeanDifference):
    """A policy on a collection; every mean is of values on queries that chose nothing.

    Attributes:
        collection: The dataset.
        system: Name of the system with the policy.
        policy: The policy's method.
        measure: The measure.
        queries: Q.
        trials: Parameter sets of the policy that were tried.
        fixed_trials: Fixed variants that were tried: each stands for all queries.
        folds: K.
        default: Mean of the system without the policy.
        configured: Mean with the policy as it is configured; None = it is trained.
        fixed: Mean of the fixed variant that the other folds choose.
        tuned: Mean of the policy with the parameters that the other folds choose.
        oracle: Mean of the best variant of each query: what no policy can pass.
        oracle_by_chance: Mean of the best of as many variants that know nothing of the query: the
            best fixed variant, disturbed at random to the same mean. An oracle that is not above it
            shows nothing to win; None = not measured.
        difference: ``tuned`` − ``fixed``.
        low: Lower end of its 95 % interval, paired.
        high: Upper end.
        null_mean: Mean difference where the features are shuffled across queries.
        null_high: What 97.5 % of the shuffled differences do not exceed.
        null_p: (1 + shufflings of at least the difference) / (1 + shufflings).
        shufflings: Number of shufflings of the null; as many others are put to the test.
        shuffled_above: So many of these others have an interval above 0.
        shuffled_pays: So many of them pass the whole rule.
        reranked: Share of the queries that the tuned policy reranks; None = it always does.
        verdict: See :func:`fusion_bench.tune.policy_study.decide_policy`; ``unjudged
            decide`` where it pays, and unjudged documents contradict that.
        unjudged: What unjudged documents could change in the difference of a policy that pays;
            None otherwise, and with complete judgments.
    """

    collection: str
    system: str
    policy: str
    measure: str
    queries: int
    trials: int
    fixed_trials: int
    folds: int
    default: float
    configured: float | None
    fixed: float
    tuned: float
    oracle: float
    oracle_by_chance: float | None = None
    low: float
    high: float
    null_mean: float
    null_high: float
    null_p: float
    shufflings: int
    shuffled_above: int
    shuffled_pays: int
    reranked: float | None
    verdict: PolicyVerdict
    unjudged: UnjudgedResult | None = None


class PolicyStudy(ExperimentRecord):
    """The policies of an experiment.

    Attributes:
        settings: Trials, folds, shufflings and seed.
        results: One for each policy and collection.
        data_warnings: What speaks against the collections, as ``eval`` has it; each text begins
            with its collection where there are several.
    """

    format: Literal["fusion-bench-policies"] = "fusion-bench-policies"
    format_version: Literal[1] = 1
    results: tuple[PolicyResult, ...]
    data_warnings: tuple[DataWarning, ...] = ()


NOTES = (
    "All means are out of fold: the policy's parameters and the fixed variant are those that the "
    "other folds choose. Fixed variants are the policy's own, each for all queries.",
    "shuffled = the same with the features shuffled across queries: mean difference, and what "
    "97.5 % of the shufflings do not exceed. p = share of shufflings that reach the difference.",
    "A policy pays if its interval is above 0, p is at most .025, and unjudged documents do not "
    "contradict it.",
    "oracle = the best variant of each query; no policy can pass it. by chance = the best of as "
    "many random disturbances of the best fixed variant; an oracle that is not above that shows "
    "nothing to win.",
)


def build_policy_page(study: PolicyStudy) -> Page:
    """Every policy against the fixed numbers.

    Args:
        study: What was judged.
    """
    sections = [*warning_sections(study.data_warnings)]
    for name in dict.fromkeys(result.collection for result in study.results):
        results = [result for result in study.results if result.collection == name]
        sections.append(_build_section(name, results))
    paying = [result for result in study.results if result.verdict == "pays"]
    verb = "pays" if len(paying) == 1 else "pay"
    text = f"{len(paying)} of {pluralize(len(study.results), 'policy')} {verb}."
    if not paying:
        text = "No policy is shown to gain over fixed numbers tuned on the same queries."
    settings, provenance = study.settings, study.provenance
    stated = ", ".join(f"{key} {value}" for key, value in settings.items())
    facts = {**provenance.facts, "settings": stated}
    details = [*map(_describe, paying)]
    decided = [r for r in study.results if r.verdict == "unjudged decide"]
    details += map(_describe_unjudged, decided)
    if decided:
        first, collections = decided[0], {result.collection for result in study.results}
        place = JudgePlace.of_report(provenance, first.collection, len(collections))
        line = format_pool_line(place, first.system)
        details.append(f"Judge these first: {line}")
    summary = f"{provenance.origin}; {stated}"
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


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


VERDICT_TONES: dict[str, Tone] = {"pays": "better", "unjudged decide": "warning"}
COLUMNS: tuple[Column[PolicyResult], ...] = (
    Column("system", lambda result: result.system, is_text=True),
    Column("no policy", lambda result: f"{result.default:.4f}", is_optional=True),
    Column[float]("as configured", "{:.4f}".format, is_optional=True).of(lambda r: r.configured),
    Column("tuned fixed", lambda result: f"{result.fixed:.4f}"),
    Column("tuned policy", lambda result: f"{result.tuned:.4f}"),
    Column("difference", lambda result: f"{result.difference:+.4f}"),
    Column("95 % interval", lambda result: f"[{result.low:+.4f}, {result.high:+.4f}]"),
    Column("shuffled", lambda r: f"{r.null_mean:+.4f}, {r.null_high:+.4f}", is_optional=True),
    Column("p", lambda result: f"{result.null_p:.3f}".removeprefix("0")),
    Column("oracle", lambda result: f"{result.oracle:.4f}", is_optional=True),
    Column[float]("by chance", "{:.4f}".format, is_optional=True).of(lambda r: r.oracle_by_chance),
    Column[float]("reranked", _percent, is_optional=True).of(lambda r: r.reranked),
    Column("verdict", lambda result: name_verdict(result.verdict), is_text=True, is_name=True),
)


def _build_section(name: str, results: list[PolicyResult]) -> Section:
    first = results[0]
    tested = ", ".join(f"{r.system} {r.shuffled_pays}" for r in results)
    table = make_table(
        f"{first.measure}: policies against fixed numbers",
        COLUMNS,
        results,
        notes=(
            *NOTES,
            f"Of {first.shufflings} further shufflings, so many would pay by this rule: {tested}.",
        ),
        tone=lambda result: VERDICT_TONES.get(result.verdict, "plain"),
        is_transposable=True,
    )
    title = f"{name}, {pluralize(first.queries, 'query')}, {first.folds} folds"
    return Section(title, parts=(table.without_empty_columns(),))
