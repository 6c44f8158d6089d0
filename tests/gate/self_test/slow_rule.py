"""The gate's rule in a slow form that shares no function with it: the oracle of the made cases.

It decides checks of which fewer than 10 units changed, or fewer than 20 are there. Draws decide the
others; their status follows from the construction, and the cases state it.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from scipy.special import stdtrit

from fusion_bench.gate.self_test_command import Checks
from tests.gate.self_test.made_cases import MadeCase

RR, HIT = "RR@10", "Success@5"
#: Their statuses come from the construction: documents or repeats decide, of which the rule knows
#: nothing.
CONSTRUCTED = {
    "a fall among unjudged documents",
    "a gain among unjudged documents",
    "one of two repeats loses a half everywhere",
}
#: Keys of a policy whose checks alone decide the exit code.
PLAIN_POLICY = {"checks", "slices", "candidates", "inconclusive", "fell", "small_changes"}
LEVEL = 0.05
#: Draws decide with so many units, and with so many changed ones.
MIN_UNITS, MIN_CHANGED = 20, 10


@dataclass(frozen=True)
class SlowCheck:
    """One check of a family.

    Attributes:
        differences: (Q,): candidate − baseline.
        max_drop: m.
        groups: (Q,): the group of each query; empty = every query alone.
        level: Of every decision.
    """

    differences: Sequence[float]
    max_drop: float
    groups: Sequence[str] = ()
    level: float = LEVEL

    @property
    def mean(self) -> float:
        return math.fsum(self.differences) / len(self.differences)

    @property
    def members(self) -> list[list[float]]:
        names = self.groups or range(len(self.differences))
        members: dict[object, list[float]] = {}
        for name, value in zip(names, self.differences, strict=True):
            members.setdefault(name, []).append(value)
        return [*members.values()]

    @property
    def changed(self) -> list[float]:
        """The sums of the groups whose sum is not 0."""
        return [total for values in self.members if (total := math.fsum(values))]

    @property
    def is_drawn(self) -> bool:
        """Whether draws decide it."""
        return len(self.members) >= MIN_UNITS and len(self.changed) >= MIN_CHANGED

    @property
    def p(self) -> float:
        """Share of the sign flips whose sum lies as far from 0 as the observed one."""
        changed = self.changed
        if len(changed) >= MIN_CHANGED:  # flips are no test of many skewed differences
            return 1.0
        sums = [
            math.fsum(value * sign for value, sign in zip(changed, signs, strict=True))
            for signs in product((1, -1), repeat=len(changed))
        ]
        observed = abs(math.fsum(changed)) - 1e-9
        return sum(abs(total) >= observed for total in sums) / len(sums)

    @property
    def lower_end(self) -> float:
        """Of the one-sided interval by Student's t."""
        queries, count = len(self.differences), len(self.members)
        squares = [(math.fsum(v) - len(v) * self.mean) ** 2 for v in self.members]
        error = math.sqrt(math.fsum(squares) * count / (count - 1)) / queries
        return self.mean - float(stdtrit(count - 1, 1 - self.level)) * error

    def decide(self, family: int) -> str:
        """The status in a family of so many different checks."""
        if not any(self.differences):
            return "unchanged"
        if self.lower_end > -self.max_drop:
            return "pass"
        is_shown = min(1.0, self.p * family) <= self.level
        return "regressed" if self.mean < -self.max_drop and is_shown else "inconclusive"


def right_checks(case: MadeCase, checks: Checks) -> list[dict[str, Any]]:
    """What the answer to each check of a case must be; no status where draws decide it."""
    slow = [_slow_check(case, check) for check in checks]
    family = len({(tuple(each.differences), tuple(each.groups)) for each in slow if each.changed})
    is_known = case.name not in CONSTRUCTED
    return [
        {
            **({"status": each.decide(family)} if is_known and not each.is_drawn else {}),
            "difference": float(f"{each.mean:.12g}"),
        }
        for each in slow
    ]


def _slow_check(case: MadeCase, check: Mapping[str, Any]) -> SlowCheck:
    """What a check must compute; a list ``between`` is the baseline since the anchor."""
    project, measure, policy = case.project, check["measure"], case.project.policy
    is_anchor = check["reference"] == "anchor"
    reference = "before" if is_anchor or "between" not in project.lists else "between"
    after, before = (_values(measure, project.lists[n]) for n in (case.steps[-1][0], reference))
    types = project.types or [""] * len(after)
    rows = [i for i, name in enumerate(types) if check["slice"] in {None, name}]
    limits = dict(policy["checks"][measure])
    if limits["max_drop"] == "auto":  # the least: no other fusion differs
        limits["max_drop"] = 0.005
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
    """By the default policy: a regression blocks with 1, what is inconclusive with 3."""
    if "regressed" in statuses:
        return 1
    policy = case.project.policy
    return 3 if "inconclusive" in statuses and policy.get("inconclusive") != "warn" else 0
