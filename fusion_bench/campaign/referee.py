"""What decides on a candidate, from its values on the held-out queries."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fusion_bench.campaign.decision import HeldOutTest, is_screened, phase_share, run_held_out_test
from fusion_bench.campaign.frozen_data import FrozenData, SystemValues
from fusion_bench.campaign.records import CampaignRules
from fusion_bench.experiment.system import System
from fusion_bench.stats.intervals import ALPHA
from fusion_bench.stats.values import MeasuredValues, Pair


@dataclass(frozen=True)
class AskJudgment:
    """What decides on a candidate.

    Attributes:
        test: On the held-out queries.
        is_screened: Not better on the tuning queries, and so not tested.
        is_withheld: Unjudged documents decide, a list is degraded, few differences are skewed
            against the gain, or no value can be computed.
    """

    test: HeldOutTest
    is_screened: bool
    is_withheld: bool

    @property
    def ships(self) -> bool:
        """Whether the candidate is the next baseline."""
        return self.test.ships and not self.is_screened and not self.is_withheld


def judge_candidate(
    data: FrozenData,
    system: System,
    candidate: SystemValues,
    baseline: SystemValues,
    *,
    rules: CampaignRules,
    phase: int,
) -> AskJudgment:
    """Test a candidate; every part is computed whatever another one says.

    Args:
        data: The queries.
        system: The candidate.
        candidate: Its values.
        baseline: Those of the baseline of the phase.
        rules: What was declared.
        phase: From 1.
    """
    pair = pair_held_out(data, candidate, baseline)
    test = run_held_out_test(
        pair.difference,
        pair.groups,
        share=phase_share(phase, ships=rules.ships, asks=rules.asks, level=rules.level),
        min_gain=rules.min_gain,
        is_bounded=pair.is_bounded,
        tails=rules.tails,
    )
    screened = True
    if candidate.tuning is not None and baseline.tuning is not None:
        tuning = Pair.from_arrays(candidate.tuning, baseline.tuning, data.tuning.groups)
        screened = is_screened(tuning.difference, tuning.groups)
    unjudged = pair.compare_unjudged(ALPHA)
    reasons = [
        unjudged is not None and unjudged.decides(1, rules.min_gain),
        any(data.dataset.degraded(name) for name in system.reranker_names),
        not len(candidate.held_out),
    ]
    return AskJudgment(test, screened, any(reasons))


def pair_held_out(data: FrozenData, candidate: SystemValues, baseline: SystemValues) -> Pair:
    """The candidate and the baseline on the held-out queries; 0 if one cannot be computed."""
    sides, keys = (candidate, baseline), data.held_out.groups
    has_both = all(len(side.held_out) for side in sides)
    first, second = (
        MeasuredValues(side.held_out if has_both else np.zeros(len(keys)), unjudged=side.evidence)
        for side in sides
    )
    return Pair(first, second, keys, is_bounded=data.measure.is_bounded, kind=data.kind)
