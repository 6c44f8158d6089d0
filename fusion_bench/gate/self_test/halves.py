"""The chances that the gate prints, computed on one half of the queries and tried on the other.

A number that is compared with the function that printed it cannot be wrong. Here the printed
chances come from one half, and the gate's decisions on samples from the other half say how often
it really happened: the mean over many halvings must agree within its error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fusion_bench.config.files.json_records import StoredRecord
from fusion_bench.data.ordering import BoolArray, FloatArray
from fusion_bench.gate.checks import Check, run_checks
from fusion_bench.gate.self_test.simulate import decide_runs, simulated_p_values
from fusion_bench.gate.verdict import ACCEPTED, ALARMS, ALPHA
from fusion_bench.stats.resampling import group_codes

HALVINGS = 100
#: Samples from the second half, of each kind and in each halving.
SAMPLES = 8
#: At most so many groups of a check take part, and at least so many must.
MOST_GROUPS, LEAST_GROUPS = 240, 60
#: Agreement: within so many standard errors of the mean over the halvings.
ERRORS = 3.0
#: The power at which a drop counts as detectable.
POWER = 0.8


class HalvesOutcome(StoredRecord):
    """One printed chance of one check.

    Attributes:
        check: The check.
        quantity: ``power at the detectable drop``, ``alarm``, ``pass`` (of either kind, without a
            true difference) or ``false pass`` (at a true drop of m).
        printed: The mean that the first halves print; the power is 0.8 by definition.
        measured: The mean over samples from the second halves.
        standard_error: Of the difference; halvings share queries, so it is taken from the number
            of halvings, not of samples.
        agrees: Whether they differ by at most three standard errors.
    """

    check: str
    quantity: str
    printed: float
    measured: float
    standard_error: float
    agrees: bool


def compare_halves(checks: Sequence[Check], *, seed: int) -> tuple[HalvesOutcome, ...]:
    """Compare printed chances with what happens on other queries.

    Args:
        checks: The checks of a policy. Of each collection the first one is tried that has enough
            groups, and enough differences to print a detectable drop.
        seed: Seed of the halvings and samples.
    """
    outcomes: list[HalvesOutcome] = []
    done: set[str] = set()
    for number, check in enumerate(checks):
        is_large = check.error is None and len(np.unique(check.groups)) >= LEAST_GROUPS
        if is_large and check.collection not in done:
            generator = np.random.Generator(np.random.PCG64([seed, number]))
            compared = _compare_check(check, generator)
            outcomes += compared
            done |= {check.collection} if compared else set()
    return tuple(outcomes)


def _compare_check(check: Check, generator: np.random.Generator) -> list[HalvesOutcome]:
    codes, count = group_codes(check.groups, len(check.groups))
    rows: list[tuple[list[float], list[float]]] = []
    for _ in range(HALVINGS):
        drawn = generator.permutation(count)[:MOST_GROUPS]
        is_first, is_second = np.zeros(count, dtype=bool), np.zeros(count, dtype=bool)
        is_first[drawn[::2]] = True
        is_second[drawn[1::2]] = True
        seed = int(generator.integers(2**31))
        [result] = run_checks([_part(check, is_first[codes])], resamples=10_000, seed=seed)
        if result.min_detectable_drop is None:
            continue
        printed = [POWER, result.alarm_rate, _sum(result.pass_rate, result.small_pass_rate)]
        printed.append(result.false_pass_rate)
        other = _part(check, is_second[codes])
        measured = _sample(other, result.min_detectable_drop, generator, seed)
        rows.append(([value or 0.0 for value in printed], measured))
    if len(rows) < HALVINGS / 2:
        return []
    means = np.array(rows).mean(axis=0)
    names = ("power at the detectable drop", "alarm", "pass", "false pass")
    return [
        _outcome(check.name, name, float(printed), float(measured), len(rows))
        for name, printed, measured in zip(names, *means, strict=True)
    ]


def _sum(*values: float | None) -> float:
    return sum(value or 0.0 for value in values)


def _part(check: Check, keep: BoolArray) -> Check:
    """The same check on some of its queries."""
    return replace(
        check,
        baseline=check.baseline[keep],
        candidate=check.candidate[keep],
        groups=check.groups[keep],
    )


def _sample(check: Check, drop: float, generator: np.random.Generator, seed: int) -> list[float]:
    """Shares of alarms at a true drop, of alarms and passes at none, and of passes at m."""
    codes, count = group_codes(check.groups, len(check.groups))
    sums = np.bincount(codes, weights=check.difference, minlength=count)
    sizes = np.bincount(codes, minlength=count).astype(np.float64)
    centered = sums - sizes * (sums.sum() / sizes.sum())
    drawn = generator.integers(0, count, (SAMPLES, count))
    signs = 2.0 * generator.integers(0, 2, (SAMPLES, count)) - 1

    def shares(rows: FloatArray, lengths: FloatArray) -> tuple[float, float]:
        p = simulated_p_values(rows, seed)
        statuses = decide_runs(rows, lengths, p, check.max_drop)
        alarms = sum(status in ALARMS for status in statuses)
        return alarms / SAMPLES, sum(status in ACCEPTED for status in statuses) / SAMPLES

    lengths = sizes[drawn]
    power, _ = shares(centered[drawn] - drop * lengths, lengths)
    alarm, accepted = shares(sums * signs, np.broadcast_to(sizes, signs.shape))
    _, false_pass = shares(centered[drawn] - check.max_drop * lengths, lengths)
    return [power, alarm, accepted, false_pass]


def _outcome(
    check: str, quantity: str, printed: float, measured: float, halvings: int
) -> HalvesOutcome:
    share = min(max(printed, ALPHA), 1 - ALPHA)  # a share near 0 or 1 has no error of 0
    error = float(np.sqrt(share * (1 - share) / halvings))
    return HalvesOutcome(
        check=check,
        quantity=quantity,
        printed=printed,
        measured=measured,
        standard_error=error,
        agrees=abs(printed - measured) <= ERRORS * error,
    )
