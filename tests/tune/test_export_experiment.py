"""The tuned experiment names the dataset that was tuned on."""

from pathlib import Path

import pytest

from fusion_bench.experiment.experiment import relocate_dataset
from fusion_bench.io.dataset_config import find_dataset


@pytest.mark.parametrize("name", ["dataset.yaml", "../data/shop", "./shop.yml"])
def test_a_relative_path_leads_from_the_other_folder(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base, reports = tmp_path / "search", tmp_path / "reports/mine/tuning"
    base.mkdir()
    file = base / name if Path(name).suffix else base / name / "dataset.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("")
    monkeypatch.chdir(tmp_path)
    found = find_dataset(name, [], base=base)
    relocated = relocate_dataset(name, found, Path("reports/mine/tuning"))
    reports.mkdir(parents=True)
    monkeypatch.chdir(base.parent.parent)
    assert find_dataset(relocated, [], base=reports).resolve() == file.resolve()


def test_a_name_and_an_absolute_path_stay(tmp_path: Path) -> None:
    file = tmp_path / "shop/dataset.yaml"
    assert relocate_dataset("shop", file, tmp_path) == "shop"
    assert relocate_dataset(str(file), file, tmp_path) == str(file)
