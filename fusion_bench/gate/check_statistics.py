"""What the differences of every check say: mean, lower bound, p, and the powers of the rule."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.gate.power import RulePower, compute_power
from fusion_bench.gate.verdict import ALPHA, MIN_CHANGED, CheckStatus, decide_status
from fusion_bench.stats.comparison import NOISE
from fusion_bench.stats.corrections import adjust_holm
from fusion_bench.stats.intervals import estimate_mean, exact_mean
from fusion_bench.stats.randomization_tests import default_resamples, randomization_p_values

__all__ = ["Check", "CheckStatistics", "run_checks"]


@dataclass(frozen=True, eq=False)
class Check:
    """One check before it is weighed: a measure on a slice of a collection.

    Attributes:
        collection: The dataset.
        slice: The query type; None = all queries.
        measure: Its name.
        max_drop: The tolerance.
        baseline: Shape (Q,): the baseline's values.
        candidate: Shape (Q,): the candidate's, for the same queries.
        groups: Shape (Q,): codes of the groups.
    """

    collection: str
    slice: str | None
    measure: str
    max_drop: float
    baseline: FloatArray
    candidate: FloatArray
    groups: IntArray

    @property
    def error(self) -> str | None:
        """Why it cannot be weighed; None where it can."""
        if not len(self.baseline):
            return "no query is in this slice, and an empty slice has no mean"
        for name, values in (("candidate", self.candidate), ("baseline", self.baseline)):
            wrong = int((~np.isfinite(values)).sum())
            if wrong:
                return f"{wrong} of {len(values)} values of the {name} are not finite"
        return None

    @property
    def difference(self) -> FloatArray:
        """(Q,): candidate − baseline, float noise set to 0."""
        difference = self.candidate - self.baseline
        return np.where(np.abs(difference) <= NOISE, 0.0, difference)


@dataclass(frozen=True)
class CheckStatistics:
    """What one check found.

    Attributes:
        collection: The dataset.
        slice: The query type; None = all queries.
        measure: Its name.
        max_drop: m.
        verdict: What the rule says; ``inconclusive`` where there is a fault.
        fault: Why it could not be checked; None where it could. No policy lets a fault pass.
        queries: Q.
        groups: G; Q where no groups are declared.
        changed: Queries whose value differs.
        losses: Those that are worse.
        baseline_mean: Of the baseline; NaN with a fault, as every number below.
        candidate_mean: Of the candidate.
        difference: Mean of candidate − baseline.
        low: One-sided 95 % lower bound of that; NaN with one group.
        p: One-sided, unadjusted.
        p_holm: Adjusted over all checks.
        detectable: Smallest drop that this rule would have called ``regressed`` with power .8;
            None where nothing tells the spread.
        false_pass: Chance of a ``pass`` at a true drop of exactly m; None likewise.
    """

    collection: str
    slice: str | None
    measure: str
    max_drop: float
    status: CheckStatus
    error: str | None
    queries: int
    groups: int
    changed: int
    losses: int
    baseline_mean: float
    candidate_mean: float
    difference: float
    lower_bound: float
    p: float
    p_holm: float
    min_detectable_drop: float | None
    false_pass_rate: float | None

    @property
    def few_changed(self) -> bool:
        """Whether the verdict holds on these queries only."""
        return self.error is None and self.changed < MIN_CHANGED


def run_checks(
    contests: Sequence[Check],
    *,
    alpha: float = ALPHA,
    resamples: int | None = None,
    seed: int = 0,
) -> tuple[CheckStatistics, ...]:
    """Weigh every check; all of them are one family of Holm's correction.

    A check that cannot be made takes its place in the family (with p = 1), so that a fault never
    makes another check stricter or milder.

    Args:
        contests: The checks.
        alpha: Level of the test and of the lower bound.
        resamples: Of the randomisation test; max(10,000, 200 × checks) by default.
        seed: Of the signs, and of the resamples behind the powers.

    Returns:
        One record a check, in their order.
    """
    p = np.ones(len(contests))
    resamples = resamples or default_resamples(len(contests))
    found: dict[int, RulePower] = {}
    for members in _group_by_queries(contests):
        rows = np.stack([contests[i].difference for i in members])
        groups = contests[members[0]].groups
        p[members] = randomization_p_values(
            rows, groups, resamples=resamples, seed=seed, alternative="less"
        )
        found |= zip(
            members,
            compute_power(
                rows,
                groups,
                [contests[i].max_drop for i in members],
                level=alpha / len(contests),
                alpha=alpha,
                seed=seed + 1,
            ),
            strict=True,
        )
    adjusted = adjust_holm(p)
    return tuple(
        _error_result(contest)
        if contest.error is not None
        else _check_result(contest, float(p[i]), float(adjusted[i]), found[i], alpha)
        for i, contest in enumerate(contests)
    )


def _group_by_queries(contests: Sequence[Check]) -> list[list[int]]:
    """Checks that share their queries, so that they can share their signs."""
    found: dict[tuple[str, str | None], list[int]] = {}
    for i, contest in enumerate(contests):
        if contest.error is None:
            found.setdefault((contest.collection, contest.slice), []).append(i)
    return list(found.values())


def _error_result(contest: Check) -> CheckStatistics:
    """What a check that could not be made found."""
    nan = math.nan
    return CheckStatistics(
        collection=contest.collection,
        slice=contest.slice,
        measure=contest.measure,
        max_drop=contest.max_drop,
        status="inconclusive",
        error=contest.error,
        queries=len(contest.baseline),
        groups=len(np.unique(contest.groups)),
        changed=0,
        losses=0,
        baseline_mean=nan,
        candidate_mean=nan,
        difference=nan,
        lower_bound=nan,
        p=nan,
        p_holm=nan,
        min_detectable_drop=None,
        false_pass_rate=None,
    )


def _check_result(
    contest: Check, p: float, p_holm: float, found: RulePower, alpha: float
) -> CheckStatistics:
    difference = contest.difference
    changed = int((difference != 0).sum())
    bound = estimate_mean(difference, contest.groups, alpha=2 * alpha)  # its lower end is one-sided
    status = decide_status(
        mean=bound.mean,
        lower_bound=bound.low,
        p_holm=p_holm,
        changed=changed,
        max_drop=contest.max_drop,
        alpha=alpha,
    )
    return replace(
        _error_result(contest),
        status=status,
        changed=changed,
        losses=int((difference < 0).sum()),
        baseline_mean=exact_mean(contest.baseline),
        candidate_mean=exact_mean(contest.candidate),
        difference=bound.mean,
        lower_bound=bound.low,
        p=p,
        p_holm=p_holm,
        min_detectable_drop=found.min_detectable_drop,
        false_pass_rate=found.false_pass_rate,
    )
