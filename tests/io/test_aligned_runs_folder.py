"""A saved alignment comes back as it was, or not at all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.alignment import align
from fusion_bench.data.records import Qrels, Query, Run
from fusion_bench.errors import DataError, FusionBenchError
from fusion_bench.io.aligned_runs_folder import KEY, load_aligned_runs, save_aligned_runs
from fusion_bench.io.array_folder import write_arrays


def example(*, long: bool = False, reranked: bool = True) -> AlignedRuns:
    name = "d" * 100 if long else "d"
    lists = {q: {f"{name}{i}": 9.5 - i for i in range(3 + len(q))} for q in ("q1", "qé", "q3")}
    runs = [
        Run.from_dict("bm25", lists, roles=frozenset({"keyword", "question"})),
        Run.from_dict("dense", {"q1": {f"{name}1": 2.0, f"{name}7": -1.0}}),
    ]
    rerankers = [Run.from_dict("ce", {"q1": {f"{name}1": 0.5}})] if reranked else []
    queries = {"q1": Query("q1", type="local", confidence=0.9, group="g")}
    qrels = Qrels.from_dict({"q1": {f"{name}1": 2}, "qé": {f"{name}0": 0}, "none": {"x": 1}})
    return align(qrels, runs, rerankers=rerankers, queries=queries)


def assert_same(one: AlignedRuns, other: AlignedRuns) -> None:
    for field in fields(one):
        mine, yours = getattr(one, field.name), getattr(other, field.name)
        if not field.init:
            continue
        if isinstance(mine, np.ndarray):
            assert (mine.dtype, mine.shape) == (yours.dtype, yours.shape)
            assert mine.tobytes() == yours.tobytes()
            assert not yours.flags.writeable
        else:
            assert type(mine) is type(yours)
            assert mine == yours


@pytest.mark.parametrize("long", [True, False])
@pytest.mark.parametrize("reranked", [True, False])
def test_it_comes_back(tmp_path: Path, *, long: bool, reranked: bool) -> None:
    runs = example(long=long, reranked=reranked)
    path = save_aligned_runs(runs, tmp_path / "made" / "here")
    assert_same(runs, load_aligned_runs(path))
    assert_same(runs, load_aligned_runs(path, verify=False))
    assert [folder.name for folder in path.parent.iterdir()] == ["here"]


def test_a_view_replaces_what_was_saved_and_its_readers_keep_theirs(tmp_path: Path) -> None:
    runs = example()
    before = load_aligned_runs(save_aligned_runs(runs, tmp_path / "a"))
    view = runs.restrict(["dense"])
    save_aligned_runs(view, tmp_path / "a")
    assert_same(runs, before)
    assert_same(view, load_aligned_runs(tmp_path / "a"))
    assert not np.isnan(load_aligned_runs(tmp_path / "a").scores).any()


def cut(path: Path) -> None:
    file = path / "scores.npy"
    file.write_bytes(file.read_bytes()[:-3])


def flip(path: Path) -> None:
    file = path / "scores.npy"
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(bytes(data))


def flip_a_name(path: Path) -> None:
    contents = path / "contents.json"
    contents.write_bytes(contents.read_bytes().replace(b"bm25", b"bm24"))


def empty(path: Path) -> None:
    (path / "contents.json").write_bytes(b"")


def older(path: Path) -> None:
    write_arrays(path, "aligned runs 2", {}, {})


def another(path: Path) -> None:
    write_arrays(path, KEY, {}, {"ranks": np.arange(3)})


def not_ours(path: Path) -> None:
    (path / "contents.json").write_text("[1, 2]" * 10)


@pytest.mark.parametrize("change", [cut, flip, flip_a_name, empty, older, another, not_ours])
def test_what_was_changed_is_refused(tmp_path: Path, change: Callable[[Path], None]) -> None:
    path = save_aligned_runs(example(), tmp_path / "a")
    change(path)
    with pytest.raises(DataError, match=r"a: not a saved alignment .* make it again$"):
        load_aligned_runs(path)


def test_the_version_is_looked_at_before_any_array(tmp_path: Path) -> None:
    path = save_aligned_runs(example(), tmp_path / "a")
    older(path)
    with pytest.raises(DataError, match="key is 'aligned runs 2', and 'aligned runs 3' is needed"):
        load_aligned_runs(path, verify=False)


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="No such file"):
        load_aligned_runs(tmp_path / "a")


def test_what_is_not_a_saved_alignment_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("precious")
    for there in (tmp_path, tmp_path / "mine.txt"):
        with pytest.raises(FusionBenchError, match="holds no saved alignment"):
            save_aligned_runs(example(), there)
    with pytest.raises(FusionBenchError, match="cannot be written"):
        save_aligned_runs(example(), tmp_path / "mine.txt" / "a")
    assert (tmp_path / "mine.txt").read_text() == "precious"
