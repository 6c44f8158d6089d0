"""What an evaluation says in sentences: which system to use, what it gains, what speaks for it.

"Not shown" is not "no difference", and the highest mean is not a proven best: a sentence
claims no more than was tested.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from fusion_bench.checks.query_warnings import CHOSEN_GROUPING
from fusion_bench.data.ordering import NOISE
from fusion_bench.evaluation.recommendation import (
    choose_action,
    find_hidden_difference,
    find_preference,
    preferred_system,
)
from fusion_bench.evaluation.report_file import Report
from fusion_bench.evaluation.report_records import (
    Collection,
    ComparisonResult,
    SystemResult,
)
from fusion_bench.evaluation.results import has_idle_reranker
from fusion_bench.experiment.system import System
from fusion_bench.experiment.system_words import describe_config
from fusion_bench.measures.aliases import display_measure
from fusion_bench.report.answer_texts import (
    JUDGE_FIRST,
    answer_findings,
    format_answer,
    format_margin,
)
from fusion_bench.report.data_warnings import (
    JudgePlace,
    find_report_warnings,
    format_judge_line,
    format_pool_line,
    list_findings,
)
from fusion_bench.report.evaluation_tables import find_pair
from fusion_bench.report.page import Finding, Tone
from fusion_bench.stats.comparison import SHOWN
from fusion_bench.stats.intervals import MeanEstimate
from fusion_bench.stats.repeat_variance import ENOUGH_REPEATS, FEW_REPEATS
from fusion_bench.util.formatting import (
    format_change,
    format_coverage,
    format_difference,
    format_number,
    format_p_value,
    is_known,
    list_names,
    pluralize,
)

#: With less room above the best system, queries tell nothing of better ones.
NO_HEADROOM = 0.005
#: A finding names so many systems that disagree with themselves; the table has all.
MOST_NAMED = 3


def answer_in_words(report: Report) -> str:
    """The answer as a title: of one collection what to use, of several on how many it gains."""
    if len(report.collections) == 1:
        collection = report.collections[0]
        name, baseline = collection.name, collection.baseline
        preference = find_preference(collection)
        if collection.obstacles:
            return f"Check the data of {name}: {collection.obstacles[0].text.rstrip('.')}"
        if preference is not None:
            item = preference.comparison
            gain = f"{display_measure(item.measure)} {format_number(item.difference, signed=True)}"
            return f"Use {item.candidate}: {gain} over {baseline} on {name}{collection.condition}"
        if not collection.ranked_comparisons:
            mean = collection.ranked_systems[0].measures[collection.primary_measure].mean
            return (
                f"{baseline} on {name}: {display_measure(collection.primary_measure)} "
                f"{format_number(mean)}"
            )
        first = JUDGE_FIRST.capitalize()
        titles = {
            "judge first": f"{first}: documents without a grade decide on {name}",
            "more queries": f"Keep {baseline} on {name} for now: too few queries to show a gain",
        }
        keep = f"Keep {baseline}: no system is shown to be better on {name}"
        return titles.get(choose_action(collection), keep)
    better = sum(find_preference(each) is not None for each in report.collections)
    total = pluralize(len(report.collections), "collection")
    if not better:
        return f"No system is shown to be better than the baseline on any of {total}"
    return f"A system is better than the baseline on {better} of {total}"


def list_advice(report: Report) -> Iterator[str]:
    """What to do, a sentence a collection that compares systems."""
    for collection in report.collections:
        place = f"On {collection.name}: " if len(report.collections) > 1 else ""
        if collection.obstacles:
            remedies = " ".join(each.remedy for each in collection.obstacles)
            yield f"{place}Check the data first. {remedies}"
        elif collection.ranked_comparisons:
            yield place + _advise(collection)


def _advise(collection: Collection) -> str:
    """``Use a instead of b.``, or why to keep the baseline, and what would decide."""
    preference = find_preference(collection)
    if preference is None:
        baseline, comparisons = collection.baseline, collection.ranked_comparisons
        decided = sum(each.answer == "unjudged decide" for each in comparisons)
        if decided:
            return (
                f"Keep {baseline} until more documents are judged: documents without a grade "
                f"decide {decided:,} of {pluralize(len(comparisons), 'comparison')}."
            )
        if choose_action(collection) != "more queries":
            return f"Keep {baseline}."
        first = comparisons[0]
        return (
            f"Keep {baseline}, and add queries: these show a difference of "
            f"{format_number(first.min_detectable_difference)} or more to {first.candidate}, which "
            f"differs by {format_number(first.difference, signed=True)}."
        )
    return f"Use {preference.candidate} instead of {collection.baseline}{collection.condition}."


def decision_finding(report: Report, collection: Collection) -> Finding:
    """The answer, what the system does, and how many queries have no relevant document."""
    finding = _decide(report, collection)
    finding = replace(finding, details=(*describe_use(collection), *finding.details))
    count, means = collection.queries_without_relevant, collection.means_of_others
    if not means:
        return finding
    systems = collection.ranked_systems
    alone = [row.name for row in systems if len((row.config or {}).get("runs", ())) == 1]
    named = dict.fromkeys((systems[0].name, *alone[:1], collection.baseline))
    listed = ", ".join(f"{format_number(means[name])} for {name}" for name in named)
    verb, they = ("has", "it scores") if count == 1 else ("have", "they score")
    text = (
        f"{count:,} of {pluralize(len(collection.queries), 'query')} {verb} no relevant document: "
        f"{they} 0 for every system. Over the others "
        f"{display_measure(collection.primary_measure)} is {listed}."
    )
    return replace(finding, details=(*finding.details, text))


def describe_use(collection: Collection) -> tuple[str, ...]:
    """What the system to use does, in one sentence; nothing if it is not known."""
    if collection.obstacles:
        return ()
    name = preferred_system(collection)
    return describe_config(name, collection.system(name).config)


def _decide(report: Report, collection: Collection) -> Finding:
    """Whether a system is better than the baseline, which one, and which has the highest mean."""
    if collection.obstacles:
        texts = [f"{each.text} {each.remedy}" for each in collection.obstacles]
        return Finding(f"Check the data: {texts[0]}", "warning", "decision", tuple(texts[1:]))
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
        item = preference.comparison
        before, after = (
            format_number(collection.system(name).measures[item.measure].mean)
            for name in (item.baseline, item.candidate)
        )
        margin = format_margin(report.min_gain)
        small = "" if item.answer == "better" else f", by less than {margin},"
        text = (
            f"Use {item.candidate}: it is better than the baseline {item.baseline}{small} on "
            f"{collection.name}{collection.condition}: {display_measure(item.measure)} {before} → "
            f"{after}, {_describe_change(collection, item)} ({_describe_difference(report, item)})."
        )
    if preference is None or top not in {preference.candidate, *collection.first_group}:
        system = _describe_system(report, collection, top)
        text += f" The highest {display_measure(collection.primary_measure)} is that of {system}."
    return Finding(text, "plain" if preference is None else "better", "decision")


def _describe_answer(report: Report, item: ComparisonResult) -> str:
    """The answer of a comparison, as every page writes it; empty = not tested."""
    return format_answer(item.answer, report.min_gain)


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
    """``+0.0100 [+0.0020, +0.0180], p .012``."""
    difference = format_difference(item.difference, item.low, item.high)
    return f"{difference}, p {format_p_value(item.p, alpha=report.alpha)}"


def _describe_system(report: Report, collection: Collection, name: str) -> str:
    """``name (nDCG@10 0.6000, +1.7 %: …; +0.0100 [+0.0020, +0.0180], p .012; …)``."""
    primary = collection.primary_measure
    mean = format_number(collection.system(name).measures[primary].mean)
    item = collection.comparison(name, primary)
    if item is None:
        return f"{name} ({display_measure(primary)} {mean})"
    condition = collection.condition if item.answer in SHOWN else ""
    verdict = "" if item.answer == "better" else f"; {_describe_answer(report, item)}{condition}"
    difference = f"{_describe_difference(report, item)}{verdict}"
    return (
        f"{name} ({display_measure(primary)} {mean}, {_describe_change(collection, item)}; "
        f"{difference})"
    )


def repeat_findings(collection: Collection) -> Iterator[Finding]:
    """Which systems have repeats, how they disagree."""
    rows = collection.repeated_systems
    if not rows:
        return
    queries, measure = len(collection.queries), collection.primary_measure
    counts = sorted({len(repeats.means) for _, repeats in rows})
    details = [
        f"{row.name} disagrees with itself on {repeats.disagreeing_pair:,} of "
        f"{pluralize(queries, 'query')} ({display_measure(measure)} of trials 1 and 2)."
        for row, repeats in sorted(rows, key=lambda pair: -pair[1].disagreeing_pair)[:MOST_NAMED]
    ]
    few = [row.name for row, repeats in rows if len(repeats.means) <= FEW_REPEATS]
    fixed = [row.name for row in collection.ranked_systems if row.trials is None]
    verbs = "has one trial and counts" if len(fixed) == 1 else "have one trial and count"
    yield Finding(
        f"Values are means over {' or '.join(map(str, counts))} trials of "
        f"{list_names([row.name for row, _ in rows])}. Their intervals are for new trials and new "
        f"queries. {describe_few_repeats(list_names(few)) if few else ''}"
        f"{f'{list_names(fixed)} {verbs} as fixed. ' if fixed else ''}Documents of single "
        "queries, lists left out and depths are those of trial 1.",
        key="trials",
        details=tuple(details),
    )


def describe_few_repeats(names: str) -> str:
    """How many repeats the named systems or lists need, as they have 2 or 3."""
    return (
        f"{FEW_REPEATS} trials or fewer hardly tell how far a trial moves all queries together: "
        f"against a list of one trial the intervals are wide for it, others can be too narrow. "
        f"{ENOUGH_REPEATS} trials of {names} are needed. "
    )


FUSION_TONES: dict[str, Tone] = {
    "pays": "better",
    "loses": "worse",
    "not shown": "plain",
    "unjudged decide": "warning",
}


def _fusion_finding(report: Report, collection: Collection) -> Finding | None:
    """Whether fusion pays; None where there is no fusion, or no source alone."""
    result = collection.fusion
    if result is None:
        return None
    label = "fusion with a reranker" if result.is_reranked else "fusion"
    single = "the single source" if result.sources == 1 else "every single source"
    claims = {
        "pays": f"{label.capitalize()} pays: {result.fusion} is better than {single}"
        f"{collection.condition}.",
        "loses": f"{label.capitalize()} loses: the source {result.source} alone is better than "
        f"{'the fusion' if result.fusions == 1 else f'all {result.fusions:,} fusions'}"
        f"{collection.condition}.",
        "not shown": f"Whether {label} pays is not shown.",
        "unjudged decide": f"Unjudged documents decide whether {label} pays.",
    }
    means = f"{format_number(result.fusion_mean)} against {format_number(result.source_mean)}"
    difference = format_difference(result.difference, result.low, result.high)
    p = format_p_value(result.p, alpha=report.alpha)
    family = pluralize(result.fusions * result.sources, "comparison")
    text = (
        f"{claims[result.verdict]} {result.fusion} against {result.source}: {means} ({difference}, "
        f"{format_coverage(report.alpha)} interval, p {p}; {family}, fusions × sources)."
    )
    if result.unjudged is not None:
        pair = " against ".join(result.contradicted)
        text += f" They decide it in {pair}: {result.unjudged.description}."
    if result.is_reranked:
        text += " No fusion without a reranker was evaluated."
    if has_idle_reranker(collection.system(result.fusion).config):
        text += f" In {result.fusion} the reranker weighs 0."
    if result.unjudged is not None:
        text += f" Judge these first: {_judge_line(report, collection, *result.contradicted)}"
    return Finding(text, FUSION_TONES[result.verdict], "fusion")


def _judge_line(report: Report, collection: Collection, fusion: str, source: str) -> str:
    """The comparison of both where a system is the source alone; else what the fusion returns."""
    place = JudgePlace.of_report(report.provenance, collection.name, len(report.collections))
    plain = System(name=source, runs=(source,)).model_dump(mode="json", exclude={"name"})
    for row in collection.ranked_systems:
        config = {key: value for key, value in (row.config or {}).items() if key != "name"}
        if config == plain:
            return format_judge_line(place, fusion, row.name)
    return format_pool_line(place, fusion)


def reranker_findings(report: Report, collection: Collection) -> Iterator[Finding]:
    """The rerankers that lower the mean of every fusion that is there with and without them."""
    # Of each reranker: names of a system with it and without, and their difference.
    by_reranker: dict[str, dict[tuple[str, str], MeanEstimate]] = {}
    for row in collection.ranked_systems:
        blend = (row.config or {}).get("blend") or {}
        plain = _find_without_blend(collection, row)
        if plain is not None and not has_idle_reranker(row.config):
            pair = find_pair(collection, row.name, plain.name)
            if pair is not None:
                estimates = by_reranker.setdefault(blend["reranker"], {})
                estimates[pair.names] = pair.estimate(report.alpha)
    for reranker, pairs in by_reranker.items():
        if all(difference.mean < 0 for difference in pairs.values()):
            shown = sum(each.high is not None and each.high < 0 for each in pairs.values())
            answers = (collection.comparison(name, collection.primary_measure) for name, _ in pairs)
            is_decided = any(
                each is not None and each.answer == "unjudged decide" for each in answers
            )
            is_shown = shown == len(pairs) and not is_decided
            (reranked, fusion), difference = max(pairs.items(), key=lambda item: item[1].mean)
            claim = (
                f"The reranker {reranker} lowers {display_measure(collection.primary_measure)} "
                f"of every fusion"
            )
            if not is_shown:
                claim = f"With the reranker {reranker} the mean of every fusion is lower"
            size = format_difference(difference.mean, difference.low, difference.high)
            text = (
                f"{claim}{collection.condition}. Least in {reranked} against {fusion}: {size} "
                f"({format_coverage(report.alpha)} interval, unadjusted); shown in {shown:,} of "
                f"{pluralize(len(pairs), 'pair')} that differ only in the blend."
            )
            text += " Documents without a grade could turn it." if is_decided else ""
            yield Finding(text, "warning" if is_shown else "plain", "reranker")


def _find_without_blend(collection: Collection, row: SystemResult) -> SystemResult | None:
    """The system that differs from a reranked one in its blend alone; None where there is none."""
    config = row.config or {}
    if not (config.get("blend") or {}).get("reranker"):
        return None
    plain = {**config, "blend": {"method": "none"}}
    others = collection.competitors.values()
    return next((other for other in others if other.config == plain), None)


def group_finding(report: Report, collection: Collection) -> Finding | None:
    """The design effects of the differences from the baseline; None without groups.

    Where the dataset says which groups are searched, that is said even if there are none.
    """
    queries, groups = len(collection.queries), len(set(collection.groups))
    chosen = CHOSEN_GROUPING.get(collection.grouping, "")
    if groups == queries:
        return Finding(chosen, key="groups") if chosen else None
    primary, baseline = collection.primary_measure, collection.baseline
    pairs = (
        find_pair(collection, row.name, baseline)
        for row in collection.ranked_systems
        if row.name != baseline
    )
    known = (pair.estimate(report.alpha).design_effect for pair in pairs if pair is not None)
    effects = [effect for effect in known if effect is not None]
    text = f"{chosen} {pluralize(queries, 'query')} in {pluralize(groups, 'group')}".strip()
    if not effects:
        return Finding(f"{text}.", key="groups")
    ends = " to ".join(dict.fromkeys(f"{end:.2g}" for end in (min(effects), max(effects))))
    return Finding(
        f"{text}: as queries of a group depend on each other, the variance of a difference in "
        f"{display_measure(primary)} is {ends} times that of independent queries.",
        key="groups",
    )


def collection_findings(report: Report, collection: Collection) -> tuple[Finding, ...]:
    """What to know beside the decision on a collection: findings, then warnings."""
    comparisons = collection.ranked_comparisons
    counts = Counter(_describe_answer(report, each) or "not tested" for each in comparisons)
    verdicts = ", ".join(f"{count:,} {answer}" for answer, count in counts.most_common())
    systems = f"{len(comparisons):,} compared systems{collection.condition}"
    text = f"Verdicts on {systems}: {verdicts}."
    power, hidden = None, find_hidden_difference(collection)
    if hidden is not None:
        queries, groups = len(collection.queries), len(set(collection.groups))
        within = "" if groups == queries else f" in {pluralize(groups, 'group')}"
        power = Finding(
            f"Too few queries for {hidden.candidate}: the minimum detectable difference (80 % "
            f"power) with {pluralize(queries, 'query')}{within} is "
            f"{format_number(hidden.min_detectable_difference)}; observed: "
            f"{format_number(hidden.difference, signed=True)}.",
            key="power",
        )
    findings = (
        Finding(text, key="verdict counts") if len(comparisons) > 1 else None,
        *compared_findings(collection),
        _fusion_finding(report, collection),
        *reranker_findings(report, collection),
        power,
        _headroom(collection),
        group_finding(report, collection),
        *repeat_findings(collection),
    )
    warnings = list_findings(find_report_warnings(report)[collection.name])
    return (*(finding for finding in findings if finding is not None), *warnings)


def compared_findings(collection: Collection) -> Iterator[Finding]:
    """Yield the best group, why one of it is recommended, and what qualifies the answers."""
    counts = (len(collection.competitors), len(set(collection.groups)))
    rows, best = collection.ranked_comparisons, collection.first_group
    yield from answer_findings(rows, best, *counts, find_preference(collection))
    names = []
    for row in collection.ranked_systems:
        pair = [collection.comparison(row.name, name) for name in collection.measures[:2]]
        differences = [0.0 if each is None else each.difference for each in pair]
        if min(differences) < -NOISE and max(differences) > NOISE:
            names.append(row.name)
    if names:
        count = pluralize(len(names), "system")
        measures = " and ".join(map(display_measure, collection.measures[:2]))
        text = f"{measures} differ in sign for {count}: {list_names(names)}."
        yield Finding(text, key="signs")


def _headroom(collection: Collection) -> Finding | None:
    """How far the best system is from the best ceiling."""
    primary = collection.primary_measure
    best = collection.ranked_systems[0].measures[primary].mean
    ceilings = [
        (row.measures[primary].mean or 0.0, row)
        for row in collection.reference_rows
        if row.kind == "ceiling" and is_known(row.measures[primary].mean)
    ]
    if not is_known(best) or not ceilings:
        return None
    mean, row = max(ceilings, key=lambda pair: pair[0])
    gap = format_number(mean - (best or 0.0), signed=True)
    text = f"Ceiling: {row.name} reaches {format_number(mean)}, {gap} above the best system"
    text += f" ({row.note})."
    if mean - (best or 0.0) < NO_HEADROOM:
        text += " These queries are too easy to tell good systems apart: add harder ones."
    return Finding(text, key="headroom")
