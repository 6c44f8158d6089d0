"""The whole pipe: reproducible, indifferent to order, and right on numbers made by hand."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from fusion_bench.errors import ConfigError
from fusion_bench.evaluation.report_file import Report
from fusion_bench.evaluation.report_records import Collection
from fusion_bench.evaluation.run_experiment import run_experiment
from fusion_bench.experiment.experiment import read_experiment
from tests import tiny
from tests.tiny import EXPERIMENT, FILES, edit


def report(root: Path, **options: Any) -> Report:  # noqa: ANN401 - those of `run`
    experiment, source = read_experiment(root / EXPERIMENT)
    return run_experiment(experiment, source, folders=[root / "datasets"], **options)


def collection(root: Path, **options: Any) -> Collection:  # noqa: ANN401 - those of `run`
    return report(root, **options).collections[0]


def mean(found: Collection, system: str, measure: str = "RR@10") -> float:
    value = found.system(system).measures[measure].mean
    assert value is not None
    return value


def test_single_sources_and_bounds_by_hand(tmp_path: Path) -> None:
    found = collection(tiny.make(tmp_path))
    assert found.queries == ("q1", "q2", "q4")
    assert found.split == "test"
    # On dev `a` is better (1 against 1/2), on test `b`: 5/6 against 1/2. Choosing on test cheats.
    floor = found.system("best source (chosen on dev)")
    assert (floor.kind, floor.note) == ("floor", "a")
    assert mean(found, floor.name) == pytest.approx(1 / 2)
    oracle = found.system("best source per query (oracle)")
    assert oracle.measures["RR@10"].values == (1, 0.5, 1)
    assert mean(found, "perfect order") == 1
    assert [row.kind for row in found.systems] == ["system"] * 2 + ["floor"] + ["ceiling"] * 2
    # q1: d1 = 1/62 + 1/61 beats d2 = 1/61. q2: d3 = 2/62 beats d8 = d4 = 1/61. q4: as q1.
    assert found.system("one").measures["RR@10"].values == (1, 1, 1)


def test_where_everything_is_judged_on_the_choice_is_too(tmp_path: Path) -> None:
    found = collection(tiny.make(tmp_path), split="all")
    assert found.system("best source (chosen on all)").note == "b"
    expected = pytest.approx((1 + 0.5 + 0.5 + 1) / 4)
    assert mean(found, "best source (chosen on all)") == expected
    assert found.split is None
    assert found.tuning_split is None


def test_among_equally_good_sources_the_order_of_systems_does_not_choose(tmp_path: Path) -> None:
    root = tiny.make(tmp_path, a=FILES["datasets/tiny/b.trec"])
    for systems in ("one: {runs: [a]}\n  x: {runs: [b]}", "x: {runs: [b]}\n  one: {runs: [a]}"):
        text = f"dataset: tiny\nbaseline: one\nsystems:\n  {systems}\n"
        (root / EXPERIMENT).write_text(text, encoding="utf-8")
        assert collection(root).system("best source (chosen on dev)").note == "a"


def test_two_runs_differ_in_their_date_alone(root: Path) -> None:
    first, second = report(root), report(root)
    assert first.provenance.model_copy(update={"created": ""}) == second.provenance.model_copy(
        update={"created": ""}
    )
    assert first.model_copy(update={"provenance": second.provenance}) == second


@pytest.mark.parametrize("ties", ["trec", "first_seen"])
def test_the_order_of_systems_changes_no_value(ties: str, root: Path) -> None:
    data = yaml.safe_load((root / EXPERIMENT).read_text(encoding="utf-8"))
    data["ties"] = ties
    data["systems"] |= {
        "b first": {"runs": ["b", "a"], "top_k": 2},
        "scores": {"runs": ["a", "b"], "fusion": {"method": "weighted_score"}},
        "b": {"runs": ["b"]},
    }

    def found(names: list[str]) -> Collection:
        data["systems"] = {name: data["systems"][name] for name in names}
        (root / EXPERIMENT).write_text(yaml.safe_dump(data, sort_keys=False), encoding="utf-8")
        return collection(root)

    names = list(data["systems"])
    first, second = found(names), found(names[::-1])
    rows = {row.name: row for row in second.systems}
    assert [rows[row.name] for row in first.systems] == list(first.systems)
    pairs = {(c.candidate, c.measure): c for c in second.comparisons}
    assert [pairs[c.candidate, c.measure] for c in first.comparisons] == list(first.comparisons)


def test_settings_are_resolved(tmp_path: Path) -> None:
    found = report(tiny.make(tmp_path), split="all", query_type="local")
    assert found.settings["split"] == "all"
    assert found.settings["query_type"] == "local"
    assert found.settings["ties"] == "trec"
    assert "systems" not in found.settings
    assert found.name == "e"
    assert found.collections[0].queries == ("q1", "q4")
    assert found.provenance.source == "e.yaml"
    assert len(found.provenance.source_sha256) == 64


def second(root: Path, spec: str = "") -> None:
    other = root / "datasets/other"
    other.mkdir()
    for name, text in FILES.items():
        if name.startswith("datasets/"):
            (other / Path(name).name).write_text(text, encoding="utf-8")
    edit(root, "datasets/other/dataset.yaml", "name: tiny", f"name: other\n{spec}")
    edit(root, "datasets/other/qrels.txt", "q2 0 d3 2", "q2 0 d7 2")


def test_several_datasets_are_several_collections(root: Path) -> None:
    alone = collection(root)
    second(root, "binary_relevance: 2")
    edit(root, EXPERIMENT, "dataset: tiny", "datasets: [other, tiny]")
    stages: list[tuple[str, int, int]] = []
    found = report(root, progress=lambda *stage: stages.append(stage)).collections
    assert [c.name for c in found] == ["other", "tiny"]
    without = {"comparisons": ()}  # their family is larger
    assert found[1].model_copy(update=without) == alone.model_copy(update=without)
    assert found[0].measures == ("RR(rel=2)@10", "nDCG@10")
    assert (
        found[0].queries_without_relevant == 2
    )  # q1 and q4 have only grade 1; d7 is relevant, but not found
    assert mean(found[0], "perfect order", "RR(rel=2)@10") == 0
    assert found[0].fingerprint != found[1].fingerprint
    assert ("reading other", 0, 1) in stages
    assert ("comparing", 0, 1) in stages


def test_every_dataset_is_checked_before_the_first_is_computed(root: Path) -> None:
    second(root)
    edit(root, "datasets/other/dataset.yaml", "roles: [question, semantic]", "roles: [semantic]")
    edit(root, EXPERIMENT, "dataset: tiny", "datasets: [tiny, other]")
    stages: list[str] = []
    with pytest.raises(ConfigError, match="role 'question'"):
        report(root, progress=lambda stage, *_: stages.append(stage))
    assert stages == []


def test_only_lists_that_a_system_uses_are_read(tmp_path: Path) -> None:
    root = tiny.make(tmp_path, r="broken", b="broken")
    text = "dataset: tiny\nbaseline: one\nsystems:\n  one: {runs: [a]}\n"
    (root / EXPERIMENT).write_text(text, encoding="utf-8")
    assert [info.name for info in collection(root).runs] == ["a"]
