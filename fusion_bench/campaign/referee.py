"""What decides on a candidate, from its values on the held-out queries."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fusion_bench.campaign.decision import HeldOutTest, is_screened, phase_share, run_held_out_test
from fusion_bench.campaign.frozen_data import FrozenData, SystemValues
from fusion_bench.campaign.records import CampaignRules
from fusion_bench.checks.unjudged import UnjudgedEvidence, compare_unjudged
from fusion_bench.data.ordering import FloatArray
from fusion_bench.experiment.system import System
from fusion_bench.stats import comparison


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
    held_out = held_out_difference(data, candidate, baseline)
    test = run_held_out_test(
        held_out,
        data.held_out_groups,
        share=phase_share(phase, ships=rules.ships, asks=rules.asks, level=rules.level),
        min_gain=rules.min_gain,
        is_bounded=data.measure.is_bounded,
        tails=rules.tails,
    )
    screened = True
    if candidate.tuning is not None and baseline.tuning is not None:
        tuning = comparison.paired_difference(candidate.tuning, baseline.tuning)
        screened = is_screened(tuning, data.tuning_groups)
    withheld = _unjudged_decide(data, candidate.evidence, baseline.evidence, rules.min_gain)
    degraded = any(data.dataset.degraded(name) for name in system.reranker_names)
    reasons = [withheld, degraded, not len(candidate.held_out)]
    return AskJudgment(test, screened, any(reasons))


def held_out_difference(
    data: FrozenData, candidate: SystemValues, baseline: SystemValues
) -> FloatArray:
    """(H,): candidate − baseline; 0 where one of them cannot be computed."""
    if not (len(candidate.held_out) and len(baseline.held_out)):
        return np.zeros(len(data.held_out_groups))
    return comparison.paired_difference(candidate.held_out, baseline.held_out)


def _unjudged_decide(
    data: FrozenData,
    candidate: UnjudgedEvidence | None,
    baseline: UnjudgedEvidence | None,
    min_gain: float,
) -> bool:
    """Whether unjudged documents contradict that the candidate is better."""
    if candidate is None or baseline is None:
        return False
    unjudged = compare_unjudged(
        candidate,
        baseline,
        groups=data.held_out_groups,
        kind=data.kind,
        is_bounded=data.measure.is_bounded,
    )
    return unjudged.decides(1, min_gain)
