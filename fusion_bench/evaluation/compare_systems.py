"""Compare systems of finished reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple, TypeVar

from fusion_bench.errors import ConfigError, UnknownNameError
from fusion_bench.evaluation.compare_collections import (
    Contrast,
    compare_contrasts,
    read_inference_settings,
)
from fusion_bench.evaluation.dataset_checks.compared_warnings import find_compared_warnings
from fusion_bench.evaluation.report_records.collection import Collection
from fusion_bench.evaluation.report_records.data_warning import DataWarning
from fusion_bench.evaluation.report_records.report import Report
from fusion_bench.evaluation.report_records.results.system import (
    CompletionBounds,
    SystemResult,
)
from fusion_bench.evaluation.report_records.results.unjudged import UnjudgedResult
from fusion_bench.evaluation.trials.compared_trials import match_trial_lists
from fusion_bench.evaluation.unjudged.answer_veto import compare_rows, veto_answer
from fusion_bench.stats.comparison import Comparison
from fusion_bench.stats.corrections import Correction

Part = TypeVar("Part")


class CollectionComparison(NamedTuple):
    """The comparisons of one collection, the primary measure first.

    Attributes:
        collection: The dataset.
        queries: How many.
        alpha: 1 − coverage of the intervals.
        min_gain: m of the answers.
        correction: How p and intervals account for the family.
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
    correction: Correction
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
    first: Report, second: Report | None, *, baseline: str | None, candidates: Sequence[str]
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
    other = first if second is None else second
    shared = {c.name: c for c in other.collections}
    pairs = [(c, shared[c.name]) for c in first.collections if c.name in shared]
    if not pairs:
        names = [", ".join(c.name for c in report.collections) for report in (first, other)]
        raise ConfigError(f"the reports have no collection in common ({' against '.join(names)})")
    two = second is not None
    v2 = {
        "baseline": first.provenance.v2_enabled,
        "candidates": other.provenance.v2_enabled,
    }
    settings = read_inference_settings(first.settings, first.name)
    plans = [_plan(*pair, baseline, candidates, two=two) for pair in pairs]
    compared = compare_contrasts([plan.contrast for plan in plans], settings)
    family = sum(len(plan.contrast.values) - 1 for plan in plans)
    return [
        _describe(left, plan, comparisons, settings, family)._replace(
            v2_enabled=v2, warnings=find_compared_warnings(left, right, plan.sides, two=two)
        )
        for (left, right), plan, comparisons in zip(pairs, plans, compared, strict=True)
    ]


def _describe(
    left: Collection,
    plan: _Plan,
    comparisons: Sequence[Comparison],
    settings: Mapping[str, Any],
    family: int,
) -> CollectionComparison:
    """What was asked for, by measure; an answer that unjudged documents decide says so."""
    wanted, unjudged = [], {}
    for name, candidate in product(left.measures, plan.wanted):
        item = next(c for c in comparisons if (c.measure, c.candidate) == (name, candidate))
        if item.answer is not None:
            rows = (plan.rows[candidate], plan.rows[plan.contrast.baseline])
            difference = compare_rows(left, *rows, alpha=settings["alpha"])
            if difference is not None:
                unjudged[candidate] = difference.record
            item = replace(item, answer=veto_answer(item.answer, difference, settings["min_gain"]))
        wanted.append(item)
    return CollectionComparison(
        collection=left.name,
        queries=len(left.queries),
        alpha=settings["alpha"],
        min_gain=settings["min_gain"],
        correction=settings["correction"],
        family=family,
        comparisons=tuple(wanted),
        first_group=plan.contrast.first_group(settings),
        systems=len(plan.contrast.values),
        v2_enabled={},
        unjudged=unjudged,
        bounds=_list_bounds(plan, left.measures),
    )


def _list_bounds(plan: _Plan, measures: Sequence[str]) -> dict[str, dict[str, CompletionBounds]]:
    """By system and measure; what is not known is left out."""
    systems = {}
    for system in (plan.contrast.baseline, *plan.wanted):
        known = ((name, plan.rows[system].measures[name].bounds) for name in measures)
        bounds = {name: each for name, each in known if each is not None}
        if bounds:
            systems[system] = bounds
    return systems


class _Plan(NamedTuple):
    """What is compared on one collection: the whole family, which of it was asked for, its rows."""

    contrast: Contrast
    wanted: tuple[str, ...]
    rows: dict[str, SystemResult]

    @property
    def sides(self) -> tuple[list[SystemResult], list[SystemResult]]:
        """The baseline's row, and the rows that were asked for."""
        return [self.rows[self.contrast.baseline]], [self.rows[name] for name in self.wanted]


def _plan(
    left: Collection,
    right: Collection,
    baseline: str | None,
    candidates: Sequence[str],
    *,
    two: bool,
) -> _Plan:
    _require_comparable(left, right)
    base, known = left.system_values(), right.system_values()
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
    if not wanted:
        raise ConfigError(f"{left.name}: the report has one system: there is nothing to compare")
    is_pair = namesake and chosen == candidates[0]
    family = wanted if is_pair else [name for name in known if two or name != chosen]
    titles = {name: f"{name} (second)" if two else name for name in family}
    values = {chosen: base[chosen], **{titles[name]: known[name] for name in family}}
    contrast = Contrast(
        left.measures,
        chosen,
        values,
        left.groups,
        _of_sides(left.trial_values(), right.trial_values(), chosen, titles),
        _of_sides(left.trial_lists, match_trial_lists(left, right), chosen, titles),
    )
    rows = {chosen: left.system(chosen), **{titles[name]: right.system(name) for name in family}}
    return _Plan(contrast, tuple(titles[name] for name in wanted), rows)


def _of_sides(
    left: Mapping[str, Part], right: Mapping[str, Part], baseline: str, titles: Mapping[str, str]
) -> dict[str, Part]:
    """What is known of the baseline and of the others, by the names of the comparison."""
    parts = {title: right[name] for name, title in titles.items() if name in right}
    return parts | ({baseline: left[baseline]} if baseline in left else {})


def _require_comparable(left: Collection, right: Collection) -> None:
    for what in ("measures", "queries", "groups", "binary_relevance"):
        if getattr(left, what) != getattr(right, what):
            raise ConfigError(
                f"{left.name}: the reports differ in their {what.replace('_', ' ')}: run both "
                "experiments on the same split with the same measures"
            )
    if left.digests.get("qrels") != right.digests.get("qrels"):
        raise ConfigError(f"{left.name}: the reports were judged by different qrels")
