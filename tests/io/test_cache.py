"""What comes from the cache is what would have been read, and nothing damaged is believed."""

from __future__ import annotations

import os
import shutil
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.errors import DataError
from fusion_bench.io import Dataset, cache, load_dataset
from fusion_bench.io import file_stamps as seals
from fusion_bench.io._raw_table import Kind
from fusion_bench.io.array_file import open_stored, put
from fusion_bench.io.cache import FOLDER, Cache
from fusion_bench.io.parallel_read import read_together
from fusion_bench.util.atomic_files import open_atomic

YAML = """
name: made
qrels: qrels.txt
queries: queries.jsonl
runs:
  a: {path: a.trec, roles: [keyword]}
  b: {path: b.trec, rank_from: column}
rerank:
  c: {path: c.trec, score_space: logit}
"""


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small dataset that is cached all the same, and files that count as old at once."""
    monkeypatch.setattr(cache, "FLOOR", 0)
    monkeypatch.setattr(seals, "RACY", -(10**12))
    monkeypatch.delenv("FUSION_BENCH_CACHE", raising=False)
    rng = np.random.default_rng(5)
    for name in "abc":
        write_run(tmp_path / f"{name}.trec", rng)
    judged = (f"q{q} 0 d{d} {d % 3}\n" for q in range(9) for d in range(0, 40, 3))
    (tmp_path / "qrels.txt").write_text("".join(judged))
    (tmp_path / "queries.jsonl").write_text('{"id": "q1", "type": "local", "group": "g"}\n')
    (tmp_path / "dataset.yaml").write_text(YAML)
    return tmp_path / "dataset.yaml"


def write_run(path: Path, rng: np.random.Generator) -> None:
    with path.open("w") as file:
        for q in range(9):
            scores = sorted(rng.random(12).tolist(), reverse=True)
            for n, (d, score) in enumerate(zip(rng.permutation(40), scores, strict=False)):
                file.write(f"q{q} Q0 d{d} {n + 1} {score:.6f} t\n")


def load(path: Path, ties: str = "trec") -> tuple[Dataset, AlignedRuns]:
    dataset = load_dataset(path)
    return dataset, dataset.aligned(["b", "a"], ties=ties)  # type: ignore[arg-type]


def plain(path: Path, ties: str = "trec") -> tuple[Dataset, AlignedRuns]:
    dataset = load_dataset(path, cache=False)
    return dataset, dataset.aligned(["b", "a"], ties=ties)  # type: ignore[arg-type]


def same(one: object, two: object) -> None:
    for name, value in vars(one).items():
        if name in {"_memo", "_digest"}:
            continue
        other = vars(two)[name]
        if isinstance(value, np.ndarray):
            assert (value.dtype, value.shape) == (other.dtype, other.shape), name
            assert value.tobytes() == other.tobytes(), name
            assert not value.flags.writeable
            assert not other.flags.writeable
        elif name == "vocabulary":
            assert tuple(value) == tuple(other)
        else:
            assert value == other, name


def all_same(one: tuple[Dataset, AlignedRuns], two: tuple[Dataset, AlignedRuns]) -> None:
    same(one[1], two[1])
    same(one[0].qrels, two[0].qrels)
    assert one[0].runs.keys() == two[0].runs.keys()
    for name, run in one[0].runs.items():
        same(run, two[0].runs[name])
    same(one[0].rerankers["c"], two[0].rerankers["c"])
    assert one[0].digests() == two[0].digests()
    assert one[0].fingerprint == two[0].fingerprint


def entries(made: Path) -> list[Path]:
    return sorted((made.parent / FOLDER).glob("*.bin"))


def forbid_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(files: list[object]) -> object:
        assert not files, "a file was read"
        return iter(())

    monkeypatch.setattr("fusion_bench.io.cached_loader.read_together", refuse)
    monkeypatch.setattr(
        "fusion_bench.io.cached_loader.align", lambda *_, **__: pytest.fail("aligned")
    )


@pytest.mark.parametrize("ties", ["trec", "first_seen"])
def test_a_second_load_reads_no_file_and_changes_no_bit(
    ties: str, made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = plain(made, ties)
    assert not entries(made)
    all_same(load(made, ties), expected)
    assert len(entries(made)) == 5
    forbid_reading(monkeypatch)
    all_same(load(made, ties), expected)


def test_a_changed_file_is_read_again(made: Path) -> None:
    load(made)
    path = made.parent / "a.trec"
    text = path.read_text()
    times = path.stat()
    changed = text.replace("0.9", "1.9", 1)
    assert len(changed) == len(text)
    assert changed != text
    path.write_text(changed)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))  # neither size nor time betrays it
    all_same(load(made), plain(made))
    path.write_text(text)
    all_same(load(made), plain(made))


def test_options_of_reading_are_part_of_the_key(made: Path) -> None:
    load(made)
    made.write_text(YAML.replace("rank_from: column", "source_ties: file"))
    all_same(load(made), plain(made))
    made.write_text(
        YAML.replace("logit", "order").replace("qrels: ", "judgments: complete\nqrels: ")
    )
    all_same(load(made), plain(made))


def test_a_file_that_breaks_a_rule_is_never_stored(made: Path) -> None:
    path = made.parent / "b.trec"
    path.write_text(path.read_text() + "q1 Q0 d1 77 nan t\n")
    for _ in range(2):
        with pytest.raises(DataError, match=r"b\.trec:109: score nan is not a finite number"):
            load(made)
    path.unlink()
    with pytest.raises(DataError, match=r"b\.trec: no such file"):
        load(made)


@pytest.mark.parametrize("kind", ["flip", "cut", "grow", "empty", "header", "other"])
def test_a_damaged_entry_is_made_anew(kind: str, made: Path) -> None:
    load(made)
    load(made)
    rng = np.random.default_rng(1)
    kept = {path: path.read_bytes() for path in entries(made)}
    for path, data in kept.items():
        spoilt = bytearray(data)
        if kind == "flip":  # one bit, somewhere behind the header
            spoilt[int(rng.integers(len(data) // 2, len(data)))] ^= 16
        elif kind == "header":
            spoilt[int(rng.integers(0, 60))] ^= 1
        elif kind == "other":
            spoilt[:] = next(other for other in kept.values() if other != data)
        else:
            spoilt[:] = {"cut": data[:-8], "grow": data + b"\0", "empty": b""}[kind]
        times = path.stat()
        path.write_bytes(spoilt)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    all_same(load(made), plain(made))
    assert {path: path.read_bytes() for path in entries(made)} == kept


def test_every_byte_is_guarded(tmp_path: Path) -> None:
    path = tmp_path / "x.bin"
    put(path, "k", {"a": 1}, {"n": np.arange(3), "f": np.ones((2, 0)), "b": np.array([True])})
    data = path.read_bytes()
    stored = open_stored(path, "k")
    assert stored is not None
    assert stored.intact()
    assert stored.arrays["n"].tolist() == [0, 1, 2]
    assert open_stored(path, "other") is None
    padding = 0
    for at in range(len(data)):
        path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        found = open_stored(path, "k")
        if found is not None and found.intact():
            assert data[at] == 0, "only what lies between two arrays may differ"
            padding += 1
    assert padding < 2 * 64


def test_a_stored_type_that_is_none_of_ours_is_refused(tmp_path: Path) -> None:
    put(tmp_path / "x.bin", "k", {}, {"o": np.array(["text"])})
    assert open_stored(tmp_path / "x.bin", "k") is None


def test_another_version_is_not_believed(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load(made)
    before = [path.stat().st_ino for path in entries(made)]
    monkeypatch.setattr("fusion_bench.io.array_file.__version__", "0.0.0")
    all_same(load(made), plain(made))
    assert [path.stat().st_ino for path in entries(made)] != before


def test_a_seal_on_a_fresh_file_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, reads = tmp_path / "file", []

    def read(file: Path) -> str:
        reads.append(file)
        return file.read_text()

    path.write_text("one")
    known = seals.Seals(tmp_path / "seals")
    assert [known.value(path, read) for _ in range(2)] == ["one", "one"]
    assert len(reads) == 2  # the clock could not tell a second change from the first
    monkeypatch.setattr(seals, "RACY", -(10**12))
    assert [known.value(path, read) for _ in range(3)] == ["one"] * 3
    assert len(reads) == 3
    path.write_text("two")
    assert known.value(path, read) == "two"
    assert seals.Seals(tmp_path / "seals", always=True).value(path, read) == "two"
    assert len(reads) == 5


@pytest.mark.parametrize("content", [b"", b"[]", b"[1, 2]", b'[0, "[[1], \\"x\\"]"]', b"\xff"])
def test_a_damaged_seal_is_not_trusted(
    content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seals, "RACY", -(10**12))
    path = tmp_path / "file"
    path.write_text("one")
    known = seals.Seals(tmp_path / "seals")
    assert known.value(path, Path.read_text) == "one"
    (seal,) = known.folder.iterdir()
    seal.write_bytes(content)
    assert known.value(path, lambda _: "read again") == "read again"


def test_a_file_that_changes_while_it_is_read_is_not_stored(made: Path) -> None:
    def change(files: list[tuple[Path, Kind]]) -> object:
        rows = list(read_together(files))
        with (made.parent / "a.trec").open("a") as file:
            file.write("q1 Q0 late 99 0.0 t\n")
        return iter(rows)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fusion_bench.io.cached_loader.read_together", change)
        load(made)
    dataset, _ = load(made)
    assert "late" in dataset.runs["a"].vocabulary
    assert len(entries(made)) == 5  # four files and one alignment, none of them of the old file


def test_ids_that_cannot_be_packed_are_not_stored(made: Path) -> None:
    with (made.parent / "a.trec").open("a") as file:
        file.write(f"q1 Q0 {'x' * 65} 99 0.0 t\n")
    for _ in range(2):
        all_same(load(made), plain(made))
    assert len(entries(made)) == 3


def test_where_it_is_and_how_it_is_switched_off(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FUSION_BENCH_CACHE", "0")
    assert load(made)[0].cache is None
    monkeypatch.setenv("FUSION_BENCH_CACHE", str(tmp_path / "else" / "where"))
    load(made)
    assert len(list((tmp_path / "else" / "where").glob("*.bin"))) == 5
    assert not (made.parent / FOLDER).exists()
    monkeypatch.setenv("FUSION_BENCH_CACHE_VERIFY", "1")
    found = load(made)[0].cache
    assert found is not None
    assert found.seals.always
    monkeypatch.setattr(cache, "FLOOR", 1 << 20)
    assert load(made)[0].cache is None


def test_a_folder_that_cannot_be_written_to_is_no_error(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("FUSION_BENCH_CACHE", str(tmp_path / "file"))
    all_same(load(made), plain(made))


def test_git_is_told_to_ignore_it(made: Path) -> None:
    load(made)
    assert "*" in (made.parent / FOLDER / ".gitignore").read_text().splitlines()


def test_the_oldest_entries_make_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "MOST", 1500)
    kept = Cache(tmp_path)
    for n, key in enumerate("abcd"):
        kept.keep(key, {}, {"n": np.zeros(50)})
        os.utime(tmp_path / f"{key}.bin", ns=(n, n))
    assert sorted(path.stem for path in tmp_path.glob("*.bin")) == ["c", "d"]


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    with pytest.raises(TypeError), open_atomic(tmp_path / "x") as file:
        file.writelines([b"half", "and a thing that is no bytes"])  # type: ignore[list-item]
    assert not list(tmp_path.iterdir())


def _digest(path: Path) -> str:
    cache.FLOOR = 0
    dataset, runs = load(path)
    return f"{dataset.fingerprint} {runs.scores.tobytes().hex()}"


def test_two_processes_may_fill_it_at_once(made: Path) -> None:
    with ProcessPoolExecutor(2) as pool:
        found = set(pool.map(_digest, [made] * 6))
    shutil.rmtree(made.parent / FOLDER)
    assert found == {_digest(made)}


def test_a_file_that_is_gone_has_no_key(tmp_path: Path) -> None:
    assert Cache(tmp_path).key_of_file(tmp_path / "gone", "run", None, None) is None
