"""Scores cut to lists, and a run as one more line in a ``dataset.yaml``: what stood there stays."""

from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from fusion_bench.errors import ConfigError, DataError, FusionBenchError, MissingExtraError
from fusion_bench.models.retrieval import (
    RunTarget,
    SearchTexts,
    check_target,
    import_extra,
    rank_documents,
    read_texts,
    write_rankings,
)
from fusion_bench.models.retrievers.lexical import stem_texts
from tests.models.retrieve.collection import YAML, make


def test_stems_and_missing_libraries() -> None:
    with pytest.raises(MissingExtraError, match=r"rank-fusion-bench\[retrieve\]"):
        import_extra("no_such_library_anywhere", purpose="a test")
    stemmed = stem_texts(["The actors DUMPED credentials", "", "of the"])
    assert stemmed == [["actor", "dump", "credenti"], [], []]


def test_equal_scores_bounds_and_minus_zero_in_a_ranking() -> None:
    scores = np.array([0.12344, 0.12336, 0.5, 0.1234])
    assert rank_documents(["b", "a", "d", "c"], scores, depth=3, decimals=4) == [
        ("d", 0.5),
        ("c", 0.1234),
        ("b", 0.1234),
    ]
    scores = np.array([0.0, 0.2, 0.00001, -1.0])
    assert rank_documents(["a", "b", "c", "d"], scores, depth=9, decimals=3, above=0.0) == [
        ("b", 0.2)
    ]
    assert len(rank_documents(["a", "b", "c", "d"], scores, depth=9, decimals=3)) == 4
    [(_, score)] = rank_documents(["a"], np.array([-1e-9]), depth=1)
    assert str(score) == "0.0"


@pytest.mark.parametrize("bad", [[1.0], [1.0, float("nan")], [float("inf"), 0.0]])
def test_scores_that_are_no_ranking_are_refused(bad: list[float]) -> None:
    with pytest.raises(DataError):
        rank_documents(["a", "b"], np.array(bad), depth=2)


@given(st.lists(st.integers(-20, 20), min_size=1, max_size=30), st.integers(1, 40))
def test_a_list_is_the_sorted_scores_cut_at_the_depth(tenths: list[int], depth: int) -> None:
    ids = [f"d{i}" for i in range(len(tenths))]
    rows = sorted(zip((t / 10 for t in tenths), ids, strict=True), reverse=True)[:depth]
    assert rank_documents(ids, np.array(tenths) / 10, depth=depth) == [
        (name, s) for s, name in rows
    ]


LINE = "new: {path: runs/new.trec.gz, roles: [keyword]}"
TAIL = "judgments: sparse\n"


def target(path: Path, name: str = "new", *, replace: bool = False) -> RunTarget:
    return RunTarget(path, name, ("keyword",), replace=replace)


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        ("", f"{YAML}{TAIL}runs:\n  {LINE}\n"),
        ("runs:\n", f"{YAML}runs:\n  {LINE}\n{TAIL}"),
        (
            "runs:  # those of last year\n    a: {path: a.trec}   # x\n\n# after\n",
            f"{YAML}runs:  # those of last year\n    a: {{path: a.trec}}   # x\n    {LINE}\n\n"
            f"# after\n{TAIL}",
        ),
        (
            "runs:\n  a:\n    path: a.trec\n    roles:\n      - keyword\n",
            f"{YAML}runs:\n  a:\n    path: a.trec\n    roles:\n      - keyword\n  {LINE}\n{TAIL}",
        ),
    ],
)
def test_a_line_is_added(runs: str, expected: str, tmp_path: Path) -> None:
    path = make(tmp_path)
    path.write_text(YAML + runs + TAIL, encoding="utf-8")
    assert write_rankings(target(path), {"q1": [("d1", 2.0), ("d2", 1.5)], "q2": []})
    assert path.read_text(encoding="utf-8") == expected
    entry = yaml.safe_load(expected)["runs"]["new"]
    assert (path.parent / entry["path"]).is_file()


def test_line_endings_and_a_missing_one_are_kept(tmp_path: Path) -> None:
    path = make(tmp_path)
    text = f"{YAML}runs:\n  a: {{path: a.trec}}".replace("\n", "\r\n")
    path.write_bytes(text.encode())
    write_rankings(target(path), {})
    assert path.read_bytes().decode() == f"{text}\r\n  {LINE}\r\n"


def test_the_line_of_a_run_that_is_replaced_stays(tmp_path: Path) -> None:
    path = make(tmp_path)
    text = f"{YAML}runs:\n  new: {{path: runs/new.trec.gz, roles: [semantic, mine]}}\n"
    path.write_text(text, encoding="utf-8")
    texts = read_texts(path)
    write_rankings(target(path), {"q1": [("d1", 1.0)]})
    before = (path.parent / "runs/new.trec.gz").read_bytes()
    with pytest.raises(ConfigError, match=r"--replace .* --name"):
        check_target(target(path), texts)
    again = target(path, replace=True)
    check_target(again, texts)
    write_rankings(again, {"q1": [("d2", 1.0)]})
    assert path.read_text(encoding="utf-8") == text
    assert (path.parent / "runs/new.trec.gz").read_bytes() != before


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        ("runs: {a: {path: a.trec}}\n", r"dataset\.yaml:6: runs: no place for one more line"),
        ("runs:\n  new: {path: other.trec}\n", r"yaml:7: runs\.new: another file, 'other\.trec'"),
        ("runs: 3\n", "mapping"),
        ("runs:\n  a: {paths: a.trec}\n", "unknown key 'paths'"),
    ],
)
def test_what_has_no_place_is_refused_before_the_work(
    runs: str, message: str, tmp_path: Path
) -> None:
    path = make(tmp_path)
    texts = read_texts(path)
    path.write_text(YAML + runs, encoding="utf-8")
    with pytest.raises(ConfigError, match=message):
        check_target(target(path), texts)
    assert path.read_text(encoding="utf-8") == YAML + runs


def test_ids_that_the_format_cannot_hold(tmp_path: Path) -> None:
    path = make(tmp_path)
    texts = SearchTexts({"a b": "x"}, {"q": "x"}, path)
    with pytest.raises(DataError, match="document 'a b' has blanks"):
        check_target(target(path), texts)
    with pytest.raises(DataError, match="query 'q 1' has blanks"):
        check_target(target(path), SearchTexts({"d": "x"}, {"q 1": "x"}, path))
    out = path.parent / "runs/new.jsonl"
    check_target(RunTarget(path, "new", (), out), texts)


def test_a_file_outside_the_dataset_is_not_named_by_it(tmp_path: Path) -> None:
    path = make(tmp_path)
    outside = RunTarget(path, "new", (), tmp_path / "new.trec")
    assert not write_rankings(outside, {"q1": [("d1", 1.0)]})
    assert outside.entry == {"path": "new.trec", "roles": []}
    assert path.read_text(encoding="utf-8") == YAML


@pytest.mark.parametrize("name", ["../x", "a/b", "a: b", "a b", "a,b", "{a}"])
def test_names_that_no_run_has(name: str, tmp_path: Path) -> None:
    path = make(tmp_path)
    with pytest.raises(ConfigError, match="letters, digits and"):
        check_target(target(path, name), read_texts(path))
    check_target(target(path, "bm25+日本.v2_x"), read_texts(path))


@pytest.mark.parametrize("out", ["qrels.txt", "queries.jsonl", "runs/../documents.jsonl", "a.trec"])
def test_no_input_is_overwritten(out: str, tmp_path: Path) -> None:
    path = make(tmp_path)
    path.write_text(f"{YAML}runs:\n  a: {{path: a.trec}}\n", encoding="utf-8")
    texts = read_texts(path)
    aimed = RunTarget(path, "new", (), path.parent / out, replace=True)
    with pytest.raises(ConfigError, match="or an input"):
        check_target(aimed, texts)
    check_target(RunTarget(path, "a", (), path.parent / "a.trec", replace=True), texts)


@pytest.mark.parametrize("out", ["new.docx", "", "qrels.txt/new.trec"])
def test_places_that_are_none(out: str, tmp_path: Path) -> None:
    path = make(tmp_path)
    texts = read_texts(path)
    with pytest.raises(FusionBenchError):
        check_target(RunTarget(path, "new", (), path.parent / out), texts)
    with pytest.raises(ConfigError, match=r"no place .* --out"):
        check_target(RunTarget(None, "new", ()), texts)


@pytest.mark.parametrize("replace", [False, True])
def test_a_new_run_that_the_dataset_cannot_name_is_removed_again(
    replace: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make(tmp_path)
    run = path.parent / "runs/new.trec.gz"
    if replace:
        run.parent.mkdir()
        run.write_bytes(b"earlier")

    def refuse(path: Path, _: bytes) -> Path:
        raise FusionBenchError(f"{path}: the disk is full")

    monkeypatch.setattr("fusion_bench.models.retrieval.write_atomic", refuse)
    with pytest.raises(FusionBenchError, match="is full"):
        write_rankings(target(path, replace=replace), {"q1": [("d1", 1.0)]})
    assert run.exists() == replace
