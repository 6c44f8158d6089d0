"""The answer of an evaluation in words: which system to use, what it gains, what to do.

"Not shown" is not "no difference", and the highest mean is not a proven best: a sentence
claims no more than was tested.
"""

from __future__ import annotations

from collections.abc import Iterator

from fusion_bench.evaluation.recommendation import Preference, choose_action, find_preference
from fusion_bench.evaluation.report_file import Report
from fusion_bench.evaluation.report_records import Collection, ComparisonResult
from fusion_bench.report.answer_texts import (
    JUDGE_FIRST,
    format_adjusted_p,
    format_answer,
    format_margin,
)
from fusion_bench.report.page import Finding
from fusion_bench.stats.comparison import SHOWN
from fusion_bench.util.formatting import format_change, format_difference, format_number, pluralize


def answer_in_words(report: Report) -> str:
    """The answer as a title: of one collection what to use, of several on how many it gains."""
    if len(report.collections) == 1:
        return _title_collection(report.collections[0])
    better = sum(find_preference(each) is not None for each in report.collections)
    total = pluralize(len(report.collections), "collection")
    if not better:
        return f"No system is shown to be better than the baseline on any of {total}"
    return f"A system is better than the baseline on {better} of {total}"


def _title_collection(collection: Collection) -> str:
    """``Use a: nDCG@10 +0.0500 over b on c``."""
    name, baseline, preference = collection.name, collection.baseline, find_preference(collection)
    if preference is not None:
        item = preference.comparison
        gain = f"{item.measure} {format_number(item.difference, signed=True)}"
        return f"Use {item.candidate}: {gain} over {baseline} on {name}{collection.condition}"
    if not collection.ranked_comparisons:
        mean = collection.ranked_systems[0].measures[collection.primary_measure].mean
        return f"{baseline} on {name}: {collection.primary_measure} {format_number(mean)}"
    return {
        "judge first": f"{JUDGE_FIRST.capitalize()}: documents without a grade decide on {name}",
        "more queries": f"Keep {baseline} on {name} for now: too few queries to show a gain",
    }.get(choose_action(collection), f"Keep {baseline}: no system is shown to be better on {name}")


def list_advice(report: Report) -> Iterator[str]:
    """What to do, a sentence a collection that compares systems."""
    for collection in report.collections:
        place = f"On {collection.name}: " if len(report.collections) > 1 else ""
        if collection.ranked_comparisons:
            yield place + _advise(collection)


def _advise(collection: Collection) -> str:
    """``Use a instead of b.``, or why to keep the baseline, and what would decide."""
    preference = find_preference(collection)
    if preference is None:
        return _advise_on_baseline(collection)
    return f"Use {preference.candidate} instead of {collection.baseline}{collection.condition}."


def decision_finding(report: Report, collection: Collection) -> Finding:
    """Whether a system is better than the baseline, which one, and which has the highest mean."""
    comparisons = collection.ranked_comparisons
    baseline, top = collection.baseline, collection.ranked_systems[0].name
    preference = find_preference(collection)
    if not comparisons:
        system = _describe_system(report, collection, top)
        return Finding(f"{system} is the only system on {collection.name}.", key="decision")
    if preference is None:
        text = (
            f"No system is shown to be better than the baseline {baseline} on {collection.name} "
            f"({pluralize(len(collection.queries), 'query')})."
        )
    else:
        text = _describe_preference(report, collection, preference)
    if preference is None or top not in {preference.candidate, *collection.first_group}:
        system = _describe_system(report, collection, top)
        text += f" The highest {collection.primary_measure} is that of {system}."
    return Finding(text, "plain" if preference is None else "better", "decision")


def _describe_preference(report: Report, collection: Collection, preference: Preference) -> str:
    """Which system to use, what it gains, and why it rather than another one of the first group."""
    gain = f"Use {_describe_gain(report, collection, preference.comparison)}"
    if not preference.reason:
        return gain
    others = pluralize(len(collection.first_group) - 1, "other system")
    return f"{gain} No difference to {others} of the first group is shown; {preference.reason}."


def _advise_on_baseline(collection: Collection) -> str:
    """What to do where no system is shown to be better."""
    baseline, comparisons = collection.baseline, collection.ranked_comparisons
    decided = sum(each.answer == "unjudged decide" for each in comparisons)
    if decided:
        return (
            f"Keep {baseline} until more documents are judged: documents without a grade decide "
            f"{decided:,} of {pluralize(len(comparisons), 'comparison')}."
        )
    if choose_action(collection) != "more queries":
        return f"Keep {baseline}."
    first = comparisons[0]
    return (
        f"Keep {baseline}, and add queries: these show a difference of "
        f"{format_number(first.min_detectable_difference)} or more to {first.candidate}, which "
        f"differs by {format_number(first.difference, signed=True)}."
    )


def describe_answer(report: Report, item: ComparisonResult) -> str:
    """The answer of a comparison, as every page writes it; empty = not tested."""
    return format_answer(item.answer, report.min_gain, alpha=report.alpha)


def _describe_gain(report: Report, collection: Collection, item: ComparisonResult) -> str:
    """``a is better than the baseline b on c: nDCG@10 0.5 → 0.6, +20.0 %: … (+0.1 […], p …)``."""
    before, after = (
        format_number(collection.system(name).measures[item.measure].mean)
        for name in (item.baseline, item.candidate)
    )
    small = "" if item.answer == "better" else f", by less than {format_margin(report.min_gain)},"
    return (
        f"{item.candidate}: it is better than the baseline {item.baseline}{small} on "
        f"{collection.name}{collection.condition}: "
        f"{item.measure} {before} → {after}, {_describe_change(collection, item)} "
        f"({_describe_difference(report, item)})."
    )


def _describe_change(collection: Collection, item: ComparisonResult) -> str:
    """``+17.8 %: 25 queries better, 8 worse of 60``."""
    return format_change(
        item.difference,
        collection.system(item.baseline).measures[item.measure].mean,
        wins=item.wins,
        losses=item.losses,
        queries=item.wins + item.ties + item.losses,
    )


def _describe_difference(report: Report, item: ComparisonResult) -> str:
    """``+0.0100 [+0.0020, +0.0180], adjusted p .012``."""
    difference = format_difference(item.difference, item.low, item.high)
    return f"{difference}, adjusted p {format_adjusted_p(item, report.alpha)}"


def _describe_system(report: Report, collection: Collection, name: str) -> str:
    """``name (nDCG@10 0.6000, +1.7 %: …; +0.0100 [+0.0020, +0.0180], adjusted p .012; …)``."""
    primary = collection.primary_measure
    mean = format_number(collection.system(name).measures[primary].mean)
    item = collection.comparison(name, primary)
    if item is None:
        return f"{name} ({primary} {mean})"
    condition = collection.condition if item.answer in SHOWN else ""
    verdict = "" if item.answer == "better" else f"; {describe_answer(report, item)}{condition}"
    difference = f"{_describe_difference(report, item)}{verdict}"
    return f"{name} ({primary} {mean}, {_describe_change(collection, item)}; {difference})"
