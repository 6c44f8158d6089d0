"""Where datasets are looked for, by name and by path."""

from __future__ import annotations

from pathlib import Path

import pytest

from fusion_bench.errors import ConfigError, UnknownNameError
from fusion_bench.io.dataset_config import find_dataset, list_datasets
from tests import tiny
from tests.tiny import DATASET


def test_a_name_is_looked_for_in_the_folders_in_their_order(tmp_path: Path) -> None:
    first, second = tiny.make(tmp_path / "1"), tiny.make(tmp_path / "2")
    folders = [first / "datasets", second / "datasets"]
    assert find_dataset("tiny", folders) == first / DATASET
    assert find_dataset("tiny", folders[::-1]) == second / DATASET
    assert find_dataset(str(second / "datasets/tiny"), []) == second / DATASET
    assert find_dataset(str(second / DATASET), folders) == second / DATASET
    assert list_datasets(folders[0]) == [first / DATASET]


@pytest.mark.parametrize("name", ["../tiny", "x/../tiny", "tiny/", "", ".", "..", "a\0b", "tinny"])
def test_a_name_does_not_leave_the_folders(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tiny.make(tmp_path)
    (root / "datasets/x").mkdir()
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.chdir(empty)
    with pytest.raises(UnknownNameError, match=r"e\.yaml:1: dataset:.*known:"):
        find_dataset(name, [root / "datasets"], where="e.yaml:1: dataset")


def test_the_message_names_the_folders_that_were_looked_in(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError) as caught:
        find_dataset("x", [tmp_path, tmp_path / "b"])
    said = f"in x/dataset.yaml, {tmp_path}, {tmp_path / 'b'}: unknown dataset 'x' (known: none): "
    assert str(caught.value).startswith(f"{said}name the ")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An experiment's folder, and beside it the working directory."""
    (tmp_path / "search").mkdir()
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path


@pytest.mark.parametrize(
    "given", ["dataset.yaml", "shop/dataset.yaml", "data/shop", "../data.yaml", "./ds", "ds/", "ds"]
)
def test_a_path_starts_at_the_experiment_or_else_here(given: str, project: Path) -> None:
    file = Path(given) if given.endswith("yaml") else Path(given, "dataset.yaml")
    base = project / "search"
    with pytest.raises(ConfigError) as caught:
        find_dataset(given, [], where="e.yaml:1: dataset", base=base)
    said = str(caught.value)
    assert said.startswith("e.yaml:1: dataset: ")
    assert str(base / file) in said
    assert str(file) in said.replace(str(base / file), "")
    here = project / "work" / file
    here.parent.mkdir(parents=True, exist_ok=True)
    here.write_text("")
    assert find_dataset(given, [], base=base).resolve() == here.resolve()
    assert find_dataset(given, []).resolve() == here.resolve()
    there = base / file
    if there.resolve() == here.resolve():
        return
    there.parent.mkdir(parents=True, exist_ok=True)
    there.write_text("")
    with pytest.raises(ConfigError) as caught:
        find_dataset(given, [], where="e.yaml:1: dataset", base=base)
    assert f"is two files, {there} and {file}: " in str(caught.value)
    here.unlink()
    assert find_dataset(given, [], base=base) == there
    here.symlink_to(there)
    assert find_dataset(given, [], base=base) == there


def test_a_missing_file_names_one_like_it(project: Path) -> None:
    (project / "search/dataset.yaml").write_text("")
    with pytest.raises(ConfigError, match=r"'.*dataset\.y"):
        find_dataset("datset.yaml", [], base=project / "search")
    with pytest.raises(ConfigError, match=r"^x{300}\.yaml: .*for x{300}\.yaml"):
        find_dataset(f"{'x' * 300}.yaml", [])
    with pytest.raises(ConfigError, match="no such file"):
        find_dataset("a\0/b.yaml", [], base=project)


def test_a_missing_folder_names_where_it_was_looked_for(project: Path) -> None:
    base, named = project / "search", project / "datasets"
    with pytest.raises(UnknownNameError) as caught:
        find_dataset("data/shop", [named], where="e.yaml:1: dataset", base=base)
    looked = f"in {base}/data/shop/dataset.yaml, data/shop/dataset.yaml, {named}: "
    assert str(caught.value).startswith(f"e.yaml:1: dataset: {looked}unknown dataset 'data/shop'")
