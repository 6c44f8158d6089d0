"""Files that belong together are there, all of them or none."""

from __future__ import annotations

from pathlib import Path

import pytest

from fusion_bench.errors import ConfigError
from fusion_bench.util.files import remove_on_failure, require_free


def test_what_was_written_before_a_failure_is_removed(tmp_path: Path) -> None:
    kept, file, folder = (tmp_path / name for name in ("kept", "file", "folder"))
    kept.touch()

    def write_all() -> None:
        with remove_on_failure() as new:
            new += [file, folder, tmp_path / "absent"]
            file.touch()
            folder.mkdir()
            (folder / "inside").touch()
            raise OSError("full")

    with pytest.raises(OSError, match="full"):
        write_all()
    assert list(tmp_path.iterdir()) == [kept]


def test_what_was_written_without_one_stays(tmp_path: Path) -> None:
    with remove_on_failure() as new:
        new.append(tmp_path / "file")
        new[0].touch()
    assert (tmp_path / "file").exists()


def test_a_folder_is_free_where_no_file_is_in_the_way(tmp_path: Path) -> None:
    require_free(tmp_path, ("dataset.yaml",))
    (tmp_path / "dataset.yaml").touch()
    with pytest.raises(ConfigError, match=r"^--save.*dataset\.yaml.*exists:"):
        require_free(tmp_path, ("dataset.yaml",), "--save")
    with pytest.raises(ConfigError, match=r"yaml is a file"):
        require_free(tmp_path / "dataset.yaml" / "below", ())
