"""A campaign on stored differences: all candidates of a phase are tested at once.

The tests are those of ``fusion_bench.campaign.decision``, on rows of an array.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, TypeAlias

import numpy as np

from fusion_bench.campaign.decision import SCREENING_P, phase_share
from fusion_bench.data.ordering import NOISE, BoolArray, FloatArray, IntArray
from fusion_bench.stats.inference import MIN_CHANGED, MIN_UNITS
from fusion_bench.stats.intervals import (
    bell_mccaffrey_freedom,
    cr2_standard_error,
    log_capital,
    log_returns,
)

LEVEL: Final = 0.05


@dataclass(frozen=True, eq=False)
class Tests:
    """What Student's t says of each of T candidates.

    Attributes:
        mean: Shape (T,).
        p: Shape (T,): one-sided, against a mean of at most 0.
        changed: Shape (T,): queries whose difference is not 0.
        groups: How many there are.
    """

    mean: FloatArray
    p: FloatArray
    changed: IntArray
    groups: int

    def take(self, rows: IntArray) -> Tests:
        """Those of some candidates, in this order."""
        return Tests(self.mean[rows], self.p[rows], self.changed[rows], self.groups)


@dataclass(frozen=True, eq=False)
class Side:
    """Values of all candidates on the tuning or the held-out queries.

    Attributes:
        values: Shape (T, Q), less those of the first baseline; queries of a group are neighbors.
        starts: Shape (G,): where each group starts.
    """

    values: FloatArray
    starts: IntArray

    @classmethod
    def select(cls, values: FloatArray, groups: IntArray, queries: IntArray) -> Side:
        """Some queries of a table."""
        order = queries[groups[queries].argsort(kind="stable")]
        codes = groups[order]
        starts = np.flatnonzero(np.append(True, codes[1:] != codes[:-1]))
        return cls(values[:, order], starts)

    @property
    def sizes(self) -> IntArray:
        """(G,): queries of each group."""
        return np.diff(np.append(self.starts, self.values.shape[1]))

    def compare(self, rows: IntArray, baseline: int | None) -> FloatArray:
        """(n, Q): differences of some candidates to the first baseline, or to a candidate."""
        values = self.values[rows]
        return values if baseline is None else values - self.values[baseline]

    def sum_groups(self, differences: FloatArray) -> FloatArray:
        """(T, G)."""
        if len(self.starts) == differences.shape[1]:
            return differences.astype(np.float64)
        return np.add.reduceat(differences, self.starts, axis=1, dtype=np.float64)

    def test(self, differences: FloatArray) -> Tests:
        """Student's t by group."""
        from scipy.special import stdtr

        sums, sizes = self.sum_groups(differences), self.sizes
        mean = sums.sum(axis=1) / sizes.sum()
        errors = cr2_standard_error(sums - mean[:, None] * sizes, sizes)
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.where(mean > 0, mean / errors, -math.inf)
        p = np.asarray(stdtr(bell_mccaffrey_freedom(sizes), -t), dtype=np.float64)
        changed = (np.abs(differences) > NOISE).sum(axis=1)
        return Tests(mean, p, changed, len(sizes))

    def log_e_values(self, differences: FloatArray) -> FloatArray:
        """(T,): of the betting test; −∞ where a difference is below −1."""
        values = self.sum_groups(differences) / self.sizes.mean()
        reach = float(self.sizes.max() / self.sizes.mean())
        capital = log_capital(log_returns(values, reach, 0.0).sum(axis=-2))
        return np.where(differences.min(axis=1) < -1 - 1e-6, -math.inf, capital)


@dataclass(frozen=True, eq=False)
class World:
    """A campaign's queries.

    Attributes:
        tuning: The tuning queries.
        held_out: The held-out queries.
        points: Shape (T, D): the candidates as points.
        guesses: Whether the candidates are guesses about single queries: after a ship, those not
            asked yet take over half of what the shipped one guessed.
    """

    tuning: Side
    held_out: Side
    points: FloatArray
    guesses: bool = False

    @cached_property
    def first_tests(self) -> Tests:
        """Of all candidates against the first baseline."""
        return self.held_out.test(self.held_out.values)

    def guess_again(self, shipped: int, asked: BoolArray, rng: np.random.Generator) -> World:
        """The candidates not asked yet, near what was shipped."""
        values = self.held_out.values.copy()
        rows = np.flatnonzero(~asked)
        taken = rng.random((len(rows), values.shape[1])) < 0.5
        values[rows] = np.where(taken, values[shipped], values[rows])
        return World(self.tuning, Side(values, self.held_out.starts), self.points, True)


@dataclass(frozen=True)
class Rule:
    """When a candidate ships.

    Attributes:
        name: Its key.
        shares: Phase and the asks' numbers → the level of each.
        screens: Whether candidates that are not better on the tuning queries are kept.
        bets: Whether the e-value must agree.
        guards: Whether 10 queries must have changed, in 20 groups.
        ships: How many ships end a campaign.
        min_gain: Least mean; 0 is stricter than a campaign's default, which alone would keep
            small false gains.
    """

    name: str
    shares: Callable[[int, IntArray], FloatArray]
    screens: bool = False
    bets: bool = False
    guards: bool = False
    ships: int = 1
    min_gain: float = 0.0


def campaign_rule(asks: int, ships: int, *, bets: bool = True, min_gain: float = 0.0) -> Rule:
    """That of ``fusion-bench campaign``; without bets that of ``--tails t``."""

    def shares(phase: int, numbers: IntArray) -> FloatArray:
        share = phase_share(phase, ships=ships, asks=asks, level=LEVEL)
        return np.full(len(numbers), share)

    name = "campaign" if bets else "tails t"
    return Rule(name, shares, True, bets, guards=True, ships=ships, min_gain=min_gain)


def bonferroni(asks: int) -> Rule:
    """Student's t at the level ÷ asks, without anything else."""
    return Rule("bonferroni", lambda _, numbers: np.full(len(numbers), LEVEL / asks))


#: Look j at level·2^−j.
LOOKS: Final = Rule("looks", lambda _, numbers: LEVEL * 0.5 ** numbers.astype(np.float64))
#: Every ask at the level.
UNPROTECTED: Final = Rule("unprotected", lambda _, numbers: np.full(len(numbers), LEVEL))


def all_rules(asks: int, ships: int) -> list[Rule]:
    """Ours, and those beside it, which end with their first ship."""
    tails_t = replace(campaign_rule(asks, ships, bets=False), ships=1)
    return [campaign_rule(asks, ships), tails_t, bonferroni(asks), LOOKS, UNPROTECTED]


#: World, which candidates were asked, the last shipped, dice → the next ones, in order.
Proposer: TypeAlias = Callable[[World, BoolArray, "int | None", np.random.Generator], IntArray]


@dataclass(frozen=True, eq=False)
class Phase:
    """The asks until the next ship: as all answers are ``keep``, they are known in advance.

    Attributes:
        world: The queries.
        baseline: Candidate to beat; None = the first baseline.
        order: Shape (n,): the candidates, in the order of the asks.
        tests: Of their held-out differences.
    """

    world: World
    baseline: int | None
    order: IntArray
    tests: Tests

    @classmethod
    def start(cls, world: World, baseline: int | None, order: IntArray) -> Phase:
        """Test all candidates of an order."""
        if baseline is None:
            return cls(world, baseline, order, world.first_tests.take(order))
        tests = world.held_out.test(world.held_out.compare(order, baseline))
        return cls(world, baseline, order, tests)

    def first_ship(self, rule: Rule, phase: int, asks_before: int) -> int | None:
        """The place of the first candidate that ships; None = all are kept."""
        tests, world = self.tests, self.world
        shares = rule.shares(phase, asks_before + 1 + np.arange(len(self.order)))
        ships = (tests.p <= shares) & (tests.mean >= rule.min_gain)
        if rule.guards:
            ships &= (tests.changed >= MIN_CHANGED) & (tests.groups >= MIN_UNITS)
        rows = np.flatnonzero(ships)
        if rule.screens and len(rows):
            tuning = world.tuning.compare(self.order[rows], self.baseline)
            rows = rows[world.tuning.test(tuning).p <= SCREENING_P]
        if rule.bets and len(rows):
            differences = world.held_out.compare(self.order[rows], self.baseline)
            rows = rows[world.held_out.log_e_values(differences) >= -np.log(shares[rows])]
        return int(rows[0]) if len(rows) else None


#: The number of each ask that shipped, and its candidate.
Ships: TypeAlias = list[tuple[int, int]]


def replay(
    world: World, proposer: Proposer, rules: Sequence[Rule], asks: int, seed: Sequence[int]
) -> list[Ships]:
    """What each rule ships in the same campaign."""
    nothing = np.zeros(len(world.points), dtype=bool)
    order = proposer(world, nothing, None, np.random.default_rng(seed))[:asks]
    first = Phase.start(world, None, order)
    return [_follow(first, proposer, rule, asks, [*seed, 1]) for rule in rules]


def _follow(phase: Phase, proposer: Proposer, rule: Rule, asks: int, seed: Sequence[int]) -> Ships:
    rng, world = np.random.default_rng(seed), phase.world
    asked = np.zeros(len(world.points), dtype=bool)
    shipped: Ships = []
    number = 0
    while (place := phase.first_ship(rule, len(shipped) + 1, number)) is not None:
        asked[phase.order[: place + 1]] = True
        number += place + 1
        baseline = int(phase.order[place])
        shipped.append((number, baseline))
        if number >= asks or len(shipped) == rule.ships:
            break
        if world.guesses:
            world = world.guess_again(baseline, asked, rng)
        order = proposer(world, asked, baseline, rng)[: asks - number]
        phase = Phase.start(world, baseline, order)
    return shipped
