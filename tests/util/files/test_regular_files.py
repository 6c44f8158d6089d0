from __future__ import annotations

import os
from pathlib import Path

import pytest

from fusion_bench.util.files import (
    IrregularFileError,
    check_regular,
    open_regular,
    read_regular,
    read_regular_text,
)


def test_regular_files_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes("ü\r\n".encode())
    assert read_regular(path) == "ü\r\n".encode()
    assert read_regular_text(path) == "ü\n"
    check_regular(path)
    check_regular(tmp_path / "absent")
    with pytest.raises(FileNotFoundError):
        open_regular(tmp_path / "absent")


def test_others_say_what_they_are(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    kinds = {pipe: "a named pipe", Path("/dev/null"): "a device", tmp_path: "a folder"}
    for path, kind in kinds.items():
        with pytest.raises(IrregularFileError) as raised:
            read_regular(path)
        assert str(raised.value).startswith(kind)
        assert raised.value.filename == str(path)
