"""The only sort and the only tie rule of the project.

A score is compared by its *key*: the score rounded to 12 significant decimal digits, exactly as
``'%.11e'`` prints it. Equal keys tie, and a tie rule decides. Sums of terms are correctly rounded
(the result of :func:`math.fsum`), so that the order of the terms never decides a comparison.

The functions here are vectorised; whatever falls inside their error bound is recomputed exactly,
one value at a time, and the tests hold them to the one-value-at-a-time definition.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]

#: The score of a document: of its best chunk, of all of them, of the first, or by their ranks.
ChunkScore: TypeAlias = Literal["max", "sum", "first", "rrf"]

#: Values and differences of values up to this are equal: a value is a sum of a few dozen terms in
#: [0, 1], which the order of summation changes by less, and a different ranking by far more.
NOISE = 1e-12
#: Significant decimal digits of a key.
DIGITS = 12
#: Powers of ten up to this one are exact in float64, so scaling by them rounds only once.
MAX_EXACT_POWER = 22
#: Those powers, from text: numpy's own ``10.0 ** n`` may miss them by a unit on some processors.
POWERS = np.array([float(f"1e{n}") for n in range(MAX_EXACT_POWER + 1)])
#: Scaling to 12 integer digits errs by at most 10^12 · 2^-52 ≈ 0.0003 units; a fraction that is
#: nearer than this to one half is rounded again from the exact decimal expansion.
ROUNDING_DOUBT = 1e-3
#: Scores whose keys are computed together: all arrays in between stay in the cache.
KEYS_AT_ONCE = 1 << 12
#: Candidates that are sorted at a time, about: they fit into the processor's cache.
SORTED_AT_ONCE = 1 << 16
#: Keys of one size differ by at most this part of it (1e-11, and a little for rounding).
KEY_SPACING = 1.1e-11


def make_readonly(array: NDArray[np.generic]) -> None:
    """Make ``array`` read-only, in place: what is shared between systems must not change."""
    array.setflags(write=False)


def greatest_size(values: FloatArray) -> float:
    """The greatest |x|, NaN left out; 0 of nothing."""
    most = np.fmax.reduce(values, axis=None, initial=0.0)
    return float(max(most, -np.fmin.reduce(values, axis=None, initial=0.0)))


def choose_values(is_first: BoolArray, first: FloatArray, second: FloatArray | float) -> FloatArray:
    """What ``np.where`` gives, in a third of its time where no entry foretells the next.

    That branches at each of them; here their bits are chosen without a branch.
    """
    bits, others = (np.asarray(x, dtype=np.float64).view(np.int64) for x in (first, second))
    return ((bits ^ others) * is_first ^ others).view(np.float64)


def make_arrays_readonly(record: object) -> None:
    """Make the arrays among the fields of a record read-only, in place."""
    for value in vars(record).values():
        if isinstance(value, np.ndarray):
            make_readonly(value)


def sum_terms(terms: FloatArray) -> FloatArray:
    """Correctly rounded sum over the first axis.

    Args:
        terms: Array of shape (S, ...); finite.

    Returns:
        Array of shape (...): for each column the result of :func:`math.fsum`, to the last bit,
        hence the same for every order of the S terms. Zero when S is 0.
    """
    if len(terms) == 0:
        return np.zeros(terms.shape[1:])
    total: FloatArray = terms[0].astype(np.float64)
    if len(terms) == 1:
        return total
    if len(terms) == 2:
        return np.asarray(total + terms[1], dtype=np.float64)  # one addition rounds once
    total, error = _two_sum(total, terms[1])
    lost = np.zeros_like(total)
    for term in terms[2:]:
        total, rest = _two_sum(total, term)
        error, gone = _two_sum(error, rest)
        lost += np.abs(gone)
    result, residue = _two_sum(total, error)
    doubt = ~np.isfinite(result)
    if lost.any():
        doubt |= _may_round_wrongly(result, residue, lost)
    if doubt.any():
        columns = terms.reshape(len(terms), -1)
        exact = [math.fsum(columns[:, n].tolist()) for n in np.flatnonzero(doubt)]
        result = np.asarray(result)  # one column alone came out as a scalar
        result[doubt] = exact
    return result


def merge_scores(
    scores: FloatArray, ranks: IntArray, starts: IntArray, score: ChunkScore, k: float
) -> FloatArray:
    """(G,): the score of each parent.

    Args:
        scores: Shape (n,), of chunks by parent, best first.
        ranks: Shape (n,).
        starts: Shape (G,): where each parent begins.
        score: What makes one score of several.
        k: Of reciprocal ranks.
    """
    if score == "first" or not len(starts):
        return scores[starts]
    if score == "max":
        return np.asarray(np.maximum.reduceat(scores, starts))
    terms = scores if score == "sum" else 1 / (k + ranks)
    sizes, merged = np.diff(starts, append=len(scores)), np.empty(len(starts))
    for size in np.unique(sizes).tolist():
        some = np.flatnonzero(sizes == size)
        merged[some] = sum_terms(terms[starts[some] + np.arange(size)[:, None]])
    return merged


def _may_round_wrongly(result: FloatArray, residue: FloatArray, lost: FloatArray) -> BoolArray:
    """Where a result may be off by one unit in the last place, for what was lost before it."""
    # Rounding the exact sum but for `lost` is right unless the residue comes so near to half a
    # unit in the last place that `lost` could tip it.
    half = np.spacing(np.abs(result)) / 2
    near = np.abs(np.abs(residue) - half) <= 4 * lost + half * 1e-9
    # At a power of two the unit below is half as large, so a smaller residue can tip it too.
    near |= np.abs(np.abs(residue) - half / 2) <= 4 * lost + half * 1e-9
    return np.asarray((lost > 0) & near)


def _two_sum(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Sum and its exact rounding error (Knuth, TAOCP 2, 4.2.2, theorem B)."""
    total = a + b
    shadow = total - a
    return total, (a - (total - shadow)) + (b - shadow)


def score_keys(scores: FloatArray) -> FloatArray:
    """Keys that compare as the scores do when rounded to 12 significant decimal digits.

    Args:
        scores: Array of any shape. NaN stays NaN: it marks what is not a candidate.

    Returns:
        Array of the same shape: ``float('%.11e' % score)``, never a negative zero.
    """
    flat = np.asarray(scores, dtype=np.float64).ravel()
    parts = [_part_keys(flat[i : i + KEYS_AT_ONCE]) for i in range(0, len(flat), KEYS_AT_ONCE)]
    return np.concatenate(parts or [flat]).reshape(np.shape(scores))


def starts_equal_scores(scores: FloatArray, lists: IntArray) -> BoolArray:
    """(n,): whether a score begins a group of equal ones: the score before has another key or list.

    Args:
        scores: Shape (n,), each list in its order; NaN equals nothing.
        lists: Shape (n,): the list of each score.
    """
    above, below = scores[:-1], scores[1:]
    is_same_list = lists[1:] == lists[:-1]
    is_equal: BoolArray = is_same_list & (above == below)
    with np.errstate(over="ignore", invalid="ignore"):
        near = np.abs(above - below) <= np.maximum(np.abs(above), np.abs(below)) * KEY_SPACING
    close = np.flatnonzero(near & ~is_equal & is_same_list)
    is_equal[close] = score_keys(above[close]) == score_keys(below[close])
    return np.concatenate([np.ones(min(len(scores), 1), dtype=bool), ~is_equal])


def _part_keys(flat: FloatArray) -> FloatArray:
    is_finite = np.isfinite(flat)
    keys = np.where(is_finite, 0.0, flat)
    live = np.flatnonzero(is_finite & (flat != 0))
    values = flat[live]
    size = np.abs(values)
    exponent = np.floor(np.log10(size)).astype(np.int64)
    power = DIGITS - 1 - exponent
    in_range = np.abs(power) < MAX_EXACT_POWER  # one to spare for the correction below
    far = live[~in_range]
    if len(far):
        live, values = live[in_range], values[in_range]
        size, power = size[in_range], power[in_range]
    digits, doubt = _scale_to_digits(size, power)
    # log10 may err by one step next to a power of ten, and rounding may carry into a new digit.
    low, high = digits < 10.0 ** (DIGITS - 1), digits >= 10.0**DIGITS
    if low.any() or high.any():
        power = power + low - high
        digits, _ = _scale_to_digits(size, power)  # the first doubt made the carry
        carry = digits >= 10.0**DIGITS
        digits, power = np.where(carry, digits / 10, digits), power - carry
    # Both operands are exact: one rounding, hence right.
    keys[live] = np.copysign(_scale_by_ten(digits, -power), values)
    for index in np.concatenate([far, live[doubt]]):
        keys[index] = float(f"{flat[index]:.{DIGITS - 1}e}")  # by its definition
    return keys


def _scale_to_digits(size: FloatArray, power: IntArray) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Size times 10^power, rounded to an integer, and whether that rounding is in doubt."""
    scaled = _scale_by_ten(size, power)
    digits = np.rint(scaled)
    return digits, np.abs(scaled - digits) > 0.5 - ROUNDING_DOUBT


def _scale_by_ten(values: FloatArray, power: IntArray) -> FloatArray:
    """Values times 10^power: one product or one quotient."""
    scale: FloatArray = POWERS.take(np.abs(power))
    if power.min(initial=0) >= 0:
        return values * scale
    if power.max() < 0:
        return values / scale
    return np.where(power >= 0, values * scale, values / scale)


def positions(
    scores: FloatArray,
    offsets: IntArray,
    *,
    tiers: NDArray[np.int8] | None = None,
    tie_order: IntArray | None = None,
) -> IntArray:
    """Place every candidate of every query: the one function that orders documents.

    Args:
        scores: Shape (N,), higher is better; NaN = not a candidate.
        offsets: Shape (Q+1,): query q owns the candidates ``offsets[q]:offsets[q+1]``.
        tiers: Shape (N,): a lower tier stands wholly above a higher one; negative = not a
            candidate. All zero when not given.
        tie_order: Shape (N,): among equal keys of a tier the lower value stands first. Storage
            order when not given (aligned runs are stored in the order of their tie rule).

    Returns:
        Shape (N,): 1-based position inside the query, 0 = not a candidate.
    """
    placed = np.zeros(len(scores), dtype=np.int64)
    queries = np.searchsorted(offsets, np.arange(0, len(scores), SORTED_AT_ONCE))
    for start, stop in pairwise(dict.fromkeys([*queries.tolist(), len(offsets) - 1])):
        rows = slice(int(offsets[start]), int(offsets[stop]))
        placed[rows] = _place(
            scores[rows],
            offsets[start : stop + 1] - rows.start,
            None if tiers is None else tiers[rows],
            None if tie_order is None else tie_order[rows],
        )
    return placed


def _place(
    scores: FloatArray,
    offsets: IntArray,
    tiers: NDArray[np.int8] | None,
    tie_order: IntArray | None,
) -> IntArray:
    keep = ~np.isnan(scores)
    if tiers is not None:
        keep &= tiers >= 0
    index = np.flatnonzero(keep)
    query = np.searchsorted(offsets, index, side="right") - 1
    columns: list[NDArray[np.generic]] = [-score_keys(scores[index])]
    if tie_order is not None:
        columns.insert(0, tie_order[index])
    if tiers is not None:
        columns.append(tiers[index])
    columns.append(query)
    ordered = np.lexsort(columns)  # stable: what no column separates stays in storage order
    starts = np.searchsorted(query, query)  # index of each candidate's first sibling
    placed = np.zeros(len(scores), dtype=np.int64)
    placed[index[ordered]] = np.arange(1, len(index) + 1) - starts
    return placed


def cut_positions(positions: IntArray, limit: int | None) -> IntArray:
    """The positions, 0 beyond the limit; None = none."""
    return positions if limit is None else np.where(positions > limit, 0, positions)


def rows_within(positions: IntArray, limit: int | None) -> IntArray:
    """The rows of the documents at positions from 1 to the limit; None = all returned ones."""
    is_within = positions > 0
    if limit is not None:
        is_within &= positions <= limit
    return np.flatnonzero(is_within)


def tie_group_starts(
    placed: IntArray,
    scores: FloatArray,
    offsets: IntArray,
    *,
    tiers: NDArray[np.int8] | None = None,
    fused_scores: FloatArray | None = None,
) -> IntArray:
    """Where each candidate's group of ties begins.

    Args:
        placed: Shape (N,): what :func:`positions` returned for the other arguments.
        scores: Shape (N,).
        offsets: Shape (Q+1,).
        tiers: Shape (N,), or None.
        fused_scores: Shape (N,): what ordered the candidates of equal keys, or None.

    Returns:
        Shape (N,): the position of the first candidate with the same key (and tier, and key of
        the fused score) in the same query; its own position if it ties with nobody; 0 = not a
        candidate.
    """
    index = np.flatnonzero(placed > 0)
    query = np.searchsorted(offsets, index, side="right") - 1
    order = np.lexsort((placed[index], query))
    ordered, query = index[order], query[order]
    new = placed[ordered] == 1
    if tiers is not None:
        new[1:] |= tiers[ordered][1:] != tiers[ordered][:-1]
    for values in (scores, fused_scores):
        if values is not None:
            new |= starts_equal_scores(values[ordered], query)
    firsts = np.zeros(len(placed), dtype=np.int64)
    group_head = np.maximum.accumulate(np.where(new, np.arange(len(ordered)), 0))
    firsts[ordered] = placed[ordered][group_head]
    return firsts
