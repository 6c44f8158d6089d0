"""What a tuning run says, in plain sentences: decided here, drawn elsewhere.

It must be able to say "keep the default", and it never calls a tuning gain a gain.
"""

from __future__ import annotations

from collections.abc import Iterator

from fusion_bench.report.page import Finding
from fusion_bench.report.tuning import pareto_table as fronts
from fusion_bench.report.tuning.recommendation import advice, lever, nothing_found, unjudged_decide
from fusion_bench.report.tuning.tables import setting
from fusion_bench.report.tuning.tuning_records import Gain, ParameterInfo, TuningReport
from fusion_bench.util.formatting import (
    escape_control_chars,
    format_interval,
    format_number,
    format_p_value,
)
from fusion_bench.util.formatting import format_percent as percent

__all__ = ["tuning_findings"]

#: A plateau at least this wide: the numbers hardly matter; below the other: a narrow peak.
WIDE, NARROW = 0.25, 0.01
#: Nearer to an end of its range than this share of it: the range may be too narrow.
EDGE = 0.02


def tuning_findings(tuning: TuningReport) -> tuple[Finding, ...]:
    """What to know: the verdict first, then what speaks for and against it, then warnings."""
    found = [
        *_verdict(tuning),
        advice(tuning),
        *_lever(tuning),
        *_shrinkage(tuning),
        *_nested(tuning),
        *_plateau(tuning),
        *_rule(tuning),
        *_typed(tuning),
        *_front(tuning),
        *_thresholds(tuning),
    ]
    warnings = [
        *_interrupted(tuning),
        *_judged_only(tuning),
        *_edges(tuning),
        *_losing_types(tuning),
    ]
    return (
        *(Finding(text) for text in found),
        *(Finding(text, "warning") for text in warnings),
    )


def _by(tuning: TuningReport, gain: Gain) -> str:
    return (
        f"{format_number(gain.difference, signed=True)} "
        f"{format_interval(gain.low, gain.high, signed=True)}, "
        f"p {format_p_value(gain.p, alpha=tuning.alpha)}"
    )


def _verdict(tuning: TuningReport) -> Iterator[str]:
    found, least = tuning.held_out, format_number(tuning.min_gain)
    on = f"on {found.queries:,} held-out queries: {tuning.measure} {_by(tuning, found)}"
    if tuning.verdict == "ship":
        small = found.difference < tuning.min_gain
        weigh = f" It is smaller than the least gain asked for, {least}." if small else ""
        yield f"Ship: the tuned system is better {on}.{weigh}"
    elif tuning.verdict == "worse":
        yield f"Worse: keep the default. The tuned system is worse {on}."
    elif tuning.verdict == "keep" and not (found.wins or found.losses):
        yield f"Keep the default: the tuned system makes no difference {on}."
    elif tuning.verdict == "keep":
        yield f"Keep the default: any gain is below the {least} that would be worth a change {on}."
    else:
        yield f"Too few queries to tell, so keep the default for now: {on}. {_needed(tuning)}"


def _needed(tuning: TuningReport) -> str:
    """How many queries would do, in place of "try again"."""
    least, found = format_number(tuning.min_gain), tuning.held_out
    if nothing_found(tuning):
        where = "held out" if tuning.nested is None else "held out and in cross-validation"
        return f"Nothing was found so far: the gain is not above 0 {where}."
    if tuning.needed is None:
        return f"Nothing here tells how many would show a gain of {least}."
    if tuning.needed > found.queries:
        return (
            f"{tuning.needed:,} held-out queries would be needed to show a gain of {least} with "
            "power .8."
        )
    return (
        f"{tuning.needed:,} would show a gain of {least} with power .8 and there are that many, so "
        "the true gain is most likely about that small: decide by what the change costs."
    )


def _lever(tuning: TuningReport) -> Iterator[str]:
    found = lever(tuning)
    if found is not None:
        yield found


def _shrinkage(tuning: TuningReport) -> Iterator[str]:
    lost = tuning.shrinkage
    if lost is None:
        yield "The search found nothing better than the default on the tuning queries either."
        return
    tune, held_out = tuning.tune.difference, tuning.held_out.difference
    gains = (
        f"{format_number(tune, signed=True)} on the tuning queries, "
        f"{format_number(held_out, signed=True)}"
    )
    if held_out <= 0:
        yield f"Shrinkage: {gains} held out. The whole gain was fitted to the tuning queries."
    elif lost > 0:
        yield f"Shrinkage: {gains} held out: {percent(lost)} of the gain did not carry over."
    else:
        yield f"Shrinkage: {gains} held out: none; the held-out queries gained as much."


def _nested(tuning: TuningReport) -> Iterator[str]:
    if tuning.nested is None:
        return
    paid = sum(fold.unseen > 0 for fold in tuning.folds)
    yield (
        f"Nested cross-validation estimates the gain of this procedure at "
        f"{format_number(tuning.nested.difference, signed=True)} on unseen queries; it paid on "
        f"{paid} of "
        f"{len(tuning.folds)} folds."
    )


def _plateau(tuning: TuningReport) -> Iterator[str]:
    if tuning.plateau is None:
        return
    share, sample = tuning.plateau.share, tuning.plateau.sample
    said = (
        f"Plateau: {percent(share)} of {sample:,} random settings are within one standard error of "
        "the chosen one on the tuning queries"
    )
    if share >= WIDE:
        yield f"{said}: the exact numbers hardly matter."
    elif share < NARROW:
        yield f"{said}: a narrow peak, so believe it only as far as the held-out queries do."
    else:
        yield f"{said}."


def _rule(tuning: TuningReport) -> Iterator[str]:
    if not tuning.done:
        return
    best = max(tuning.done, key=lambda trial: trial.value or 0.0)
    highest = f"trial {best.number} ({format_number(best.value)})"
    rule, taken = tuning.choice.rule, tuning.choice.trial
    if rule == "one_standard_error":
        yield (
            f"Chosen by the one-standard-error rule: trial {taken}, the nearest to the default "
            f"among those that the tuning queries cannot tell from the best, {highest}."
        )
    elif rule == "shrinkage" and taken == tuning.done[0].number != best.number:
        yield (
            "The default was chosen: after shrinkage (prior weight 10) no trial beats it. "
            f"The highest mean is that of {highest}."
        )
    elif rule == "shrinkage" and taken != best.number:
        yield (
            f"Chosen: trial {taken}, whose gain on the tuning queries is the greatest after "
            f"shrinkage (prior weight 10). The highest mean is that of {highest}."
        )


def _typed(tuning: TuningReport) -> Iterator[str]:
    if tuning.typed is None:
        return
    said = {
        "ship": "is better than one set of numbers for all",
        "worse": "is worse than one set of numbers for all: keep that",
        "keep": "gains nothing worth having over one set of numbers for all: keep that",
        "too few queries": "is not shown to beat one set of numbers for all: keep that for now",
    }[tuning.typed.verdict]
    yield f"Tuning by query type {said} (held out: {_by(tuning, tuning.typed.over_global)})."


def _front(tuning: TuningReport) -> Iterator[str]:
    if tuning.front is not None:
        yield f"Quality against effort: {' '.join(fronts.findings(tuning, tuning.front))}"


def _thresholds(tuning: TuningReport) -> Iterator[str]:
    found = tuning.thresholds
    if found is None:
        return
    at = [f"{rule.upper:.4g} / {rule.lower:.4g}" for rule in (found.tuned, found.default)]
    said = {
        "ship": "are better than",
        "worse": "are worse than",
        "keep": "gain nothing worth having over",
        "too few queries": "are not shown to beat",
    }[found.verdict]
    yield (
        f"Thresholds {at[0]} {said} {at[1]} at telling whether the top {found.top} holds a "
        f"relevant document: utility {format_number(found.gain.tuned)} against "
        f"{format_number(found.gain.default)} held out ({_by(tuning, found.gain)}). As one "
        "threshold, "
        f"min_score is best at {found.min_score.upper:.4g}."
    )


def _interrupted(tuning: TuningReport) -> Iterator[str]:
    if tuning.front is not None and tuning.front.interrupted:
        yield "The search for quality against effort was interrupted: its points may be improved."
    elif tuning.interrupted:
        yield f"The search was interrupted after {len(tuning.trials):,} trials."


def _judged_only(tuning: TuningReport) -> Iterator[str]:
    if unjudged_decide(tuning):
        judged = format_number(tuning.judged_only, signed=True)
        yield (
            f"Over judged documents only the held-out difference is {judged}, "
            "of the other sign: unjudged documents decide, so do not trust this verdict."
        )


def _edges(tuning: TuningReport) -> Iterator[str]:
    at = [one for one in tuning.parameters if _at_edge(one, tuning)]
    if at:
        named = ", ".join(
            f"{escape_control_chars(one.path)} {setting(tuning.choice.params[one.path])}"
            for one in at
        )
        yield f"Chosen at the end of its range: {named}. A wider range may hold something better."


def _at_edge(parameter: ParameterInfo, tuning: TuningReport) -> bool:
    """0 is a natural end: a weight or bonus of 0 switches off what it weighs."""
    value = tuning.choice.params.get(parameter.path)
    low, high = parameter.low, parameter.high
    if parameter.kind == "choice" or low is None or high is None or low == high:
        return False
    if not isinstance(value, int | float) or value == 0:
        return False
    if high == 1 and low == 0:  # a share: both ends are natural
        return False
    reach = EDGE * (high - low)
    if parameter.ratio:  # the greatest stands at 1, wherever the range ends
        return value <= low + reach
    return value >= high - reach or (not parameter.log and value <= low + reach) or value == low


def _losing_types(tuning: TuningReport) -> Iterator[str]:
    for one in tuning.by_type:
        if one.gain.high is not None and one.gain.high < 0:
            name = (
                "queries without a type"
                if one.type is None
                else f"type {escape_control_chars(one.type)}"
            )
            yield (
                f"The tuned system loses on {name}: {_by(tuning, one.gain)}, not adjusted for the "
                "number of types."
            )
