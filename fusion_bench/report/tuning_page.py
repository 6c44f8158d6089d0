"""The page of a tuning run: the verdict, the evidence for it, what speaks against it.

It can say "keep the default", and never calls a gain on the tuning queries a gain.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fusion_bench.checks.collection_warnings import warn_ties, warn_unjudged
from fusion_bench.checks.query_warnings import CHOSEN_GROUPING
from fusion_bench.checks.records import DataWarning
from fusion_bench.config.json_records import compute_once
from fusion_bench.config.query_types import CLASS_KEYS
from fusion_bench.experiment.system_words import describe_config
from fusion_bench.measures.aliases import display_measure
from fusion_bench.report import data_warnings
from fusion_bench.report import tuning_records as records
from fusion_bench.report.answer_texts import (
    compare_with_second,
    describe_best_group,
    describe_promise,
    format_share,
    unseen_losses,
)
from fusion_bench.report.evaluation_findings import describe_few_repeats
from fusion_bench.report.page import Finding, Page, Picture, Section, Tone, YamlBlock
from fusion_bench.report.tuning_tables import tuning_tables
from fusion_bench.report.tuning_texts import (
    advised_effort,
    describe_changes,
    describe_claim,
    describe_held_out,
    describe_look,
    describe_verdict,
    find_better_effort,
    format_gain,
    format_paired,
    format_value,
    is_better_by_less,
    pareto_texts,
    shown_condition,
)
from fusion_bench.stats.repeat_variance import FEW_REPEATS
from fusion_bench.util.formatting import format_number, format_percent, pluralize

#: A smaller plateau is a narrow peak, which the tuning queries alone do not support.
NARROW_PLATEAU = 0.01
#: Nearer to an end of its range than this share of it: the range may be too narrow.
END_DISTANCE = 0.02
TONES: dict[str, Tone] = {
    "ship": "better",
    "worse": "worse",
    "unjudged decide": "warning",
    "groups decide": "warning",
}
#: By selection rule: which trial it takes.
RULES = {
    "best": "the highest mean",
    "shrinkage": "the greatest gain over the default after shrinkage (prior weight 10)",
    "one_standard_error": "the nearest to the default within one standard error of the best",
}


def tuning_findings(report: records.TuningReport) -> tuple[Finding, ...]:
    """The verdict first, then the evidence, then warnings.

    Args:
        report: What was found.
    """
    warnings = (Finding(text, "warning", key) for key, text in _warnings(report))
    return (*_evidence(report), *warnings, *data_warnings.list_findings(_find_warnings(report)))


@compute_once
def _find_warnings(report: records.TuningReport) -> list[DataWarning]:
    """Whatever eval would warn of on the held-out queries."""
    if (facts := report.data) is None:
        return []
    return [
        *facts.warnings,
        *warn_unjudged(facts.unjudged_shares, facts.judgments, key="unjudged share"),
        *warn_ties("ties", facts.tied, report.measure, facts.queries),
        *warn_ties("source ties", facts.source_tied, report.measure, facts.queries),
    ]


#: Said where the dataset joins no groups.
UNSHIPPED = " So nothing ships: a held-out query may be a copy of a tuning query."


def _evidence(report: records.TuningReport) -> Iterator[Finding]:
    yield Finding(
        describe_verdict(report), _verdict_tone(report), "verdict", tuple(_list_details(report))
    )
    if report.first_group:
        text = describe_best_group(report.first_group, len(report.floor) + 2)
        yield Finding(text, key="best group")
    yield from _unjudged_finding(report)
    texts = {
        "better effort": _describe_better_effort(report),
        "list trials": _describe_list_repeats(report),
        "look": describe_look(report.look),
        "unseen losses": ""
        if report.is_default_chosen
        else unseen_losses(report.held_out.groups) or "",
        "groups": CHOSEN_GROUPING.get(report.grouping, "")
        + UNSHIPPED * (report.grouping == "none"),
        "optimism": _describe_optimism(report),
        "nested cross-validation": _describe_folds(report),
        "plateau": _describe_plateau(report),
        "selection rule": _describe_rule(report),
    }
    yield from (Finding(text, key=key) for key, text in texts.items() if text)
    if (result := report.per_type) is not None:
        claim = describe_claim(result.verdict, result.over_global, report.min_gain)
        text = (
            f"Tuning by {CLASS_KEYS[result.key].title} {claim} one set of parameters for all"
            f"{shown_condition(result.verdict, result.unjudged)} (held out: "
            f"{format_gain(result.over_global, report.alpha)})."
        )
        if result.unjudged is not None and result.unjudged.has_unjudged:
            text += f" Held out, {result.unjudged.description}."
        yield Finding(text, TONES.get(result.verdict, "plain"), "per query type")
    if report.front is not None:
        text = f"Quality against effort: {' '.join(pareto_texts(report, report.front))}"
        yield Finding(text, key="pareto front")
    for thresholds in report.thresholds:
        text = _describe_thresholds(thresholds, report)
        yield Finding(text, TONES.get(thresholds.verdict, "plain"), "thresholds")
    if report.abstain is not None:
        yield _describe_abstain(report.abstain)


def _describe_abstain(tuned: records.TunedThreshold) -> Finding:
    """The threshold of the tuned system, or why it has none."""
    if tuned.chosen is None:
        return Finding(f"No threshold is promised: {tuned.reason}.", "warning", "abstain")
    how = "you named the signal" if tuned.chosen.is_stated else "chosen on the tuning queries"
    origin = f"{how}; {pluralize(tuned.chosen.calibrating, 'held-out query')}"
    text = describe_promise(tuned.chosen, format_share(tuned.false_answers), origin)
    against = tuned.chosen.against
    return Finding(text, key="abstain", details=(compare_with_second(against),) if against else ())


def _list_details(report: records.TuningReport) -> Iterator[str]:
    """What the system to use does, what the search changed, and the held-out values."""
    yield from describe_config(report.advice.name, report.advice.config)
    if not report.is_default_chosen:
        changes = describe_changes(report)
        yield f"Tuned: {changes}." if changes else "Tuned: no parameter changed."
        yield describe_held_out(report)


def _describe_list_repeats(report: records.TuningReport) -> str:
    """What values and intervals mean where lists have several files; empty where they do not."""
    if report.list_trials == 1:
        return ""
    few = describe_few_repeats("the lists") if report.list_trials <= FEW_REPEATS else ""
    return (
        f"Values are means over {report.list_trials:,} trials of the lists. The intervals are for "
        f"new trials of them and new queries. {few}"
    ).rstrip()


def _verdict_tone(report: records.TuningReport) -> Tone:
    """That of the verdict; a gain is a warning where something untuned does as well."""
    if report.verdict == "ship" and report.advice.kind != "use tuned":
        return "warning"
    return TONES.get(report.verdict, "plain")


def _describe_optimism(report: records.TuningReport) -> str:
    """How much of the gain on the tuning queries the held-out queries confirm."""
    if report.is_default_chosen:  # the verdict says so
        return ""
    if report.optimism is None:
        if report.better_trials:
            return "The chosen trial has no higher mean than the default on the tuning queries."
        return "The search found nothing better than the default on the tuning queries."
    gains = (report.tune.difference, report.held_out.difference)
    tuning, held_out = (format_number(gain, signed=True) for gain in gains)
    share = 1 - report.optimism
    ratio = f" ({format_percent(share)} of it)" if share > 0 else ""
    return (
        f"Gain on the tuning queries {tuning}, held out {held_out}{ratio}. The first is biased "
        "upwards, because the trial was chosen by it."
    )


def _describe_folds(report: records.TuningReport) -> str:
    if report.nested is None:
        return ""
    if not report.nested.wins + report.nested.losses:
        return (
            f"Nested cross-validation: no choice of its {len(report.folds)} folds changes a value "
            "on unseen queries."
        )
    positive = sum(fold.unseen > 0 for fold in report.folds)
    gain = format_number(report.nested.difference, signed=True)
    folds = f"{positive} of {len(report.folds)} folds" if positive else "no fold"
    return (
        f"Nested cross-validation estimates a gain of {gain} on unseen queries; it is positive on "
        f"{folds}."
    )


def _describe_plateau(report: records.TuningReport) -> str:
    if report.plateau is None:
        return ""
    share, remark = report.plateau.share, ""
    if share < NARROW_PLATEAU:
        remark = " It is a narrow peak; rely on the held-out queries."
    return (
        f"Plateau: {format_percent(share)} of {report.plateau.sample:,} random parameter sets are "
        "within one standard error of the chosen one, by paired differences on the tuning queries."
        f"{remark}"
    )


def _describe_rule(report: records.TuningReport) -> str:
    """Which rule chose a trial other than that of the highest mean."""
    best = max(report.completed_trials, key=lambda trial: trial.value or 0.0)
    chosen = report.choice.trial
    if report.choice.rule == "best" or chosen == best.number:
        return ""
    default = " (the default)" if chosen == report.completed_trials[0].number else ""
    return (
        f"Trial {chosen}{default} was chosen as {RULES[report.choice.rule]}. The highest mean is "
        f"that of trial {best.number} ({format_number(best.value)})."
    )


def _describe_thresholds(thresholds: records.ThresholdReport, report: records.TuningReport) -> str:
    rules, gain = (thresholds.tuned, thresholds.default), thresholds.gain
    tuned, default = (f"{rule.upper:.4g} / {rule.lower:.4g}" for rule in rules)
    claim = describe_claim(thresholds.verdict, gain, report.min_gain)
    is_complete = report.data is not None and report.data.judgments == "complete"
    unjudged = "" if is_complete else " Unjudged documents count as not relevant; no veto by them."
    return (
        f"{thresholds.title}: the pair of thresholds {tuned} {claim} "
        f"{default} at telling whether the top {thresholds.top} has a relevant document: held-out "
        f"utility {format_number(gain.tuned)} against {format_number(gain.default)} "
        f"({format_gain(gain, report.alpha)}). The best single threshold "
        f"(min_score) is {thresholds.min_score.upper:.4g}.{unjudged}"
    )


#: Stands before the list in the path of its weight.
WEIGHT = ".weights."


def _warnings(report: records.TuningReport) -> Iterator[tuple[str, str]]:
    if report.front is not None and report.front.interrupted:
        text = "The search for quality against effort was interrupted; its points may improve."
        yield "interrupted", text
    elif report.interrupted:
        trials = pluralize(len(report.trials), "trial")
        yield "interrupted", f"The search was interrupted after {trials}."
    params, ends = report.choice.params, []
    for parameter in report.parameters:
        path, value = parameter.path, params.get(parameter.path)
        is_end, (_, is_weight, name) = _is_at_range_end(parameter, report), path.rpartition(WEIGHT)
        is_low = isinstance(value, int | float) and value < (parameter.high or 0) / 2
        if is_weight and (value == 0 or (is_end and is_low)):
            yield "list off", f"The list {name} is switched off: {path} {format_value(value)}."
        elif is_end:
            ends.append(f"{path} {format_value(value)}")
    if ends:
        text = f"Chosen at the end of the range: {', '.join(ends)}. A wider range may be better."
        yield "range end", text
    losing = (
        (field, value, gain)
        for field, gains in report.class_gains.items()
        for value, gain in gains
        if gain.high is not None and gain.high < 0
    )
    for field, value, gain in losing:
        absent = "queries without a type" if field == "type" else f"queries without an {field}"
        name = absent if value is None else f"{field} {value}"
        text = f"The tuned system loses on {name}: {format_gain(gain, report.alpha)}"
        yield f"losing {field}", f"{text}, over all {field}s."


def _unjudged_finding(report: records.TuningReport) -> Iterator[Finding]:
    """What unjudged documents could change, where there are any."""
    unjudged, decides = report.unjudged, report.verdict == "unjudged decide"
    if unjudged is None or report.is_default_chosen or not (unjudged.has_unjudged or decides):
        return
    text = f"Held out, {unjudged.description}."
    if decides:
        decide = "This contradicts" if unjudged.judged_only is not None else "They decide"
        text += f" {decide} the measured difference: judge documents before any change."
    yield Finding(text, "warning" if decides else "plain", "unjudged")


def _is_at_range_end(parameter: records.ParameterInfo, report: records.TuningReport) -> bool:
    """Whether a wider range could hold a better value.

    0 is a natural end: a weight or bonus of 0 switches off what it weighs. So are both ends of a
    share.
    """
    value = report.choice.params.get(parameter.path)
    low, high = parameter.low, parameter.high
    if parameter.kind == "choice" or low is None or high is None or low == high:
        return False
    if not isinstance(value, int | float) or value == 0 or (low, high) == (0, 1):
        return False
    margin = END_DISTANCE * (high - low)
    if parameter.ratio:  # the greatest is 1, wherever the range ends
        return value <= low + margin
    is_low = value <= low + margin and not parameter.log
    return value >= high - margin or is_low or value == low


def _tuning_in_words(report: records.TuningReport) -> str:
    """The recommendation as a title: ``Use the tuned a on c: nDCG@10 +0.0500 on held-out …``."""
    system, advice = f"{report.system} on {report.dataset}", report.advice
    if advice.kind == "judge first":
        return f"Keep the default {system}, and judge first: documents without a grade decide"
    if advice.kind == "declare groups":
        return f"Keep the default {system} until its groups are declared"
    if advice.kind == "use untuned":
        return f"Use {advice.name} instead of {system}: it needs no tuning, and nothing beats it"
    if advice.kind == "keep default":
        least = format_number(report.min_gain)
        if advised_effort(report) is not None:
            return f"Change the reranker or its depth in {system}: it is shown to gain"
        if is_better_by_less(report):
            return f"Tuned or not, {system} is about as good: the gain is less than {least}"
        return f"Keep the default {system}: no gain is shown on held-out queries"
    gain = (
        f"{display_measure(report.measure)} "
        f"{format_number(report.held_out.difference, signed=True)}"
    )
    condition = shown_condition(report.verdict, report.unjudged)
    return f"Use the tuned {system}: {gain} on held-out queries{condition}"


def _describe_better_effort(report: records.TuningReport) -> str:
    """That reranker or depth gain more than the tuned parameters; empty = they do not."""
    point, front = find_better_effort(report), report.front
    if point is None or front is None:
        return ""
    default = front.default_point
    what = "reranker" if point.reranker != default.reranker else "rerank depth"
    condition = "" if front.unjudged is None else front.unjudged.condition
    claim = f"The {what} gains more than the tuned parameters{condition}."
    if front.is_contradicted and front.unjudged is not None:
        claim = (
            f"Unjudged documents decide whether the {what} gains more than the tuned parameters "
            f"({front.unjudged.description})."
        )
    return (
        f"{claim} Held out, {front.point_name(point)} "
        f"reaches {format_number(point.held_out)}, the default ({front.point_name(default)}) "
        f"{format_number(default.held_out)} ({format_paired(point.over_default)}, which holds for "
        f"all points together), the tuned parameters {format_number(report.held_out.tuned)}."
    )


def build_page(
    report: records.TuningReport, figures: Sequence[Picture] = (), tuned: str = "tuned.yaml"
) -> Page:
    """The page of a tuning run: the verdict, what it rests on, tables and figures.

    Args:
        report: What to show.
        figures: The figures beside the page; empty = none.
        tuned: File of the tuned experiment, as commands name it.
    """
    verdict, *findings = tuning_findings(report)
    gains, *tables = tuning_tables(report)
    results = Section(
        summary=f"{report.dataset}: {display_measure(report.measure)}; {_count_trials(report)}; "
        f"split: {report.split}",
        findings=tuple(findings),
        parts=(gains, *figures[:1], *tables, *figures[1:]),
    )
    systems = Section(
        title="The systems",
        parts=(
            YamlBlock("Default", report.default),
            YamlBlock(f"Tuned (trial {report.choice.trial})", report.choice.config),
        ),
        is_folded=True,
    )
    provenance = Section(
        "Provenance",
        summary=f"{report.provenance.origin}; {report.dataset}, {report.split}; "
        f"data {report.fingerprint[:12]}; {_count_trials(report)}",
        facts=_facts(report),
    )
    title = f"{report.name}: tuning {report.system} on {report.dataset}"
    sections = (
        *data_warnings.judge_section(_find_warnings(report)),
        results,
        *data_warnings.lint_section(report.lint),
        systems,
    )
    advice = report.advice.sentence
    if report.advice.kind == "judge first":
        line = data_warnings.format_judge_line(data_warnings.JudgePlace(tuned))
        advice += f" Judge these first: {line}"
    return Page(
        *(title, sections, verdict, provenance), answer=_tuning_in_words(report), advice=(advice,)
    )


def _count_trials(report: records.TuningReport) -> str:
    """``300 trials of qmc``; records of before name no sampler."""
    sampler = report.settings.get("sampler")
    return f"{len(report.trials):,} trials{f' of {sampler}' if sampler else ''}"


def _facts(report: records.TuningReport) -> dict[str, str]:
    seed = "" if report.split_seed is None else f", split seed {report.split_seed!r}"
    return {
        "dataset": report.dataset,
        "fingerprint": report.fingerprint,
        "split": f"{report.split}{seed}",
        "trials run": f"{len(report.trials):,}",
        **{key: str(value) for key, value in report.settings.items() if value is not None},
        **report.provenance.facts,
    }
