"""The gate's rule in a slow form that shares no function with it: the oracle of the made cases."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from fusion_bench.gate.self_test.whole_command import Checks
from tests.gate.self_test.made_cases import MadeCase

RR, HIT = "RR@10", "Success@5"
#: Their statuses come from the construction: documents or repeats decide, of which the rule knows
#: nothing.
CONSTRUCTED = {
    "a fall among unjudged documents": "unjudged decide",
    "a gain among unjudged documents": "unjudged decide",
    "one of two repeats loses a half everywhere": "inconclusive",
}
#: Keys of a policy whose checks alone decide the exit code.
PLAIN_POLICY = {"checks", "slices", "candidates", "inconclusive"}
#: Statuses that block with exit code 1.
ALARMS = frozenset({"fell", "regressed"})
#: Level of every test and of both bounds.
LEVEL = 0.05
#: All sign flips are listed up to this many changed groups.
MOST_LISTED = 16
#: Bets of the betting bound, as shares of the greatest.
BETS = (1.0, 0.9, 0.8, 0.5, 0.25, 0.1, 0.05, 0.025)
#: Sums closer than this are equal.
TINY = 1e-12


@dataclass(frozen=True)
class SlowCheck:
    """One check of a family.

    Attributes:
        differences: (Q,): candidate − baseline, none below −1.
        max_drop: m.
        groups: (Q,): the group of each query; empty = every query alone.
        level: Of every test and of both bounds.
    """

    differences: Sequence[float]
    max_drop: float
    groups: Sequence[str] = ()
    level: float = LEVEL

    @property
    def mean(self) -> float:
        """Of the differences."""
        return math.fsum(self.differences) / len(self.differences)

    @property
    def members(self) -> list[list[float]]:
        """The differences of each group."""
        names = self.groups or range(len(self.differences))
        members: dict[object, list[float]] = {}
        for name, value in zip(names, self.differences, strict=True):
            members.setdefault(name, []).append(value)
        return [*members.values()]

    @property
    def p_fell(self) -> float:
        """Share of the sign flips whose sum is at most the observed one.

        1 where the mean did not fall below −m, because then the test decides nothing.
        """
        changed = [total for values in self.members if (total := math.fsum(values))]
        if self.mean >= -self.max_drop:
            return 1.0
        if max(changed) < 0:  # every other flip has a greater sum
            return 0.5 ** len(changed)
        if len(changed) > MOST_LISTED:
            raise ValueError(f"at most {MOST_LISTED} changed groups can be listed")
        observed = math.fsum(changed)
        sums = [
            math.fsum(value * sign for value, sign in zip(changed, signs, strict=True))
            for signs in product((1, -1), repeat=len(changed))
        ]
        return sum(total <= observed + TINY for total in sums) / len(sums)

    @property
    def standard_error(self) -> float:
        """Of the mean; the mean took a share of each group's variance, which is given back."""
        queries = len(self.differences)
        residuals = [(len(v), math.fsum(v) - len(v) * self.mean) for v in self.members]
        parts = (residual**2 / (1 - size / queries) for size, residual in residuals)
        return math.sqrt(math.fsum(parts)) / queries

    @property
    def freedom(self) -> float:
        """2·E[V]² ÷ Var[V] of the squared standard error V, were the queries independent."""
        sizes, queries = [len(values) for values in self.members], len(self.differences)
        if min(sizes) == max(sizes):
            return len(sizes) - 1
        weights = [1 / (1 - size / queries) for size in sizes]
        covariances = {
            (i, j): (size if i == j else 0) - size * other / queries
            for i, size in enumerate(sizes)
            for j, other in enumerate(sizes)
        }
        mean = math.fsum(weight * covariances[i, i] for i, weight in enumerate(weights))
        products = (weights[i] * weights[j] * c**2 for (i, j), c in covariances.items())
        return mean**2 / math.fsum(products)

    @property
    def p_regressed(self) -> float:
        """One-sided t test of "the mean is at least −m"."""
        from scipy.special import stdtr  # late, as it is slow

        gap = self.mean + self.max_drop
        if not self.standard_error:
            return 0.0 if gap < 0 else 1.0
        return float(stdtr(self.freedom, gap / self.standard_error))

    @property
    def t_bound(self) -> float:
        """One-sided lower bound of the mean by Student's t."""
        return self.mean - self._quantile * self.standard_error

    @property
    def _quantile(self) -> float:
        from scipy.special import stdtrit  # late, as it is slow

        return float(stdtrit(self.freedom, 1 - self.level))

    @property
    def is_bet_won(self) -> bool:
        """Whether the betting bound is above −m: the mean capital against −m reaches 1/α."""
        mean_size = len(self.differences) / len(self.members)
        values = [math.fsum(group) / mean_size for group in self.members]
        reach = max(map(len, self.members)) / mean_size
        capitals = []
        for share in BETS:
            bet = share / (reach - self.max_drop)
            capitals.append(math.prod(1 + bet * (value + self.max_drop) for value in values))
        return math.fsum(capitals) / len(capitals) >= 1 / self.level

    @property
    def false_pass_rate(self) -> float | None:
        """Chance that the t bound passes at a true drop of m, of queries drawn again.

        None where queries are grouped, or more than one difference is not 0: then no formula has
        it. Of n queries k differ, and j of those drawn.
        """
        n, different = len(self.differences), [d for d in self.differences if d]
        if self.groups or len(set(different)) != 1:
            return None
        k, step, quantile, rate = len(different), different[0], self._quantile, 0.0
        for j in range(n + 1):
            error = abs(step) * math.sqrt(j * (n - j) / (n - 1)) / n
            if step * (j - k) / n > quantile * error:
                rate += math.comb(n, j) * (k / n) ** j * (1 - k / n) ** (n - j)
        return rate

    def decide(self, p_fell: float, p_regressed: float) -> str:
        """The status, from p-values adjusted over the family."""
        if not any(self.differences):
            return "unchanged"
        if self.mean < -self.max_drop - TINY and p_fell <= self.level:
            return "regressed" if p_regressed <= self.level else "fell"
        if self.t_bound > -self.max_drop:
            return "pass" if self.is_bet_won else "pass on these queries"
        return "inconclusive"


def decide_family(checks: Sequence[SlowCheck]) -> list[str]:
    """The status of every check of one run."""
    fell = adjust_slowly([check.p_fell for check in checks])
    regressed = adjust_slowly([check.p_regressed for check in checks])
    return [check.decide(*p) for check, *p in zip(checks, fell, regressed, strict=True)]


def adjust_slowly(p_values: Sequence[float]) -> list[float]:
    """Holm's adjusted p-values."""
    adjusted = []
    for p in p_values:
        smaller = sorted(other for other in p_values if other <= p)
        steps = ((len(p_values) - i) * value for i, value in enumerate(smaller))
        adjusted.append(min(1.0, max(steps)))
    return adjusted


def right_checks(case: MadeCase, checks: Checks) -> list[dict[str, Any]]:
    """What the answer to each check of a case must be, as the case states it."""
    slow = [_slow_check(case, check) for check in checks]
    constructed = CONSTRUCTED.get(case.name)
    statuses = decide_family(slow) if constructed is None else [constructed] * len(checks)
    return [
        {
            "status": status,
            "difference": float(f"{each.mean:.12g}"),
            **({} if rate is None or constructed else {"false_pass": round(rate, 6)}),
        }
        for each, status in zip(slow, statuses, strict=True)
        for rate in [each.false_pass_rate]
    ]


def _slow_check(case: MadeCase, check: Mapping[str, Any]) -> SlowCheck:
    """What a check must compute; a list ``between`` is the baseline since the anchor."""
    project, measure, policy = case.project, check["measure"], case.project.policy
    is_anchor = check["reference"] == "anchor"
    reference = "before" if is_anchor or "between" not in project.lists else "between"
    after, before = (_values(measure, project.lists[n]) for n in (case.steps[-1][0], reference))
    types = project.types or [""] * len(after)
    rows = [i for i, name in enumerate(types) if check["slice"] in {None, name}]
    limits = policy["checks"][measure]
    since_anchor = limits.get("max_drop_since_anchor", 2 * limits["max_drop"])
    return SlowCheck(
        [after[i] - before[i] for i in rows],
        since_anchor if is_anchor else limits["max_drop"],
        [project.groups[i] for i in rows] if project.groups else (),
        LEVEL / policy.get("candidates", {"max": 1})["max"],
    )


def _values(measure: str, repeats: Sequence[Sequence[int]]) -> list[float]:
    """(Q,): the means over the repeats of a list."""
    columns = zip(*repeats, strict=True)
    return [math.fsum(_value(measure, rank) for rank in ranks) / len(ranks) for ranks in columns]


def _value(measure: str, rank: int) -> float:
    """Of one query with one relevant document; rank 0 = it is not in the list."""
    values = {RR: 1 / rank if rank else 0.0, HIT: float(1 <= rank <= 5)}
    return values[measure]


def right_exit_code(case: MadeCase, statuses: Sequence[str]) -> int:
    """By the default policy: an alarm blocks with 1, what is inconclusive with 3."""
    if ALARMS.intersection(statuses):
        return 1
    policy = case.project.policy
    return 3 if "inconclusive" in statuses and policy.get("inconclusive") != "warn" else 0
