from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from fusion_bench.errors import DataError
from fusion_bench.io.raw_files import MOST_RATIO, read_bytes


@pytest.fixture
def packed(tmp_path: Path) -> Path:
    path = tmp_path / "a.trec.gz"
    path.write_bytes(gzip.compress(bytes(100_000)))  # 133 bytes
    return path


def test_a_file_that_unpacks_to_too_much_is_refused(packed: Path) -> None:
    assert packed.stat().st_size * MOST_RATIO < 100_000
    with pytest.raises(DataError, match=rf"99,999 bytes, .*{MOST_RATIO}"):
        read_bytes(packed, most_unpacked=99_999)
    assert read_bytes(packed, most_unpacked=100_000) == bytes(100_000)


def test_a_large_file_may_unpack_to_many_times_its_size(tmp_path: Path) -> None:
    text = "".join(f"q{n} Q0 d{n} 1 0.5 tag\n" for n in range(1_000)).encode()
    path = tmp_path / "a.trec.gz"
    path.write_bytes(gzip.compress(text))
    assert read_bytes(path, most_unpacked=1) == text


def test_two_packed_parts_are_one_file(tmp_path: Path) -> None:
    path = tmp_path / "a.trec.gz"
    path.write_bytes(gzip.compress(b"a") + gzip.compress(b"b"))
    assert read_bytes(path) == b"ab"
