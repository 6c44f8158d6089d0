"""Single-step max-T: p-values and intervals of a family of paired differences.

Westfall & Young 1993, "Resampling-Based Multiple Testing", algorithm 2.5, with sign flips: where
two systems are the same, each group's differences are as likely with the opposite sign. All rows
share the flips, so that correlated systems cost little.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from fusion_bench.config.models import MOST_RESAMPLES
from fusion_bench.data.grouped_rows import number_by_appearance
from fusion_bench.data.ordering import NOISE, FloatArray
from fusion_bench.errors import ConfigError
from fusion_bench.stats import sign_flips
from fusion_bench.stats.intervals import MeanEstimate, estimate_mean, t_quantile
from fusion_bench.stats.power import two_sided_p
from fusion_bench.stats.repeat_variance import RepeatTerm, add_repeat_variance, move_quantile

#: Whether more draws could change a decision.
Decision: TypeAlias = Literal["clear", "open"]

FIRST_DRAWS = 10_000
MOST_DRAWS = MOST_RESAMPLES


@dataclass(frozen=True)
class FamilyRow:
    """One paired difference of a family.

    Attributes:
        difference: Shape (Q,), finite; candidate − baseline per query.
        keys: The group id of each query. Rows with the same keys object or equal keys share
            queries; the same id in other rows flips with them.
        margin: m ≥ 0: whether the interval lies inside ±m is decided too; None = not asked.
        repeat_terms: What the repeats of its systems add to its variance; empty = nothing.
    """

    difference: FloatArray
    keys: tuple[str, ...]
    margin: float | None = None
    repeat_terms: tuple[RepeatTerm, ...] = ()


@dataclass(frozen=True)
class RowResult:
    """What a family's flips say about one row.

    Attributes:
        estimate: The mean and its standard error; its own interval is not adjusted.
        p: Adjusted over the family; 1 where no query differs or nothing tells the spread.
        p_floor: p is the smallest that the draws can give: the true one may be smaller.
        low: Lower end of mean ± ``critical_value`` · standard error; NaN where there is none.
        high: Upper end.
        critical_value: The family's, never below Student's at the row's degrees of freedom.
        decision: ``open``: the simulation error could move p across α.
        is_within: The interval lies inside ±margin.
        within_decision: ``open``: the simulation error could change ``is_within``.
    """

    estimate: MeanEstimate
    p: float
    p_floor: bool
    low: float
    high: float
    critical_value: float
    decision: Decision
    is_within: bool
    within_decision: Decision


@dataclass(frozen=True)
class FamilyResult:
    """A tested family.

    Attributes:
        rows: In the order given.
        critical_value: c: the ⌊α·N⌋-th largest of the N values of max |t*|, of differences or
            residuals; inf where α·N < 1.
        draws: Flips of the differences drawn; of an exact test all there are.
        is_exact: Every flip was enumerated.
    """

    rows: tuple[RowResult, ...]
    critical_value: float
    draws: int
    is_exact: bool


def max_t(
    rows: Sequence[FamilyRow],
    *,
    seed: int,
    alpha: float = 0.05,
    first_draws: int = FIRST_DRAWS,
    most_draws: int = MOST_DRAWS,
) -> FamilyResult:
    """Test a family of paired differences at once.

    Each flip turns whole groups and gives t* = mean* / standard error* of every row. N values of
    max |t*| are compared: all of them where at most 16 groups differ in any row, otherwise those
    of B draws and the observed one. The same B draws also flip the residuals (difference − mean),
    so that the intervals hold together whatever the true differences are: flips of differences
    far from 0 spread them over the errors, and c shrinks towards Student's. p is the greater share
    of values that reach |t| (Phipson & Smyth 2010), and never below Student's p. The critical
    value c belongs to the same values, so p ≤ α and an interval without 0 are the same decision. B
    doubles until every decision is 4 standard errors from α.

    Flips turn queries and know nothing of repeats. The t of a row whose repeats add variance counts
    as the t of a flip with the same Student's p, and c is carried over to its degrees of freedom
    likewise (their single-step min-P). Nor do flips know how repeats correlate, so Bonferroni's p
    and critical value stand in for Student's there.

    Args:
        rows: The family. Identical rows count once.
        seed: Seed of the signs.
        alpha: 1 − coverage of all intervals together, and the level of all tests together.
        first_draws: B to start with.
        most_draws: B at most; decisions that are not clear then are ``open``.

    Raises:
        ConfigError: A level, a number of draws or a seed that cannot be used.
    """
    if not 1 <= first_draws <= most_draws:
        raise ConfigError(f"resamples: must be from 1 to {most_draws:,}, not {first_draws:,}")
    parts = _prepare_parts(rows)
    shares = np.zeros(len(rows))
    for statistics, indices, places in parts:
        shares[indices] = statistics.observe()[places]
    size = _count_distinct(rows)
    candidates = [
        _prepare_candidate(row, share, alpha, size)
        for row, share in zip(rows, shares.tolist(), strict=True)
    ]

    def is_clear(values: sign_flips.FlippedShares) -> bool:
        return all(
            _is_clear(each.student_p, each.share, values, alpha)
            and _is_clear(0.0, each.bound, values, alpha)
            for each in candidates
        )

    flipped = sign_flips.flip_family(
        [statistics for statistics, _, _ in parts], is_clear, seed, (first_draws, most_draws)
    )
    critical = flipped.critical(alpha)
    return FamilyResult(
        rows=tuple(_decide_row(each, flipped, critical, alpha) for each in candidates),
        critical_value=_to_t(critical),
        draws=len(flipped.differences) - (not flipped.is_exact),
        is_exact=flipped.is_exact,
    )


def estimate_row(
    row: FamilyRow, share: float, flipped: sign_flips.FlippedShares, alpha: float, size: int
) -> RowResult:
    """What the flips of a family say about one of its rows.

    Args:
        row: The row.
        share: Its t² / (1 + t²).
        flipped: The largest of the whole family after each flip.
        alpha: Level of the family.
        size: Comparisons of the family where repeats add variance to one of them, else 1.
    """
    candidate = _prepare_candidate(row, share, alpha, size)
    return _decide_row(candidate, flipped, flipped.critical(alpha), alpha)


class _Candidate(NamedTuple):
    """A row before the flips.

    Attributes:
        row: As given.
        estimate: Its unadjusted estimate.
        share: t² / (1 + t²), computed as that of the flips.
        bound: (m − |mean|) / standard error as such a share; 0 = the interval cannot lie inside
            ±m, or this is not asked.
        student: Student's critical value, Bonferroni's where repeats add variance; NaN with one
            group.
        student_p: Student's two-sided p, or Bonferroni's.
        flip_freedom: Degrees of freedom of a flip's t, which knows queries only.
    """

    row: FamilyRow
    estimate: MeanEstimate
    share: float
    bound: float
    student: float
    student_p: float
    flip_freedom: float


def _prepare_parts(
    rows: Sequence[FamilyRow],
) -> list[tuple[sign_flips.FlippedStatistics, list[int], list[int]]]:
    """The rows of the same queries: a line for each distinct one, their indices, their lines."""
    by_keys: dict[tuple[str, ...], list[int]] = {}
    for i, row in enumerate(rows):
        by_keys.setdefault(row.keys, []).append(i)
    parts = []
    for keys, indices in by_keys.items():
        contents = [(rows[i].difference + 0.0).tobytes() for i in indices]  # + 0.0: −0 equals 0
        first = dict(zip(contents, indices, strict=True))
        lines = {content: line for line, content in enumerate(first)}
        statistics = sign_flips.prepare_flips([rows[i].difference for i in first.values()], keys)
        parts.append((statistics, indices, [lines[content] for content in contents]))
    return parts


def _count_distinct(rows: Sequence[FamilyRow]) -> int:
    """The size of the family where repeats add something, as Bonferroni counts; 1 elsewhere."""
    if not any(row.repeat_terms for row in rows):
        return 1
    tested = (row for row in rows if row.difference.any())
    return len({(row.keys, row.difference.tobytes(), row.repeat_terms) for row in tested}) or 1


def _prepare_candidate(row: FamilyRow, share: float, alpha: float, size: int) -> _Candidate:
    by_queries = estimate_mean(row.difference, number_by_appearance(row.keys)[0], alpha=alpha)
    estimate = add_repeat_variance(by_queries, row.repeat_terms, alpha=alpha)
    mean, error = estimate.mean, estimate.standard_error
    if math.isnan(error):  # one group
        return _Candidate(row, estimate, 0.0, 0.0, math.nan, 1.0, math.nan)
    room = 0.0 if row.margin is None else max(row.margin - abs(mean), 0.0)
    bound = room**2 / (room**2 + error**2) if room > 0 else 0.0
    t = abs(mean) / error if error > 0 else math.inf
    student_p = two_sided_p(mean, error, estimate.freedom)
    student = t_quantile(estimate.freedom, 1 - alpha / 2)
    if estimate.repeat_variance > 0:
        student_p = min(student_p * size, 1.0)
        student = t_quantile(estimate.freedom, 1 - alpha / (2 * size))
        share, bound = (
            _to_share(move_quantile(each, estimate.freedom, by_queries.freedom))
            for each in (t if share > 0 else 0.0, room / error)
        )
    return _Candidate(row, estimate, share, bound, student, student_p, by_queries.freedom)


def _to_share(t: float) -> float:
    """t² / (1 + t²); 1 for an infinite t."""
    return 1 - 1 / (1 + t**2)


def _to_t(share: float) -> float:
    """|t| of t² / (1 + t²)."""
    return math.inf if share > 1 - NOISE else math.sqrt(share / (1 - share))


def _decide_interval(
    estimate: MeanEstimate, critical_value: float, *, is_significant: bool
) -> tuple[float, float]:
    """Mean ± critical value · standard error; holds 0 exactly where the test does not reject.

    Rounding, and values of max |t*| between the row's t and c, are all that the last step changes.
    """
    mean, error = estimate.mean, estimate.standard_error
    half_width = 0.0 if error == 0 and math.isfinite(critical_value) else critical_value * error
    if math.isinf(critical_value):
        half_width = math.inf
    low, high = mean - half_width, mean + half_width
    if is_significant and mean > 0:
        low = max(low, 0.0)
    elif is_significant:
        high = min(high, 0.0)
    elif not math.isnan(low):
        low, high = min(low, 0.0), max(high, 0.0)
    return (0.0 if abs(low) <= NOISE else low, 0.0 if abs(high) <= NOISE else high)


def _is_clear(
    student_p: float, share: float, flipped: sign_flips.FlippedShares, alpha: float
) -> bool:
    """Whether a value lies clearly on one side of the critical value of the draws."""
    if share <= 0 or student_p > alpha:  # decided without any draw
        return True
    return flipped.is_clear(share, alpha)


def _decide_row(
    candidate: _Candidate, flipped: sign_flips.FlippedShares, critical: float, alpha: float
) -> RowResult:
    estimate, share = candidate.estimate, candidate.share
    p = max(flipped.reach(share), candidate.student_p) if share > 0 else 1.0
    critical_value = math.nan
    if not math.isnan(candidate.student):
        critical_t = _to_t(critical)
        if estimate.repeat_variance > 0:
            critical_t = move_quantile(critical_t, candidate.flip_freedom, estimate.freedom)
        critical_value = max(critical_t, candidate.student)
    low, high = _decide_interval(estimate, critical_value, is_significant=p <= alpha)
    margin = candidate.row.margin
    decisions: list[Decision] = [
        "clear" if _is_clear(student_p, value, flipped, alpha) else "open"
        for student_p, value in ((candidate.student_p, share), (0.0, candidate.bound))
    ]
    return RowResult(
        estimate=estimate,
        p=p,
        p_floor=p * len(flipped.residuals) <= 1 + NOISE,
        low=low,
        high=high,
        critical_value=critical_value,
        decision=decisions[0],
        is_within=margin is not None and -margin < low and high < margin,
        within_decision=decisions[1],
    )
