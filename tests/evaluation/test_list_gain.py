"""What a better list is worth alone, fused and reranked."""

import numpy as np
import pytest

from fusion_bench.evaluation.compared_reports import find_list_gain, ratio_interval
from fusion_bench.evaluation.report_records import Collection
from fusion_bench.report.change_page import list_gain_table
from fusion_bench.stats.intervals import estimate_mean
from tests.evaluation.test_report_changes import BEFORE, of_values

ALONE, FUSED = {"runs": ["a"], "fusion": {}}, {"runs": ["a", "b"], "fusion": {}}
GAIN = 0.1 + 0.02 * np.sin(np.arange(len(BEFORE)))


def collection(gain: float, share: float, **digests: str) -> Collection:
    """The systems a, fused and b, after list a gained and fusion kept a share of it."""
    values = (("a", BEFORE + gain * GAIN), ("fused", BEFORE + share * gain * GAIN), ("b", BEFORE))
    known = {"qrels": "q", "runs/a": "1", "runs/b": "2", **digests}
    [found] = of_values(*values, digests=known).collections
    configs = {"a": ALONE, "fused": FUSED, "b": {"runs": ["b"]}}
    systems = tuple(
        row.model_copy(update={"config": configs.get(row.name, row.config)})
        for row in found.systems
    )
    return found.model_copy(update={"systems": systems})


def test_the_gain_alone_and_what_fusion_keeps_of_it() -> None:
    gain = find_list_gain(collection(0, 0), collection(1, 0.4, **{"runs/a": "9"}))
    assert gain is not None
    name, (alone, fused) = gain
    assert name == "a"
    assert (alone.system, alone.beyond, alone.share) == ("a", None, None)
    assert alone.gain.mean == pytest.approx(GAIN.mean())
    assert fused.system == "fused"
    assert fused.beyond is not None
    assert fused.beyond.mean == pytest.approx(-0.6 * GAIN.mean())
    assert fused.share == pytest.approx((0.4, 0.4, 0.4))
    assert "40%" in list_gain_table(*gain).rows[1].cells[-1]


def test_no_share_where_the_list_alone_gains_nothing() -> None:
    gain = find_list_gain(collection(0, 0), collection(-1, 0.4, **{"runs/a": "9"}))
    assert gain is not None
    assert gain[1][1].share is None


@pytest.mark.parametrize(
    "digests",
    [{}, {"runs/a": "9", "runs/b": "9"}, {"runs/b": "9"}, {"qrels": "9"}, {"rerank/r": "9"}],
    ids=["no list", "two lists", "never alone", "judgments", "a rerank list"],
)
def test_only_one_list_that_differs(digests: dict[str, str]) -> None:
    after = collection(1, 0.4, **digests)
    if digests == {"runs/b": "9"}:
        after = after.model_copy(update={"systems": after.systems[:2]})
    assert find_list_gain(collection(0, 0), after) is None


GROUPS = np.arange(80)


def test_the_ends_are_the_ratios_that_a_paired_test_just_rejects() -> None:
    generator = np.random.default_rng(2)
    bottom = 0.1 + 0.1 * generator.normal(size=80)
    top = 0.4 * bottom + 0.03 * generator.normal(size=80)
    found = ratio_interval(top, bottom, GROUPS)
    assert found is not None
    ratio, low, high = found
    assert ratio == pytest.approx(top.mean() / bottom.mean())
    assert low < ratio < high
    for end, side in ((low, "low"), (high, "high")):
        rest = estimate_mean(top - end * bottom, GROUPS)
        assert getattr(rest, side) == pytest.approx(0, abs=1e-9)


def test_no_ratio_without_a_shown_denominator() -> None:
    generator = np.random.default_rng(3)
    assert ratio_interval(np.ones(80), generator.normal(size=80), GROUPS) is None
    assert ratio_interval(np.ones(1), np.ones(1), GROUPS[:1]) is None
