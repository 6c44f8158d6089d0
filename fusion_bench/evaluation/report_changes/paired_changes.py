"""Each system of two reports against itself: what the values of the same queries show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np

from fusion_bench.data.ordering import FloatArray
from fusion_bench.evaluation.compare_collections import (
    Contrast,
    compare_contrasts,
    read_inference_settings,
)
from fusion_bench.evaluation.report_changes.records import ReportChange
from fusion_bench.evaluation.report_records.collection import Collection
from fusion_bench.evaluation.report_records.report import Report
from fusion_bench.evaluation.unjudged.answer_veto import compare_rows, veto_answer
from fusion_bench.stats.answers import SHOWN
from fusion_bench.stats.comparison import Comparison, paired_difference

#: Stands for the old values in a comparison; no system can have this name.
THEN: Final = "\0then"


def add_comparisons(change: ReportChange, old: Report, new: Report) -> ReportChange:
    """The same change, with a paired comparison of every system that both reports have.

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
    pairs = [
        (before[each.name], each)
        for each in new.collections
        if each.name in before and explain_untested(before[each.name], each) is None
    ]
    contrasts = [_contrast(*pair) for pair in pairs]
    known = [i for i, contrast in enumerate(contrasts) if len(contrast.values) > 1]
    settings = read_inference_settings(new.settings, new.name) if known else {}
    compared = compare_contrasts([contrasts[i] for i in known], settings) if known else []
    results = {
        pairs[i][1].name: _by_system(*pairs[i], comparisons, settings)
        for i, comparisons in zip(known, compared, strict=True)
    }
    collections = tuple(
        replace(
            each,
            systems=tuple(
                replace(row, comparison=results.get(each.name, {}).get(row.name))
                for row in each.systems
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


def _contrast(old: Collection, new: Collection) -> Contrast:
    """The differences of each system from itself, against 0."""
    measure = new.primary_measure
    before = old.competitors
    values = {THEN: np.zeros((1, len(new.queries)))}
    trials = {}
    for row in new.competitors.values():
        if row.name not in before:
            continue
        new_result = row.measures.get(measure)
        old_result = before[row.name].measures.get(measure)
        if new_result is None or old_result is None:
            continue
        now, then = (np.array(each.values, np.float64) for each in (new_result, old_result))
        difference = paired_difference(now, then)
        if np.isfinite(difference).all():
            values[row.name] = difference[np.newaxis]
            moved = _trial_differences(
                np.array(new_result.trials, np.float64),
                np.array(old_result.trials, np.float64),
                now,
                then,
            )
            if moved is not None:
                trials[row.name] = moved[:, np.newaxis]
    return Contrast((measure,), THEN, values, new.groups, trials)


def _trial_differences(
    now: FloatArray, then: FloatArray, now_mean: FloatArray, then_mean: FloatArray
) -> FloatArray | None:
    """(T, Q): the trials of now - those of then; None where both have one.

    A side of one trial counts as fixed. Of two numbers of trials the smaller one counts, so that
    the variance over trials is not too small.

    Args:
        now: Shape (T, Q); empty = one trial.
        then: Likewise.
        now_mean: Shape (Q,).
        then_mean: Shape (Q,).
    """
    if not (len(now) or len(then)):
        return None
    count = min(len(side) for side in (now, then) if len(side))
    first = now[:count] if len(now) else now_mean
    return np.asarray(first - (then[:count] if len(then) else then_mean))


def _by_system(
    old: Collection,
    new: Collection,
    comparisons: tuple[Comparison, ...],
    settings: Mapping[str, Any],
) -> dict[str, Comparison]:
    """The comparisons; an answer that unjudged documents decide says so."""
    results = {}
    for item in comparisons:
        answer = item.answer
        rows = (new.system(item.candidate), old.system(item.candidate))
        if answer in SHOWN:
            unjudged = compare_rows(new, *rows, alpha=settings["alpha"])
            answer = veto_answer(answer, unjudged, settings["min_gain"])
        means = [row.measures[item.measure].mean for row in rows]
        results[item.candidate] = replace(
            item,
            baseline=item.candidate,
            baseline_mean=np.nan if means[1] is None else means[1],
            candidate_mean=np.nan if means[0] is None else means[0],
            answer=answer,
        )
    return results
