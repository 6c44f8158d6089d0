"""Arrays in a folder: every byte is guarded, and nothing half-written stays."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fusion_bench.io.dataset_cache import check_arrays, open_arrays, write_arrays


def test_every_byte_is_guarded(tmp_path: Path) -> None:
    folder = tmp_path / "x"
    write_arrays(folder, "k", {"a": 1}, {"n": np.arange(3), "f": np.ones((2, 0))})
    stored = open_arrays(folder, "k")
    check_arrays(folder, "k")
    assert stored.arrays["n"].tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="key is 'k'"):
        open_arrays(folder, "other")
    for path in (folder / "n.npy", folder / "contents.json"):
        data = path.read_bytes()
        for at in range(len(data)):
            path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
            with pytest.raises((ValueError, TypeError, KeyError)):
                check_arrays(folder, "k")
        path.write_bytes(data)
