"""Files that options name: what is recorded, and what is replaced."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fusion_bench.errors import ConfigError
from fusion_bench.io.outputs import (
    RECORD,
    guard_outputs,
    is_earlier_output,
    record_output,
    refuse_inputs,
    write_output,
    write_outputs,
)
from tests import tiny


@contextmanager
def naming(path: Path, *inputs: Path, force: bool = False) -> Iterator[Path]:
    with guard_outputs({"--out": path}, inputs, is_forced=force, checked={"--out"}):
        yield path


def test_an_earlier_output_is_replaced_and_an_edited_one_is_not(tmp_path: Path) -> None:
    path = tmp_path / "new" / "a.md"
    for data in (b"one", b"two", b"one"):
        with naming(path):
            write_output(path, data)
    lines = [json.loads(line) for line in (path.with_name(RECORD)).read_bytes().splitlines()]
    assert [line["file"] for line in lines] == ["a.md", "a.md"]
    assert is_earlier_output(path)
    path.write_bytes(b"one, edited")
    with pytest.raises(ConfigError, match=r"a\.md.*--force"), naming(path):
        pass
    with naming(path, force=True):
        write_output(path, b"three")
    with naming(path):
        write_output(path, b"four")


def test_a_copy_under_another_name_is_no_output(tmp_path: Path) -> None:
    with naming(tmp_path / "a"):
        write_output(tmp_path / "a", b"x")
    (tmp_path / "b").write_bytes(b"x")
    assert not is_earlier_output(tmp_path / "b")


def test_an_input_stays_though_a_command_wrote_it(tmp_path: Path) -> None:
    path = tmp_path / "a"
    write_output(path, b"x")
    (tmp_path / "link").symlink_to(path)
    for name in (path, tmp_path / "link"):
        with (
            pytest.raises(ConfigError, match="replace an input"),
            naming(name, path, force=True),
        ):
            pass
    with naming(path), pytest.raises(ConfigError, match="replace an input"):
        refuse_inputs([None, tmp_path])


def test_a_damaged_line_of_the_record_says_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a"
    (tmp_path / RECORD).write_bytes(b'{"file": "a"\n[1]\n{"file": ["a"]}\n\xff\n')
    write_output(path, b"x")
    assert is_earlier_output(path)


def test_files_that_belong_together_are_checked_before_one_is_written(tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(b"mine")
    with (
        guard_outputs({"--out": tmp_path}, (), is_forced=False),
        pytest.raises(ConfigError, match="b is there"),
    ):
        write_outputs(tmp_path, {"a": b"1", "b": b"2"})
    assert [path.name for path in tmp_path.iterdir()] == ["b"]


def test_what_belongs_to_a_dataset_stays(tmp_path: Path) -> None:
    folder = tiny.make(tmp_path) / "datasets/tiny"
    record_output(folder / "a.trec", (folder / "a.trec").read_bytes())
    (folder / "judgments").mkdir()
    tiny.edit(tmp_path, tiny.DATASET, "a.trec", "a*.trec")
    for name in ("dataset.yaml", "qrels.txt", "a.trec", "a-2.trec", "judgments/new.csv"):
        with (
            pytest.raises(ConfigError, match="of the files"),
            naming(folder / name, force=True) as path,
        ):
            write_output(path, b"x")
    path = folder / "judgments/qrels.txt"
    with guard_outputs({"--write-qrels": path}, (), is_forced=False):
        write_output(path, b"x", is_owned=True)
    with naming(folder / "notes.md") as path:
        write_output(path, b"x")
    (folder / "dataset.yaml").write_text("runs: [", encoding="utf-8")
    with pytest.raises(ConfigError, match="of the files"), naming(folder / "b.trec"):
        pass


def test_two_options_name_two_files(tmp_path: Path) -> None:
    names = {"--out": tmp_path / "a", "--records": tmp_path / "." / "a"}
    with (
        pytest.raises(ConfigError, match="--out, --records:"),
        guard_outputs(names, (), is_forced=True),
    ):
        pass


def test_python_code_replaces_what_it_names(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"mine")
    write_output(tmp_path / "a", b"x")
    assert is_earlier_output(tmp_path / "a")
