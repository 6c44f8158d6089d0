"""The dataset cache: the same bits, and nothing damaged is believed."""

import gzip
import os
import shutil
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.errors import ConfigError, DataError
from fusion_bench.io import dataset_cache, load_records
from fusion_bench.io.dataset import Dataset, load_dataset
from fusion_bench.io.dataset_cache import (
    FOLDER,
    Cache,
    FileStamps,
    check_arrays,
    open_arrays,
    open_cache,
    write_arrays,
)
from fusion_bench.io.load_records import FileRequest
from fusion_bench.io.raw_files import FileLayout, RawTable

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
def made(tmp_path: Path) -> Path:
    """A small dataset, which is cached all the same: see ``cache_of``."""
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


def cache_of(path: Path, max_bytes: int = 10**9) -> Cache:
    """A cache to which files are old at once."""
    folder = path.parent / FOLDER
    return Cache(folder, max_bytes=max_bytes, stamps=FileStamps(folder, min_age=-(10**12)))


def load(path: Path, ties: str = "trec", cache: Cache | None = None) -> tuple[Dataset, AlignedRuns]:
    dataset = load_dataset(path, cache=cache or cache_of(path))
    return dataset, dataset.aligned(["b", "a"], ties=ties)  # type: ignore[arg-type]


def plain(path: Path, ties: str = "trec") -> tuple[Dataset, AlignedRuns]:
    dataset = load_dataset(path, cache=False)
    return dataset, dataset.aligned(["b", "a"], ties=ties)  # type: ignore[arg-type]


def same(one: object, two: object) -> None:
    for name, value in vars(one).items():
        if name in {"cache", "_digest", "find_parents"}:
            continue
        other = vars(two)[name]
        if isinstance(value, np.ndarray):
            assert (value.dtype, value.shape) == (other.dtype, other.shape), name
            assert value.tobytes() == other.tobytes(), name
            assert not value.flags.writeable
            assert not other.flags.writeable
        elif name == "vocabulary":
            assert tuple(value) == tuple(other)
        elif name == "qrels":
            same(value, other)
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
    folders = (made.parent / FOLDER).glob("[!.]*/")
    return sorted(folder for folder in folders if folder.is_dir())


def forbid_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FileRequest, "read_rows", lambda _: pytest.fail("a file was read"))
    monkeypatch.setattr(load_records, "align", lambda *_, **__: pytest.fail("aligned"))


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


def test_changed_files_and_other_options_are_read_again(made: Path) -> None:
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
        with pytest.raises(DataError, match=r"b\.trec:109: score nan"):
            load(made)
    path.unlink()
    with pytest.raises(DataError, match=r"b\.trec: no such"):
        load(made)


@pytest.mark.parametrize("kind", ["flip", "cut", "empty", "contents", "other", "gone"])
def test_a_damaged_entry_is_made_anew(kind: str, made: Path) -> None:
    load(made)
    load(made)
    rng = np.random.default_rng(1)
    kept = {path: path.read_bytes() for entry in entries(made) for path in entry.iterdir()}
    for path, data in kept.items():
        if (path.suffix == ".json") is not (kind == "contents"):
            continue
        spoilt = bytearray(data)
        if kind == "flip":  # one bit, somewhere behind the header
            spoilt[int(rng.integers(min(128, len(data) - 1), len(data)))] ^= 16
        elif kind == "contents":
            spoilt[int(rng.integers(0, 60))] ^= 1
        elif kind == "other":
            spoilt[:] = next(other for other in kept.values() if other != data)
        else:
            spoilt[:] = {"cut": data[:-8], "empty": b"", "gone": b""}[kind]
        times = path.stat()
        path.write_bytes(spoilt)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        if kind == "gone":
            path.unlink()
    all_same(load(made), plain(made))
    again = {path: path.read_bytes() for entry in entries(made) for path in entry.iterdir()}
    assert again == kept


def test_another_version_is_not_believed(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load(made)
    before = [path.stat().st_ino for path in entries(made)]
    monkeypatch.setattr("fusion_bench.io.dataset_cache.__version__", "0.0.0")
    all_same(load(made), plain(made))
    assert [path.stat().st_ino for path in entries(made)] != before


def test_a_file_that_changes_while_it_is_read_is_not_stored(made: Path) -> None:
    read = FileRequest.read_rows

    def change(file: FileRequest) -> RawTable:
        rows = read(file)
        if file.name == "a":
            with file.path.open("a") as opened:
                opened.write("q1 Q0 late 99 0.0 t\n")
        return rows

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FileRequest, "read_rows", change)
        load(made)
    dataset, _ = load(made)
    assert "late" in dataset.runs["a"].vocabulary
    assert len(entries(made)) == 5  # four files and one alignment, none of them of the old file


def test_ids_of_any_length_are_stored(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (made.parent / "a.trec").open("a") as file:
        file.write(f"q1 Q0 https://example.org/{'x' * 650} 99 0.0 t\n")
    expected = plain(made)
    all_same(load(made), expected)
    forbid_reading(monkeypatch)
    all_same(load(made), expected)


def test_where_it_is_and_how_it_is_switched_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    large, small = tmp_path / "large.trec", tmp_path / "small.trec"
    large.write_bytes(b"x" * (1 << 21))
    small.write_bytes(b"x")
    monkeypatch.setenv("FUSION_BENCH_CACHE", "0")
    assert open_cache(tmp_path, [large]) is None
    monkeypatch.setenv("FUSION_BENCH_CACHE", "")
    assert open_cache(tmp_path, [small]) is None
    beside = open_cache(tmp_path, [large])
    assert beside is not None
    assert (beside.folder, beside.max_bytes) == (tmp_path / FOLDER, 3 << 21)
    monkeypatch.setenv("FUSION_BENCH_CACHE", str(tmp_path / "else" / "where"))
    monkeypatch.setenv("FUSION_BENCH_CACHE_VERIFY", "1")
    monkeypatch.setenv("FUSION_BENCH_CACHE_GB", "0.001")
    elsewhere = open_cache(tmp_path, [large])
    assert elsewhere is not None
    assert elsewhere.stamps.verify
    assert (elsewhere.folder, elsewhere.max_bytes) == (tmp_path / "else" / "where", 10**6)
    monkeypatch.setenv("FUSION_BENCH_CACHE_GB", "2")  # more than three times the text
    roomy = open_cache(tmp_path, [large])
    assert roomy is not None
    assert roomy.max_bytes == 2 * 10**9
    monkeypatch.setenv("FUSION_BENCH_CACHE_GB", "much")
    with pytest.raises(ConfigError, match=r"FUSION_BENCH_CACHE_GB:.*'much'.*0"):
        open_cache(tmp_path, [large])


def test_a_zipped_file_counts_by_its_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FUSION_BENCH_CACHE")
    path = tmp_path / "a.trec.gz"
    path.write_bytes(gzip.compress(b"x" * (1 << 21)))
    cache = open_cache(tmp_path, [path])
    assert cache is not None
    assert cache.max_bytes == 3 << 21


def test_a_folder_that_cannot_be_written_to_is_no_error(made: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    all_same(load(made, cache=Cache(tmp_path / "file", max_bytes=10**9)), plain(made))


def test_what_is_kept_beside_the_files(made: Path, tmp_path: Path) -> None:
    load(made)
    assert "*" in (made.parent / FOLDER / ".gitignore").read_text().splitlines()
    assert Cache(tmp_path, max_bytes=1).file_key(tmp_path / "gone", "run", None, None) is None


def test_the_oldest_entries_make_room(tmp_path: Path) -> None:
    cache = Cache(tmp_path, max_bytes=1700)
    for n, key in enumerate("abcd"):
        cache.store(key, {}, {"n": np.zeros(50)}, needed=["b"])
        os.utime(tmp_path / key, ns=(n, n))
    assert sorted(path.name for path in tmp_path.glob("[!.]*")) == ["b", "d"]


def test_by_default_what_is_used_together_fits(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dataset_cache, "DEFAULT_BYTES", 5000)
    cache = Cache(tmp_path, max_bytes=1000, fits_data=True)
    cache.store("old", {}, {"n": np.zeros(10)})
    cache.store("a", {}, {"n": np.zeros(500)})
    assert not (tmp_path / "old").exists()
    assert not caplog.records
    for _ in range(2):
        cache.store("b", {}, {"n": np.zeros(500)}, needed=["a"])
    assert {path.name for path in tmp_path.glob("[!.]*") if path.is_dir()} == {"a", "b"}
    (record,) = caplog.records
    assert "FUSION_BENCH_CACHE_GB=1" in record.getMessage()


def test_by_default_half_of_the_free_disk_is_left(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(tmp_path)._replace(free=6000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    Cache(tmp_path, max_bytes=1000, fits_data=True).store("a", {}, {"n": np.zeros(500)})
    assert not (tmp_path / "a").exists()
    assert "half of" in caplog.text


def test_however_many_sets_are_aligned_it_keeps_within_its_limit(made: Path) -> None:
    cache = cache_of(made, max_bytes=60_000)
    for runs in (["a"], ["b"], ["a", "b"], ["b", "a"]):
        dataset = load_dataset(made, cache=cache)
        dataset.aligned(runs)
        assert sum(path.stat().st_size for path in cache.folder.rglob("*.npy")) <= 60_000
        assert len(entries(made)) >= 5


def _digest(path: Path) -> str:
    dataset, runs = load(path)
    return f"{dataset.fingerprint} {runs.scores.tobytes().hex()}"


def test_two_processes_may_fill_it_at_once(made: Path) -> None:
    with ProcessPoolExecutor(2) as pool:
        found = set(pool.map(_digest, [made] * 6))
    shutil.rmtree(made.parent / FOLDER)
    assert found == {_digest(made)}


def test_the_layout_is_part_of_the_key(tmp_path: Path) -> None:
    path, cache = tmp_path / "a.csv", Cache(tmp_path / "cache", max_bytes=1)
    path.write_text("query,doc,a,b\nq,d,1,2\n")
    layouts = [
        FileLayout(),
        FileLayout("csv"),
        FileLayout(columns={"grade": "a"}),
        FileLayout(columns={"grade": "b"}),
        FileLayout("csv", {"grade": "b"}),
    ]
    keys = {cache.file_key(path, "qrels", None, None, layout) for layout in layouts}
    assert len(keys) == len(layouts)


def test_a_table_read_by_other_columns_is_not_taken_from_the_cache(made: Path) -> None:
    (made.parent / "qrels.csv").write_text("query,document,a,b\nq1,d1,1,2\nq1,d2,3,0\n")
    for column in ("a", "b", "a"):
        spec = f"qrels: {{path: qrels.csv, columns: {{grade: {column}}}}}"
        made.write_text(YAML.replace("qrels: qrels.txt", spec))
        grades = load(made)[0].qrels.to_dict()
        assert grades == {"q1": {"d1": 1, "d2": 3} if column == "a" else {"d1": 2, "d2": 0}}


def test_a_folder_is_read_again_when_one_of_its_files_changes(made: Path) -> None:
    folder = made.parent / "answers"
    folder.mkdir()
    (folder / "q1.json").write_text('{"d1": 1, "d2": 2}')
    made.write_text(YAML.replace("path: a.trec, roles", "path: answers, roles"))
    for score in (1, 3):
        (folder / "q2.json").write_text(f'{{"d1": {score}}}')
        assert load(made)[0].runs["a"].to_dict()["q2"] == {"d1": score}
        assert load(made)[0].runs["a"].to_dict()["q2"] == {"d1": score}
    assert open_cache(made.parent, [folder]) is None  # it is small


def test_every_byte_is_guarded(tmp_path: Path) -> None:
    folder = tmp_path / "x"
    write_arrays(folder, "k", {"a": 1}, {"n": np.arange(3), "f": np.ones((2, 0))})
    stored = open_arrays(folder, "k")
    check_arrays(folder, "k")
    assert stored.arrays["n"].tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="key is 'k'"):
        open_arrays(folder, "other")
    for path in (folder / "n.npy", folder / "contents.json"):
        data = path.read_bytes()
        for at in range(len(data)):
            path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
            with pytest.raises((ValueError, TypeError, KeyError)):
                check_arrays(folder, "k")
        path.write_bytes(data)


def test_a_stamp_on_a_fresh_file_is_not_kept(tmp_path: Path) -> None:
    path, reads = tmp_path / "file", []

    def read(file: Path) -> str:
        reads.append(file)
        return file.read_text()

    path.write_text("one")
    known = FileStamps(tmp_path / "stamps")
    assert [known.lookup(path, read) for _ in range(2)] == ["one", "one"]
    assert len(reads) == 2  # the clock could not tell a second change from the first
    known = FileStamps(tmp_path / "stamps", min_age=-(10**12))
    assert [known.lookup(path, read) for _ in range(3)] == ["one"] * 3
    assert len(reads) == 3
    path.write_text("two")
    assert known.lookup(path, read) == "two"
    assert FileStamps(tmp_path / "stamps", verify=True).lookup(path, read) == "two"
    assert len(reads) == 5


@pytest.mark.parametrize("content", [b"", b"[]", b"[1, 2]", b'[0, "[[1], \\"x\\"]"]', b"\xff"])
def test_a_damaged_stamp_is_not_trusted(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("one")
    known = FileStamps(tmp_path / "stamps", min_age=-(10**12))
    assert known.lookup(path, Path.read_text) == "one"
    (stamp,) = known.folder.iterdir()
    stamp.write_bytes(content)
    assert known.lookup(path, lambda _: "read again") == "read again"
