"""Signs by a hash: order, blocks, fairness."""

from __future__ import annotations

import numpy as np
import pytest

from fusion_bench.errors import ConfigError
from fusion_bench.stats.sign_flips import draw_flips, enumerate_flips, hash_group_ids


def test_a_sign_depends_on_seed_draw_and_group_alone() -> None:
    keys = hash_group_ids(7, ["a", "b", "c"])
    assert keys.tolist() == hash_group_ids(7, ["c", "b", "a"])[::-1].tolist()
    assert (hash_group_ids(8, ["a", "b", "c"]) != keys).all()
    whole = draw_flips(keys, 0, 300)
    assert np.array_equal(whole[1:2], draw_flips(keys[1:2], 0, 300))
    for start, stop in ((0, 1), (63, 65), (64, 128), (100, 300)):
        assert np.array_equal(draw_flips(keys, start, stop), whole[:, start:stop])


def test_signs_are_fair_and_unrelated() -> None:
    flips = draw_flips(hash_group_ids(1, [f"q{i}" for i in range(200)]), 0, 4_000)
    assert abs(flips.mean() - 0.5) < 5 * 0.5 / np.sqrt(flips.size)
    correlations = np.asarray(np.corrcoef(flips))[np.triu_indices(200, 1)]
    assert np.abs(correlations).max() < 6 / np.sqrt(4_000)
    draws = np.asarray(np.corrcoef(flips[:, :200].T))[np.triu_indices(200, 1)]
    assert np.abs(draws).max() < 6 / np.sqrt(200)


def test_the_stream_never_changes() -> None:
    keys = hash_group_ids(7, ["q1", "q2"])
    assert keys.tolist() == [0xA4C28416F5E01E32, 0x3D473A6C23BEEEE4]
    flips = ["".join(map(str, row)) for row in draw_flips(keys, 0, 16).astype(int).tolist()]
    assert flips == ["0001111101010100", "1000110011011100"]


def test_every_assignment_once() -> None:
    flips = enumerate_flips(4)
    assert flips.shape == (4, 16)
    assert len({tuple(column) for column in flips.T}) == 16
    assert flips[:, -1].tolist() == [1, 1, 1, 1]
    assert enumerate_flips(0).shape == (0, 1)


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(ConfigError, match="seed"):
        hash_group_ids(-1, ["a"])
