"""A path with wildcards: which files it names, in which order."""

from pathlib import Path

import pytest

from fusion_bench.errors import ConfigError, DataError, FusionBenchError
from fusion_bench.io.dataset import load_dataset
from fusion_bench.io.dataset_cache import Cache
from fusion_bench.io.dataset_config import expand_path, read_spec, would_match
from tests import counts_project, tiny
from tests.tiny import DATASET, edit
from tests.trials_project import FIRST, SECOND, make


def test_numbers_in_names_count_by_value_and_exact_names_are_no_patterns(tmp_path: Path) -> None:
    names = ["a-10.trec", "a-9.trec", "a-1.trec", "a-01.trec", "b-1.trec", ".a-2.trec"]
    for name in (*names, "a-1.trec.meta.json"):
        (tmp_path / name).touch()
    trials = [path.name for path in expand_path(tmp_path, "a-*")]
    assert trials == ["a-01.trec", "a-1.trec", "a-9.trec", "a-10.trec"]
    assert expand_path(tmp_path, "c.trec") == (tmp_path / "c.trec",)
    (tmp_path / "a[1].trec").touch()
    (tmp_path / "a1.trec").touch()
    assert expand_path(tmp_path, "a[1].trec") == (tmp_path / "a[1].trec",)
    assert expand_path(tmp_path, "a[12].trec") == (tmp_path / "a1.trec",)


def test_folders_of_trials_may_have_wildcards_too(tmp_path: Path) -> None:
    for name in ("trial-2", "trial-10", ".old"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.trec").touch()
    for pattern in ("trial-*/a.trec", "*/a.trec", f"../{tmp_path.name}/*/a.trec"):
        trials = expand_path(tmp_path, pattern)
        assert [path.parent.name for path in trials] == ["trial-2", "trial-10"]
    assert not would_match(tmp_path, "*/a.trec", tmp_path / ".old/a.trec")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("runs/a-7.trec", True),
        ("runs/a-7.trec.meta.json", False),
        ("runs/b-7.trec", False),
        ("a-7.trec", False),
        ("runs/old/a-7.trec", False),
        ("../runs/a-7.trec", False),
    ],
)
def test_a_file_that_would_be_a_trial_is_known(
    name: str, tmp_path: Path, *, expected: bool
) -> None:
    assert would_match(tmp_path, "runs/a-*", (tmp_path / name).resolve()) is expected
    assert not would_match(tmp_path, "runs/a-7.trec", tmp_path / "runs/a-7.trec")


def test_one_match_or_a_list_that_is_not_asked_for_has_no_trials(tmp_path: Path) -> None:
    dataset = load_dataset(make(tmp_path, FIRST))
    plain = load_dataset(tiny.make(tmp_path / "plain") / DATASET)
    assert dataset.repeats == (dataset,)
    assert (dataset.repeat_lists, dataset.fingerprint) == (frozenset(), plain.fingerprint)
    assert load_dataset(make(tmp_path, FIRST, SECOND), runs=["b"]).later_repeats == ()


def test_every_trial_is_part_of_the_files_and_of_the_fingerprint(tmp_path: Path) -> None:
    path = make(tmp_path, FIRST, SECOND)
    before = load_dataset(path)
    assert {"runs/a", "runs/a trial 2", "runs/b"} <= set(before.digests())
    (path.parent / "a-2.trec").write_text(FIRST, encoding="utf-8")
    after = load_dataset(path)
    assert after.fingerprint != before.fingerprint
    changed = {part for part, digest in before.digests().items() if after.digests()[part] != digest}
    assert changed == {"runs/a trial 2"}
    names = {file.name for file in read_spec(path)[0].file_paths(path.parent)}
    assert {"a-1.trec", "a-2.trec", "b.trec", "r.trec", "qrels.txt", "queries.jsonl"} == names


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("x-*.trec", "matches 'x-*.trec'"),
        ("**/a-*.trec", "'**/a-*.trec' is no"),
        ("/data/a-*.trec", "'/data/a-*.trec' is"),
        ("../other/a-*.trec", "'../other/a-1.trec' leaves"),
        ("a" * 5000 + "*", "dataset.yaml"),
    ],
)
def test_patterns_that_name_no_trials_are_refused(
    pattern: str, message: str, tmp_path: Path
) -> None:
    path = make(tmp_path, FIRST, pattern=pattern)
    (tmp_path / "datasets/other").mkdir()
    (tmp_path / "datasets/other/a-1.trec").write_text(FIRST, encoding="utf-8")
    with pytest.raises(FusionBenchError) as caught:
        load_dataset(path)
    assert isinstance(caught.value, (ConfigError, DataError))
    assert message in str(caught.value)


@pytest.mark.parametrize("use_cache", [False, True])
def test_each_list_has_its_own_number_of_trials(tmp_path: Path, *, use_cache: bool) -> None:
    path = counts_project.make(tmp_path)
    for _ in range(2):
        cache = Cache(tmp_path / "cache", max_bytes=10**8) if use_cache else False
        dataset = load_dataset(path, cache=cache)
        assert dataset.repeat_counts == {"runs/a": 3, "runs/b": 2}
        assert [dataset.count_repeats(lists) for lists in (["runs/a"], ["runs/c"], None)] == [
            3,
            1,
            2,
        ]
        files = [{key: f.path.name for key, f in each.files.items()} for each in dataset.repeats]
        assert files == [
            {"runs/a": "a-1.trec", "runs/b": "b-1.trec", "runs/c": "c-1.trec"},
            {"runs/a": "a-2.trec", "runs/b": "b-2.trec", "runs/c": "c-1.trec"},
            {"runs/a": "a-3.trec", "runs/b": "b-1.trec", "runs/c": "c-1.trec"},
        ]
        for trial, names in zip(dataset.repeats, files, strict=True):
            for name, run in trial.runs.items():
                number = int(names[f"runs/{name}"][2]) - 1
                ranks = [
                    [*ranked].index(f"r{q}") + 1 if f"r{q}" in ranked else 0
                    for q, ranked in enumerate(run.to_dict().values())
                ]
                assert tuple(ranks) == counts_project.RANKS[name][number]
        parts = {part for part in dataset.digests() if part.startswith("runs/")}
        later = {"runs/a trial 2", "runs/a trial 3", "runs/b trial 2"}
        assert parts == {"runs/a", "runs/b", "runs/c", *later}


def test_a_rerank_list_may_have_trials(tmp_path: Path) -> None:
    path = make(tmp_path, FIRST, SECOND)
    edit(tmp_path, DATASET, "path: r.trec", 'path: "r-*.trec"')
    for number in (1, 2):
        text = tiny.FILES["datasets/tiny/r.trec"].replace("0.9", f"0.9{number}")
        (path.parent / f"r-{number}.trec").write_text(text, encoding="utf-8")
    dataset = load_dataset(path)
    assert dataset.repeat_lists == {"runs/a", "rerank/r"}
    scores = [trial.rerankers["r"].to_dict()["q1"]["d1"] for trial in dataset.repeats]
    assert scores == [0.91, 0.92]


def test_a_switch_turns_every_trial_off(tmp_path: Path) -> None:
    path = make(tmp_path, FIRST, SECOND, options=", when: {type: local}")
    for trial in load_dataset(path).repeats:
        on = [query for query, ranked in trial.runs["a"].to_dict().items() if ranked]
        assert on == ["q1", "q4"]


def test_a_folder_is_no_trial(tmp_path: Path) -> None:
    path = make(tmp_path, FIRST)
    (path.parent / "a-2.trec").mkdir()
    for cache in (False, Cache(tmp_path / "cache", max_bytes=10**8)):
        with pytest.raises(DataError, match=r"a-2\.trec: a folder"):
            load_dataset(path, cache=cache)
