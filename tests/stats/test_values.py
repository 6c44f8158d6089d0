"""The table of values, its pairs, and what they leave out."""

from dataclasses import replace

import numpy as np
import pytest

from fusion_bench.errors import ConfigError
from fusion_bench.stats.intervals import estimate_mean
from fusion_bench.stats.unjudged import UnjudgedEvidence
from fusion_bench.stats.values import MeasuredValues, Pair, ValueTable
from tests.stats.samples import normal

KEYS = tuple(f"g{i // 2}" for i in range(20))
LIST = frozenset({"runs/a"})


def measured(seed: int, repeats: int = 1) -> MeasuredValues:
    rows = normal(repeats, 20, seed=seed)
    judged_only = normal(20, seed=seed + 50)
    evidence = UnjudgedEvidence(np.linspace(0, 1, 20), judged_only, None)
    return MeasuredValues(rows.mean(axis=0), rows, LIST, evidence)


TABLE = ValueTable(
    {name: {"m": measured(i, 3), "n": measured(i + 9)} for i, name in enumerate("abc")},
    *("b", ("m", "n"), KEYS, ("m",), "pooled"),
)


def test_every_other_system_is_paired_with_the_baseline() -> None:
    assert [pair.names for pair in TABLE.pairs("m")] == [("a", "b"), ("c", "b")]
    pair = TABLE.pair("a", "n", "c")
    assert (pair.names, pair.measure, pair.is_bounded, pair.kind) == (
        *(("a", "c"), "n", False),
        "pooled",
    )
    sides = TABLE.values_of("n")
    assert pair.difference == pytest.approx(sides["a"].values - sides["c"].values)


def test_a_pair_reads_the_arrays_of_the_table() -> None:
    pair = TABLE.pair("a", "m")
    assert np.shares_memory(pair.candidate.values, TABLE.systems["a"]["m"].values)


def test_a_system_without_the_measure_is_named() -> None:
    table = replace(TABLE, systems={**TABLE.systems, "d": {"m": measured(3)}})
    with pytest.raises(ConfigError, match=r"system 'd' .* measure 'n'"):
        table.pairs("n")


def test_some_queries_keep_their_groups_repeats_and_evidence() -> None:
    pair, keep = TABLE.pair("a", "m"), np.arange(20) % 3 == 0
    some = pair.select_queries(keep)
    assert some.keys == tuple(np.array(KEYS)[keep])
    assert some.counts == (3, 3)
    [means] = some.repeats
    sides = [TABLE.systems[name]["m"].repeats for name in "ab"]
    assert sides[0] is not None
    assert sides[1] is not None
    assert means == pytest.approx((sides[0] - sides[1])[:, keep].mean(axis=1))
    unjudged = some.compare_unjudged(0.05)
    assert unjudged is not None
    assert unjudged.candidate_share == pytest.approx(np.linspace(0, 1, 20)[keep].mean())
    assert unjudged.judged_only is not None
    assert unjudged.judged_only.groups == len(set(some.keys))


@pytest.mark.parametrize("change", [{"kind": "complete"}, {"baseline": MeasuredValues(normal(20))}])
def test_without_evidence_unjudged_documents_change_nothing(change: dict[str, object]) -> None:
    pair = replace(TABLE.pair("a", "m"), **change)  # type: ignore[arg-type]
    assert pair.compare_unjudged(0.05) is None


def test_float_noise_is_no_difference() -> None:
    pair = Pair.from_arrays(np.array([0.1 + 0.2, 0.5, 0.4]), np.array([0.3, 0.4, 0.5]))
    assert (pair.wins, pair.losses, pair.changed, pair.keys) == (1, 1, 2, ("0", "1", "2"))


@pytest.mark.parametrize("is_bounded", [False, True])
def test_the_interval_ends_where_differences_end(is_bounded: bool) -> None:
    values = np.array([1.0, -1.0, 1.0])
    estimate = Pair.from_arrays(values, is_bounded=is_bounded).estimate(0.05)
    expected = estimate_mean(values)
    assert expected.high > 1
    assert estimate.high == (1 if is_bounded else expected.high)
