"""A stamp is trusted only where the file cannot have changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from fusion_bench.io.dataset_cache import FileStamps


def test_a_stamp_on_a_fresh_file_is_not_kept(tmp_path: Path) -> None:
    path, reads = tmp_path / "file", []

    def read(file: Path) -> str:
        reads.append(file)
        return file.read_text()

    path.write_text("one")
    known = FileStamps(tmp_path / "stamps")
    assert [known.lookup(path, read) for _ in range(2)] == ["one", "one"]
    assert len(reads) == 2  # the clock could not tell a second change from the first
    known = FileStamps(tmp_path / "stamps", min_age=-(10**12))
    assert [known.lookup(path, read) for _ in range(3)] == ["one"] * 3
    assert len(reads) == 3
    path.write_text("two")
    assert known.lookup(path, read) == "two"
    assert FileStamps(tmp_path / "stamps", verify=True).lookup(path, read) == "two"
    assert len(reads) == 5


@pytest.mark.parametrize("content", [b"", b"[]", b"[1, 2]", b'[0, "[[1], \\"x\\"]"]', b"\xff"])
def test_a_damaged_stamp_is_not_trusted(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("one")
    known = FileStamps(tmp_path / "stamps", min_age=-(10**12))
    assert known.lookup(path, Path.read_text) == "one"
    (stamp,) = known.folder.iterdir()
    stamp.write_bytes(content)
    assert known.lookup(path, lambda _: "read again") == "read again"
