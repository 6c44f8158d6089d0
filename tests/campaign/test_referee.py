"""What withholds a ship, with values made for it."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from fusion_bench.campaign.ask import AskJudgment, judge_candidate
from fusion_bench.campaign.decision import Tails
from fusion_bench.campaign.frozen_data import FrozenData, SystemValues
from fusion_bench.campaign.records import CampaignRules
from fusion_bench.data.ordering import FloatArray
from fusion_bench.experiment.system import System
from fusion_bench.stats.unjudged import UnjudgedEvidence

QUERIES = 60
KEYS = tuple(map(str, range(QUERIES)))


@dataclass(frozen=True)
class MadeData:
    """What is asked of the data of a campaign."""

    degraded: tuple[str, ...] = ()
    kind: str = "pooled"
    tuning: Any = field(default_factory=lambda: SimpleNamespace(groups=KEYS))
    held_out: Any = field(default_factory=lambda: SimpleNamespace(groups=KEYS))
    measure: Any = field(default_factory=lambda: SimpleNamespace(is_bounded=True))

    @property
    def dataset(self) -> Any:  # noqa: ANN401 - what is asked of a dataset
        return SimpleNamespace(degraded=lambda _: self.degraded)


def values(held_out: FloatArray, judged_only: FloatArray | None = None) -> SystemValues:
    evidence = None
    if judged_only is not None:
        evidence = UnjudgedEvidence(np.zeros(QUERIES), judged_only, None)
    return SystemValues(np.linspace(0.4, 0.6, QUERIES), "", held_out, evidence)


def judge(
    candidate: SystemValues,
    baseline: SystemValues,
    data: MadeData | None = None,
    tails: Tails = "bounded",
) -> AskJudgment:
    better = np.linspace(0.4, 0.6, QUERIES) + 0.1 + 0.01 * np.sin(np.arange(QUERIES))
    asked = SystemValues(better, "", candidate.held_out, candidate.evidence)
    system = System.model_validate({"name": "c", "runs": ["a"], "blend": BLEND})
    rules = CampaignRules(asks=1, tails=tails)
    made = cast("FrozenData", data or MadeData())
    return judge_candidate(made, system, asked, baseline, rules=rules, phase=1)


BLEND = {"method": "linear", "reranker": "ltr", "beta": 0.5}
NOISE = 0.05 * np.sin(np.arange(QUERIES))
LOW, HIGH = np.full(QUERIES, 0.3), 0.6 + NOISE


def test_a_clear_gain_ships() -> None:
    assert judge(values(HIGH), values(LOW)).ships


def test_degraded_lists_are_kept() -> None:
    judged = judge(values(HIGH), values(LOW), MadeData(degraded=("q1",)))
    assert (judged.ships, judged.test.ships, judged.is_withheld) == (False, True, True)


def test_unjudged_documents_that_contradict_it_are_kept() -> None:
    judged = judge(values(HIGH, LOW), values(LOW, HIGH))
    assert (judged.ships, judged.test.ships) == (False, True)
    assert judge(values(HIGH, HIGH), values(LOW, LOW)).ships


def test_values_that_cannot_be_computed_are_kept() -> None:
    judged = judge(values(np.zeros(0)), values(LOW))
    assert (judged.ships, judged.is_withheld, judged.test.mean) == (False, True, 0)


def test_few_differences_skewed_against_the_gain_ship_only_with_student_s_tails() -> None:
    gains = LOW + 0.02 + NOISE / 500
    assert judge(values(gains), values(LOW), tails="t").ships
    gains[0] = LOW[0] - 0.3
    judged = judge(values(gains), values(LOW), tails="bounded")
    assert judged.test.mean > judged.test.critical_mean
    assert not judged.ships
    assert judge(values(gains), values(LOW), tails="t").ships


def test_what_is_not_better_on_the_tuning_queries_is_screened_after_the_test() -> None:
    data = cast("FrozenData", MadeData())
    system = System.model_validate({"name": "c", "runs": ["a"]})
    same = SystemValues(np.linspace(0.4, 0.6, QUERIES), "", HIGH, None)
    rules = CampaignRules(asks=1)
    judged = judge_candidate(data, system, same, values(LOW), rules=rules, phase=1)
    assert (judged.test.ships, judged.is_screened, judged.ships) == (True, True, False)
