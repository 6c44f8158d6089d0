"""Files are written whole or not at all, and only into the folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from fusion_bench.errors import ConfigError
from fusion_bench.evaluation.export_records import write_files


def test_all_are_checked_before_the_first_is_written(tmp_path: Path) -> None:
    (tmp_path / "b.json").write_text("mine")
    with pytest.raises(ConfigError, match=r"b\.json is .*--force"):
        write_files({"a.json": "1", "b.json": "2"}, tmp_path)
    assert not (tmp_path / "a.json").exists()
    written = write_files({"a.json": "1", "b.json": "2"}, tmp_path, force=True)
    assert [path.read_text() for path in written] == ["1", "2"]


def test_a_folder_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "a.json").mkdir()
    with pytest.raises(ConfigError, match="is a folder"):
        write_files({"a.json": "1"}, tmp_path, force=True)


@pytest.mark.parametrize("name", ["../a", "/a", "a/../../b", "..\\a", ""])
def test_no_name_leads_out_of_the_folder(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="outside the folder"):
        write_files({name: "1"}, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_file_below_a_folder(tmp_path: Path) -> None:
    [path] = write_files({"config/a.yml": "x"}, tmp_path / "new")
    assert path == tmp_path / "new/config/a.yml"
