"""What the rule says of single trials: whether one trial could have told."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np

from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.gate.estimates import estimate_check
from fusion_bench.gate.verdict import ALPHA, CheckStatus, decide_status
from fusion_bench.stats.comparison import NOISE
from fusion_bench.stats.randomization_tests import randomization_p_values


class SingleRule(NamedTuple):
    """How single trials are decided.

    Attributes:
        max_drop: m.
        tests: Checks of the family: p counts as at the first step of Holm.
        runs: R of ``candidates``.
        seed: Seed of the random signs.
    """

    max_drop: float
    tests: int
    runs: int
    seed: int


def decide_single_trials(
    differences: FloatArray, groups: IntArray, rule: SingleRule
) -> dict[CheckStatus, int]:
    """How often the plain rule ends in each status, the most frequent first.

    Args:
        differences: Shape (pairs, Q): candidate − baseline of single trials.
        groups: Shape (Q,): codes.
        rule: How each pair is decided.
    """
    rows = np.where(np.abs(differences) <= NOISE, 0.0, differences)
    p_values = randomization_p_values(rows, groups, seed=rule.seed, alternative="less")
    statuses: Counter[CheckStatus] = Counter()
    for row, p in zip(rows, p_values.tolist(), strict=True):
        each = estimate_check(row, groups, (), max_drop=rule.max_drop, alpha=ALPHA / rule.runs)
        status = decide_status(
            changed=int(np.count_nonzero(row)),
            mean=each.estimate.mean,
            max_drop=rule.max_drop,
            t_bound=each.estimate.low,
            betting_bound=each.betting_bound,
            p_fell=min(p * rule.tests * rule.runs, 1.0),
            p_regressed=min(each.p_regressed * rule.tests * rule.runs, 1.0),
        )
        statuses[status] += 1
    return dict(statuses.most_common())
