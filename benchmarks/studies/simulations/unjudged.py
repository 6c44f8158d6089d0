"""Unjudged documents: wrong answers that a pool causes, and how many the rule withholds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.studies.simulations.promise import Promise
from fusion_bench.data.ordering import BoolArray, FloatArray, IntArray
from fusion_bench.stats.intervals import MeanEstimate, estimate_mean
from fusion_bench.stats.unjudged import Direction, unjudged_decide

TITLE = "Unjudged documents"
DESCRIPTION = """
50 queries have 60 documents each, a fifth of them relevant (by query 5 to 35 %). A system scores a
document by q · relevance + noise, and the noises of two systems correlate by .5. The measure is
binary nDCG@10. The pool holds the first ranks of some systems. Other documents are unjudged and
count as not relevant. An answer is shown if its 95 % t interval excludes 0. It is wrong if the true
difference has the other sign or is 0. Promised: with the rule, at most 5 % of the runs show a wrong
answer. The rule withholds at most 5 % of the answers shown if every document of both top tens is
judged.
"""
QUERIES, DOCUMENTS, CUTOFF, CORRELATION = 50, 60, 10, 0.5
#: Two systems of equal and two of different quality.
EQUAL, BETTER, WORSE = (1.0, 1.0), (1.0, 1.3), (1.3, 1.0)
#: Draws that are computed at once.
BLOCK = 100


@dataclass(frozen=True)
class Design:
    """Qualities q of baseline and candidate, whose first ranks are judged, and how many."""

    name: str
    qualities: tuple[float, float]
    pooled: tuple[int, ...]
    depth: int


DESIGNS = (
    Design("baseline's top 15, candidate better", BETTER, (0,), 15),
    Design("baseline's top 15, no difference", EQUAL, (0,), 15),
    Design("baseline's top 15, candidate worse", WORSE, (0,), 15),
    Design("candidate's top 15, candidate worse", WORSE, (1,), 15),
    Design("a third system's top 20, candidate better", BETTER, (2,), 20),
    Design("both top tens, candidate better", BETTER, (0, 1), 10),
    Design("both top tens, no difference", EQUAL, (0, 1), 10),
)


def run(*, draws: int) -> list[Promise]:
    """Right and wrong answers of each design, with and without the rule."""
    rng = np.random.default_rng(7)
    return [promise for design in DESIGNS for promise in _check_design(rng, design, draws)]


def _check_design(rng: np.random.Generator, design: Design, draws: int) -> Iterator[Promise]:
    truth = np.sign(design.qualities[1] - design.qualities[0])
    shown, kept = Counter[bool](), Counter[bool]()
    for start in range(0, draws, BLOCK):
        for views in _draw_views(rng, design, min(BLOCK, draws - start)):
            plain, judged_only, filled = map(_estimate, views)
            if not (plain.low > 0 or plain.high < 0):
                continue
            direction: Direction = 1 if plain.low > 0 else -1
            is_right = bool(direction == truth)
            shown[is_right] += 1
            kept[is_right] += not unjudged_decide(direction, judged_only, filled.mean, 0.0)
    yield Promise(design.name, "wrong answer shown without the rule", shown[False], draws)
    yield Promise(design.name, "wrong answer shown with it", kept[False], draws, 0.05, "at most")
    yield Promise(design.name, "right answer shown without the rule", shown[True], draws)
    yield Promise(design.name, "right answer shown with it", kept[True], draws)
    runs = shown.total()
    if len(design.pooled) > 1 and runs:
        withheld = runs - kept.total()
        yield Promise(design.name, "shown answer withheld", withheld, runs, 0.05, "at most")


def _estimate(differences: FloatArray) -> MeanEstimate:
    return estimate_mean(differences)


def _draw_views(
    rng: np.random.Generator, design: Design, draws: int
) -> Iterator[tuple[FloatArray, FloatArray, FloatArray]]:
    """Per draw the differences by query: plain, over judged documents only, and filled."""
    shape = (draws, QUERIES, DOCUMENTS)
    relevant = rng.random(shape) < rng.uniform(0.05, 0.35, size=(draws, QUERIES, 1))
    common = rng.standard_normal(shape)
    orders = []
    for quality in (*design.qualities, 1.0):
        own = rng.standard_normal(shape)
        noise = np.sqrt(CORRELATION) * common + np.sqrt(1 - CORRELATION) * own
        orders.append(np.argsort(-(quality * relevant + noise), axis=-1))
    judged = np.zeros(shape, dtype=bool)
    for system in design.pooled:
        np.put_along_axis(judged, orders[system][..., : design.depth], values=True, axis=-1)
    ideal = _ideal(relevant & judged)
    sides = [_measure(order, relevant, judged, ideal) for order in orders[:2]]
    yield from zip(*(after - before for before, after in zip(*sides, strict=True)), strict=True)


def _measure(
    order: IntArray, relevant: BoolArray, judged: BoolArray, ideal: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """nDCG@10 of one system in the three views, each of shape (draws, Q)."""
    gains = np.take_along_axis(relevant & judged, order, axis=-1)
    known = np.take_along_axis(judged, order, axis=-1)
    # Judged documents first, each in the system's order: the sort is stable.
    moved = np.take_along_axis(gains, np.argsort(~known, axis=-1, kind="stable"), axis=-1)
    sums, counts = (gains & known).sum(axis=1), known.sum(axis=1)
    means = _fill_gaps(sums / np.maximum(counts, 1), counts > 0)
    filled = np.where(known, gains, means[:, np.newaxis])
    return _ndcg(gains, ideal), _ndcg(moved, ideal), _ndcg(filled, ideal)


def _fill_gaps(means: FloatArray, has_mean: BoolArray) -> FloatArray:
    """(draws, ranks): the mean at each rank, or at the nearest rank that has one."""
    ranks = np.arange(means.shape[1])
    filled = means.copy()
    for row, known in zip(filled, has_mean, strict=True):
        at = np.flatnonzero(known)
        row[:] = row[at[np.abs(ranks[:, np.newaxis] - at).argmin(axis=1)]]
    return filled


def _ideal(relevant: BoolArray) -> FloatArray:
    """(draws, Q): DCG@10 of the judged relevant documents first."""
    count = np.minimum(relevant.sum(axis=-1), CUTOFF)
    return np.asarray(np.concatenate([[0.0], np.cumsum(_discounts())])[count])


def _ndcg(gains: FloatArray | BoolArray, ideal: FloatArray) -> FloatArray:
    dcg = (gains[..., :CUTOFF] * _discounts()).sum(axis=-1)
    return np.asarray(
        np.minimum(np.divide(dcg, ideal, out=np.zeros_like(ideal), where=ideal > 0), 1)
    )


def _discounts() -> FloatArray:
    return np.asarray(1 / np.log2(np.arange(2, CUTOFF + 2)))
