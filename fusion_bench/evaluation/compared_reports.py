"""Systems compared from their stored values, of one report or of several on the same queries.

Two reports that differ by one list also tell how much of its gain each system keeps.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fusion_bench.checks.collection_warnings import find_warnings, merge_warnings
from fusion_bench.checks.records import DataWarning
from fusion_bench.data.grouped_rows import number_by_appearance
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.errors import ConfigError, UnknownNameError
from fusion_bench.evaluation.report_file import INFERENCE_KEYS, Report
from fusion_bench.evaluation.report_records import Collection, SystemResult
from fusion_bench.stats.comparison import Comparison
from fusion_bench.stats.comparison_family import (
    compare_family,
    compare_tables,
    find_first_group,
)
from fusion_bench.stats.intervals import (
    ALPHA,
    MeanEstimate,
    estimate_mean,
    paired_difference,
    t_quantile,
)
from fusion_bench.stats.unjudged import CompletionBounds, UnjudgedResult
from fusion_bench.stats.values import Pair, ValueTable
from fusion_bench.util.formatting import format_percent

if TYPE_CHECKING:
    from fusion_bench.evaluation.report_changes import ReportChange


def read_inference_settings(settings: Mapping[str, Any], report: str) -> dict[str, Any]:
    """The settings of a report that decide p, intervals and answers.

    Raises:
        ConfigError: The report lacks one.
    """
    for name in INFERENCE_KEYS:
        if name not in settings:
            raise ConfigError(f"report {report!r}: no setting {name!r}: run the experiment again")
    return {name: settings[name] for name in INFERENCE_KEYS}


SINGLE_REPEAT = "single trial"


def _find_compared_warnings(
    left: Collection,
    right: Collection,
    sides: tuple[Sequence[SystemResult], Sequence[SystemResult]],
    *,
    two: bool,
) -> tuple[DataWarning, ...]:
    """What speaks against the lists of compared systems, as ``eval`` has it.

    Args:
        left: The collection in the baseline's report.
        right: The same in the candidates' report.
        sides: The baseline's rows, and the candidates'.
        two: Whether these are two reports.

    Returns:
        Of two reports, a warning of only one of them names it.
    """
    if not two:
        return tuple(find_collection_warnings(left, [*sides[0], *sides[1]]))
    baseline, candidates = sides
    first = (*find_collection_warnings(left, baseline), *_find_single_repeats(*sides))
    second = (
        *find_collection_warnings(right, candidates),
        *_find_single_repeats(candidates, baseline),
    )
    return tuple(merge_warnings({"first report": first, "second report": second}))


def find_collection_warnings(
    collection: Collection, rows: Sequence[SystemResult] | None = None
) -> list[DataWarning]:
    """The warnings of the queries, of lists, and of how systems read them.

    Args:
        collection: Of a report.
        rows: Only what these systems read is looked at; None = everything.
    """
    chosen = collection.ranked_systems if rows is None else rows
    configs = {row.name: row.config or {} for row in chosen}
    runs, judge = collection.runs, collection.judge
    if rows is not None:
        names = {name for config in configs.values() for name in list_texts(config)}
        runs = tuple(info for info in runs if info.name in names)
    if judge is not None:
        related = tuple(name for name in judge.related_systems if name in configs)
        judge = judge.model_copy(update={"related_systems": related})
    warnings = find_warnings(
        runs,
        len(collection.queries),
        configs,
        collection.measures,
        judge=judge,
        grades=collection.grades,
        binary_relevance=collection.binary_relevance,
        synthetic=collection.synthetic_queries,
        ignored=collection.ignored_queries,
        near_duplicates=collection.near_duplicates,
        first_trial=collection.first_trial if rows is None else (),
        judgment_notes=collection.judgment_notes,
    )
    return [*warnings, *(each for row in chosen for each in _warn_of_threshold(row))]


def _warn_of_threshold(row: SystemResult) -> Iterator[DataWarning]:
    """The warning that a system has no threshold yet, or that its signal has too few values."""
    result, evidence = row.abstain, {"system": row.name}
    if result is None and (row.config or {}).get("abstain"):
        text = (
            f"{row.name}: 'abstain' has no threshold yet: run fusion-bench threshold EXPERIMENT "
            "--save FILE. Until then every query is answered."
        )
        yield DataWarning(key="threshold", text=text, evidence=evidence)
    elif result is not None and result.is_tied:
        same = format_percent(result.answerable_at_one)
        others = format_percent(result.unanswerable_at_one)
        text = (
            f"{row.name}: {same} of the queries with an answer have one value of {result.signal}, "
            f"and {others} of those without. A threshold cannot tell these queries apart. Choose "
            "another signal: fusion-bench threshold."
        )
        evidence |= result.model_dump(include={"signal", "values", "answerable_at_one"})
        yield DataWarning(key="threshold", text=text, evidence=evidence)


def _find_single_repeats(
    rows: Sequence[SystemResult], others: Sequence[SystemResult]
) -> Iterator[DataWarning]:
    """The systems of one repeat that read a list which has several in the other report."""
    keys = {name for other in others if other.trials for name in other.trials.lists}
    repeated = {name.partition("/")[2] for name in keys}
    for row in rows:
        lists = sorted(repeated.intersection(list_texts(row.config or {})))
        if row.trials is None and lists:
            text = (
                f"{row.name} has one trial of {lists[0]}, which has several in the other report. "
                "It counts as fixed, so its intervals are too narrow where trials differ: make "
                "several trials of both."
            )
            evidence = {"system": row.name, "lists": lists}
            yield DataWarning(key=SINGLE_REPEAT, text=text, evidence=evidence)


def list_texts(value: Any) -> Iterator[str]:  # noqa: ANN401 - any JSON
    """Every text in a configuration; names of lists are among them."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list | tuple):
        for each in value.values() if isinstance(value, dict) else value:
            yield from list_texts(each)


class CollectionComparison(NamedTuple):
    """The comparisons of one collection, the primary measure first.

    Attributes:
        collection: The dataset.
        queries: How many.
        alpha: 1 − coverage of the intervals.
        min_gain: m of the answers.
        family: So many comparisons with the baseline, of all collections, p and intervals account
            for, whether or not they were asked for.
        comparisons: By measure.
        first_group: The systems, the baseline included, that are not shown to be worse than any
            other, over all pairs, whether or not they were asked for.
        systems: How many these pairs are made of.
        v2_enabled: What ``RAG_FUSION_V2_ENABLED`` said for the baseline and for the candidates;
            false = v2 ran as v1.
        warnings: What speaks against the lists that the compared systems read.
        unjudged: By candidate, what unjudged documents could change in the primary measure; empty
            with complete judgments.
        bounds: By system, the baseline first, and by measure: how much of its lists is judged, and
            what the rest could make of its mean; without systems whose judgments are complete.
    """

    collection: str
    queries: int
    alpha: float
    min_gain: float
    family: int
    comparisons: tuple[Comparison, ...]
    first_group: tuple[str, ...]
    systems: int
    v2_enabled: dict[str, bool]
    unjudged: dict[str, UnjudgedResult]
    warnings: tuple[DataWarning, ...] = ()
    bounds: dict[str, dict[str, CompletionBounds]] = {}  # noqa: RUF012 - never written to

    def find_bounds(self, comparison: Comparison) -> CompletionBounds | None:
        """Those of the candidate of a comparison, on its measure; None = complete judgments."""
        return self.bounds.get(comparison.candidate, {}).get(comparison.measure)


def compare_reports(
    first: Report, second: Report | None = None, *, baseline: str | None, candidates: Sequence[str]
) -> list[CollectionComparison]:
    """Compare systems of one report, or of two reports on the same queries.

    Args:
        first: Gives the baseline.
        second: Gives the candidates; the first itself when None.
        baseline: Name of the baseline; by default the first report's own, or for one candidate
            of a second report its namesake.
        candidates: Names of the candidates; by default all but the baseline, and of a second
            report all. p-values are adjusted for the others all the same: whoever picks the best
            first would be sure too easily. Only a system and its namesake are one comparison.

    Raises:
        ConfigError: The reports have no collection in common, it is not the same data, or a
            report lacks what this package writes.
        UnknownNameError: No such system.
    """
    other, two = first if second is None else second, second is not None
    v2 = {"baseline": first.provenance.v2_enabled, "candidates": other.provenance.v2_enabled}
    settings = read_inference_settings(first.settings, first.name)
    plans = plan_comparison(first, second, baseline=baseline, candidates=candidates)
    alone = [plan.left.name for plan in plans if not plan.wanted]
    if alone:
        raise ConfigError(f"{alone[0]}: the report has one system: there is nothing to compare")
    compared = compare_tables([plan.table for plan in plans], **settings)
    family = sum(len(plan.table.systems) - 1 for plan in plans)
    shown = []
    for plan, comparisons in zip(plans, compared, strict=True):
        left, table, wanted, unjudged = plan.left, plan.table, [], {}
        for name, candidate in product(left.measures, plan.wanted):
            wanted += [c for c in comparisons if (c.measure, c.candidate) == (name, candidate)]
            difference = table.pair(candidate, name).compare_unjudged(settings["alpha"])
            if difference is not None:
                unjudged[candidate] = difference.record
        bounds = {}
        for system in (table.baseline, *plan.wanted):
            every = ((name, plan.rows[system].measures[name].bounds) for name in left.measures)
            if known := {name: each for name, each in every if each is not None}:
                bounds[system] = known
        comparison = CollectionComparison(
            collection=left.name,
            queries=len(left.queries),
            alpha=settings["alpha"],
            min_gain=settings["min_gain"],
            family=family,
            comparisons=tuple(wanted),
            first_group=find_first_group(table, seed=settings["seed"], alpha=settings["alpha"]),
            systems=len(table.systems),
            v2_enabled=v2,
            warnings=_find_compared_warnings(left, plan.right, plan.sides, two=two),
            unjudged=unjudged,
            bounds=bounds,
        )
        shown.append(comparison)
    return shown


def plan_comparison(
    first: Report,
    second: Report | None = None,
    *,
    baseline: str | None = None,
    candidates: Sequence[str] = (),
) -> list[ComparisonPlan]:
    """What :func:`compare_reports` compares, one plan a collection that the reports share.

    Raises:
        ConfigError: The reports have no collection in common, or it is not the same data.
        UnknownNameError: No such system.
    """
    other = first if second is None else second
    shared = {c.name: c for c in other.collections}
    pairs = [(c, shared[c.name]) for c in first.collections if c.name in shared]
    if not pairs:
        names = [", ".join(c.name for c in report.collections) for report in (first, other)]
        raise ConfigError(f"the reports have no collection in common ({' against '.join(names)})")
    plans, two = [], second is not None
    for left, right in pairs:
        for what in ("measures", "queries", "groups", "binary_relevance"):
            if getattr(left, what) != getattr(right, what):
                raise ConfigError(
                    f"{left.name}: the reports differ in their {what.replace('_', ' ')}: run both "
                    "experiments on the same split with the same measures"
                )
        if left.digests.get("qrels") != right.digests.get("qrels"):
            raise ConfigError(f"{left.name}: the reports were judged by different qrels")
        base, known = left.table.systems, right.table.systems
        # Of two reports, before and after: one system is compared with its namesake.
        namesake = two and len(candidates) == 1 and candidates[0] in base
        chosen = baseline or (candidates[0] if namesake else left.baseline)
        if chosen not in base:
            raise UnknownNameError("system", chosen, base, where=left.name)
        wanted = list(candidates) or [name for name in known if two or name != chosen]
        for name in wanted:
            if name not in known:
                raise UnknownNameError("system", name, known, where=right.name)
            if name == chosen and not two:
                raise ConfigError(f"{left.name}: {name!r} cannot be compared with itself")
        is_pair = namesake and chosen == candidates[0]
        family = wanted if is_pair else [name for name in known if two or name != chosen]
        titles = {name: f"{name} (second)" if two else name for name in family}
        values = {chosen: base[chosen], **{titles[name]: known[name] for name in family}}
        table = replace(left.table, systems=values, baseline=chosen)
        rows = {
            chosen: left.system(chosen),
            **{titles[name]: right.system(name) for name in family},
        }
        shown = tuple(titles[name] for name in wanted)
        plans.append(ComparisonPlan(left, right, table, shown, rows))
    return plans


class ComparisonPlan(NamedTuple):
    """What is compared on one collection.

    Attributes:
        left: The collection of the first report.
        right: That of the second, or the same.
        table: The whole family.
        wanted: Which of it was asked for.
        rows: What the reports have of each system.
    """

    left: Collection
    right: Collection
    table: ValueTable
    wanted: tuple[str, ...]
    rows: dict[str, SystemResult]

    @property
    def sides(self) -> tuple[list[SystemResult], list[SystemResult]]:
        """The baseline's row, and the rows that were asked for."""
        return [self.rows[self.table.baseline]], [self.rows[name] for name in self.wanted]


def add_comparisons(change: ReportChange, old: Report, new: Report) -> ReportChange:
    """Add a paired comparison of every system that both reports have.

    Values are compared where both reports have the same queries, groups and judgments. All of these
    comparisons are one family, with the inference settings of the new report.

    Args:
        change: From ``find_changes`` of these reports.
        old: The report before.
        new: The report now.

    Raises:
        ConfigError: The new report lacks a setting, or a system a measure.
    """
    before = {each.name: each for each in old.collections}
    pairs = {
        (each.name, pair.names[0]): pair
        for each in new.collections
        if each.name in before and explain_untested(before[each.name], each) is None
        for pair in _pair_with_past(before[each.name], each)
    }
    settings = read_inference_settings(new.settings, new.name) if pairs else {}
    compared = dict(zip(pairs, compare_family([*pairs.values()], **settings), strict=True))
    collections = tuple(
        replace(
            each,
            systems=tuple(
                replace(row, comparison=compared.get((each.name, row.name))) for row in each.systems
            ),
        )
        for each in change.collections
    )
    return replace(change, collections=collections)


def explain_untested(old: Collection, new: Collection) -> str | None:
    """Why the values of two reports cannot be paired query by query; None where they can.

    Args:
        old: A collection of the old report.
        new: The same collection of the new one.
    """
    if old.primary_measure != new.primary_measure:
        return "the primary measures differ"
    if old.queries != new.queries:
        return "the queries differ"
    if old.groups != new.groups:
        return "the groups of the queries differ"
    if old.binary_relevance != new.binary_relevance:
        return "the binary relevance differs"
    if old.digests.get("qrels") != new.digests.get("qrels"):
        return "the judgments differ"
    return None


def _pair_with_past(old: Collection, new: Collection) -> Iterator[Pair]:
    """Pair each system with itself in the old report, repeat by repeat.

    A side of one repeat counts as fixed. Of two numbers of repeats the smaller one counts, so that
    the variance over repeats is not too small.
    """
    measure, before = new.primary_measure, old.table.systems
    for name, values in new.table.systems.items():
        if measure not in values or measure not in before.get(name, {}):
            continue
        now, then, moved = values[measure], before[name][measure], None
        pair = replace(new.table.pair(name, measure, name), baseline=then)
        if max(pair.counts) > 1:
            count = min(count for count in pair.counts if count > 1)
            first, second = (
                side.values if side.repeats is None else side.repeats[:count]
                for side in (now, then)
            )
            moved = first - second
        if np.isfinite(pair.difference).all():
            sides = replace(now, repeats=moved), replace(then, repeats=None)
            yield replace(pair, candidate=sides[0], baseline=sides[1])


#: Of the parts of a dataset that are fused lists.
RUNS = "runs/"


class SystemGain(NamedTuple):
    """What one system gains by the new list.

    Attributes:
        system: Its name.
        gain: Mean of new − old.
        beyond: Mean of that − the gain of the list alone; None for the list itself.
        share: That gain ÷ the gain of the list alone, with the ends of its interval (Fieller);
            None for the list itself, and where no gain of the list alone is shown.
    """

    system: str
    gain: MeanEstimate
    beyond: MeanEstimate | None = None
    share: tuple[float, float, float] | None = None


def find_list_gain(old: Collection, new: Collection) -> tuple[str, list[SystemGain]] | None:
    """The one list that differs, and what each system gains by it, the list alone first.

    Args:
        old: A collection of the report before.
        new: The same collection now.

    Returns:
        None where no list differs, or none is a system alone.
    """
    parts = old.digests.keys() | new.digests.keys()
    changed = [part for part in parts if old.digests.get(part) != new.digests.get(part)]
    if explain_untested(old, new) is not None or len(changed) != 1:
        return None
    [part] = changed
    name = part.removeprefix(RUNS)
    gains = {}
    alone: str | None = None
    for row in new.competitors.values():
        before = old.competitors.get(row.name)
        is_same = before is not None and before.config == row.config
        if before is None or not is_same or name not in list_texts(row.config or {}):
            continue
        results = (each.measures[new.primary_measure] for each in (row, before))
        sides = [np.array(each.values, dtype=np.float64) for each in results]
        if np.isfinite(sides).all():
            gains[row.name] = paired_difference(*sides)
            config = row.config or {}
            method = (config.get("blend") or {}).get("method", "none")
            if alone is None and list(config.get("runs", ())) == [name] and method == "none":
                alone = row.name
    if not part.startswith(RUNS) or alone is None:
        return None
    groups = np.asarray(number_by_appearance(new.groups)[0])
    others = [describe_gain(row, gains[row], gains[alone], groups) for row in gains if row != alone]
    first = SystemGain(alone, estimate_mean(gains[alone], groups))
    return name, [first, *others]


def ratio_interval(
    numerators: FloatArray, denominators: FloatArray, groups: IntArray
) -> tuple[float, float, float] | None:
    """The ratio of two means over the same queries, and the ends of its interval.

    Args:
        numerators: Shape (Q,).
        denominators: Shape (Q,).
        groups: Shape (Q,), integer codes.

    Returns:
        None where the interval of the denominators' mean holds 0: then no ratio can be excluded.
    """
    top, bottom = (estimate_mean(each, groups) for each in (numerators, denominators))
    if math.isnan(bottom.freedom):
        return None
    both = estimate_mean(numerators + denominators, groups)
    first, second = top.standard_error**2, bottom.standard_error**2
    shared = (both.standard_error**2 - first - second) / 2
    square = t_quantile(bottom.freedom, 1 - ALPHA / 2) ** 2
    scale = bottom.mean**2 - square * second
    if scale <= 0:
        return None
    middle = (top.mean * bottom.mean - square * shared) / scale
    rest = middle**2 - (top.mean**2 - square * first) / scale
    width = math.sqrt(max(rest, 0.0))
    return top.mean / bottom.mean, middle - width, middle + width


def describe_gain(system: str, gain: FloatArray, alone: FloatArray, groups: IntArray) -> SystemGain:
    """What a system gains, beside what the list alone gains.

    Args:
        system: Its name.
        gain: Shape (Q,): new − old.
        alone: Shape (Q,): the same of the list alone.
        groups: Shape (Q,), integer codes.
    """
    is_shown = estimate_mean(alone, groups).low > 0
    share = ratio_interval(gain, alone, groups) if is_shown else None
    beyond = estimate_mean(paired_difference(gain, alone), groups)
    return SystemGain(system, estimate_mean(gain, groups), beyond, share)
