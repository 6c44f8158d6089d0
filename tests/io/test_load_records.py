"""Files that are read: their format, bytes, what reads them."""

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from fusion_bench.data.grouped_rows import CategoricalIds
from fusion_bench.data.read_options import ReadOptions
from fusion_bench.data.records import ScoreSpace
from fusion_bench.errors import ConfigError, DataError, UnknownNameError
from fusion_bench.io.arrow_text import encode_documents, is_regular, parse_regular_text
from fusion_bench.io.dataset_cache import Cache
from fusion_bench.io.formats import find_distribution
from fusion_bench.io.formats.text_tables import COLUMNS
from fusion_bench.io.load_records import load_qrels, load_run
from fusion_bench.io.raw_files import MOST_RATIO, read_bytes
from tests.config.plugin_package import DISTRIBUTION, install_package, put_on_path

ROWS = [("q1", "d1", 1, 0.5), ("q1", "d2", 2, 0.25), ("q2", "ü", 1, 0.75)]


def as_trec(rows: list[tuple[str, str, int, float]]) -> str:
    return "".join(f"{q} Q0 {d} {r} {s} t\n" for q, d, r, s in rows)


def as_json(rows: list[tuple[str, str, int, float]]) -> str:
    return "".join(
        json.dumps({"query": q, "document": d, "rank": r, "score": s}) + "\n" for q, d, r, s in rows
    )


def as_csv(rows: list[tuple[str, str, int, float]]) -> str:
    lines = (f"{q},{d},{s}\n" for q, d, _, s in rows)
    return "query,document,score\n" + "".join(lines)


def digest(path: Path, data: bytes) -> str:
    path.write_bytes(data)
    return load_run(path).digest()


def test_a_digest_is_of_the_content_and_not_of_the_file(tmp_path: Path) -> None:
    first = digest(tmp_path / "a.trec", as_trec(ROWS).encode())
    assert digest(tmp_path / "b.trec.gz", gzip.compress(as_trec(ROWS).encode())) == first
    assert digest(tmp_path / "c.trec", as_trec(ROWS[::-1]).encode()) == first
    assert digest(tmp_path / "d.jsonl", as_json(ROWS[1:] + ROWS[:1]).encode()) == first
    assert digest(tmp_path / "e.csv", as_csv(ROWS).encode()) == first


@pytest.mark.parametrize(
    "other",
    [
        [("q1", "d1", 1, 0.5000001), *ROWS[1:]],
        [("q1", "d3", 1, 0.5), *ROWS[1:]],
        [("q3", "d1", 1, 0.5), *ROWS[1:]],
        ROWS[1:],
        [*ROWS, ("q2", "d9", 2, 0.1)],
    ],
)
def test_a_digest_tells_any_change(
    other: list[tuple[str, str, int, float]], tmp_path: Path
) -> None:
    first = digest(tmp_path / "a.trec", as_trec(ROWS).encode())
    assert digest(tmp_path / "b.trec", as_trec(other).encode()) != first


def test_a_digest_of_qrels_tells_one_grade(tmp_path: Path) -> None:
    path = tmp_path / "q.txt"
    digests = set()
    for content in ("q1 0 a 1\nq2 0 b 0\n", "q2 0 b 0\nq1 0 a 1\n", "q1 0 a 1\nq2 0 b 1\n"):
        path.write_text(content, encoding="utf-8")
        digests.add(load_qrels(path).digest())
    assert len(digests) == 2


@pytest.mark.parametrize(
    ("space", "score", "fits"),
    [
        ("unit", 0.0, True),
        ("unit", 1.0, True),
        ("unit", 1.2, False),
        ("unit", -0.1, False),
        ("log_prob", 0.0, True),
        ("log_prob", -3.0, True),
        ("log_prob", 0.5, False),
        ("logit", 5.0, True),
        ("unbounded", -7.0, True),
        ("order", 99.0, True),
    ],
)
def test_a_rerank_score_stays_in_its_space(
    space: ScoreSpace, score: float, fits: bool, tmp_path: Path
) -> None:
    path = tmp_path / "r.trec"
    path.write_text(f"q1 Q0 d1 1 0 t\n\nq1 Q0 d2 2 {score} t\n", encoding="utf-8")
    if fits:
        assert load_run(path, score_space=space).to_dict()["q1"]["d2"] == score
        return
    with pytest.raises(DataError, match=rf"r\.trec:3: rerank score {score:g} is outside .*{space}"):
        load_run(path, score_space=space)


def test_a_space_is_not_checked_where_none_is_declared(tmp_path: Path) -> None:
    path = tmp_path / "r.trec"
    path.write_text("q1 Q0 d1 1 7 t\n", encoding="utf-8")
    assert load_run(path).to_dict() == {"q1": {"d1": 7.0}}


@pytest.fixture
def packed(tmp_path: Path) -> Path:
    path = tmp_path / "a.trec.gz"
    path.write_bytes(gzip.compress(bytes(100_000)))  # 133 bytes
    return path


def test_a_file_that_unpacks_to_too_much_is_refused(packed: Path) -> None:
    assert packed.stat().st_size * MOST_RATIO < 100_000
    with pytest.raises(DataError, match=rf"99,999 bytes, .*{MOST_RATIO}"):
        read_bytes(packed, most_unpacked=99_999)
    assert read_bytes(packed, most_unpacked=100_000) == bytes(100_000)


def test_packed_files_may_have_parts_and_many_times_their_size(tmp_path: Path) -> None:
    text = "".join(f"q{n} Q0 d{n} 1 0.5 tag\n" for n in range(1_000)).encode()
    path = tmp_path / "a.trec.gz"
    path.write_bytes(gzip.compress(text))
    assert read_bytes(path, most_unpacked=1) == text
    path.write_bytes(gzip.compress(b"a") + gzip.compress(b"b"))
    assert read_bytes(path) == b"ab"


@pytest.mark.parametrize("piece", [b"\t", b"  ", b" \n", b"\n ", b"\n\n", b"\x1f", b"\r", b"\0"])
def test_irregular_bytes_are_found_wherever_they_stand(piece: bytes) -> None:
    line = b"q1 Q0 d1 1 0.5 t\n"
    assert is_regular(line * 9000)
    for before in (1, 4500, 7709, 7710, 7711, 8999):
        for cut in range(17):
            data = line * before + line[:cut] + piece + line[cut:] + line * (9000 - before)
            assert not is_regular(data) or data.replace(piece, b"") == data


def test_ids_of_files_read_together_share_a_vocabulary(tmp_path: Path) -> None:
    (tmp_path / "a.trec").write_text("q1 Q0 b 1 0.5 t\nq1 Q0 é 2 0.25 t\n")
    (tmp_path / "b.trec").write_text("q1 Q0 a 1 0.5 t\nq2 Q0 é 2 0.25 t\n")
    tables = [
        parse_regular_text(path.read_bytes(), COLUMNS["run"], "score")
        for path in sorted(tmp_path.iterdir())
    ]
    columns = [rows.documents for rows in encode_documents([rows for rows in tables if rows])]
    assert all(isinstance(column, CategoricalIds) for column in columns)
    first, second = (column for column in columns if isinstance(column, CategoricalIds))
    assert first.vocabulary is second.vocabulary
    assert tuple(first.vocabulary) == ("a", "b", "é")
    assert (first.codes.tolist(), second.codes.tolist()) == ([1, 2], [0, 2])


@pytest.mark.slow
def test_a_large_file_is_read_by_pyarrow_and_a_line_is_named_all_the_same(tmp_path: Path) -> None:
    lines = [f"q{n // 100} Q0 https://example.org/{n} {n} {-n} t" for n in range(30_000)]
    path = tmp_path / "a.trec"
    path.write_text("\n".join(lines))
    run = load_run(path, read_options=ReadOptions(rank_from="column"))
    assert len(run.queries) == 300
    assert run.vocabulary[run.documents[101]] == "https://example.org/101"
    assert np.array_equal(run.scores, -np.arange(30_000.0))
    lines[20_000] = lines[19_999]
    path.write_text("\n".join(lines))
    with pytest.raises(DataError, match=r"a\.trec:20001:.* twice"):
        load_run(path)
    lines[20_000] = "q7 Q0 d 1 nan t"
    path.write_text("\n".join(lines))
    with pytest.raises(DataError, match=r"a\.trec:20001: score nan"):
        load_run(path)
    judged = tmp_path / "q.txt"
    judged.write_text(
        "".join(f"q{n // 100} 0 https://example.org/{n} 0x1\n" for n in range(30_000))
    )
    with pytest.raises(DataError, match=r"q\.txt:1:.*'0x1'"):
        load_qrels(judged)


SCRIPT = """
import sys
from pathlib import Path
from fusion_bench.io.dataset import load_dataset
dataset = load_dataset(Path(sys.argv[1]))
runs = dataset.aligned(list(dataset.runs))
print(int(runs.ranks.max()), "pyarrow" in sys.modules)
"""


HELP = """
import atexit, sys
from fusion_bench.cli import main
atexit.register(lambda: print("pyarrow" in sys.modules))
main(["--help"])
"""


def made(folder: Path) -> Path:
    lines = [f"q{n // 1000} Q0 d{n % 1000} {n % 1000} {-n} a-long-tag" for n in range(40_000)]
    (folder / "a.trec").write_text("\n".join(lines))
    (folder / "qrels.txt").write_text("q1 0 d1 1\n")
    (folder / "dataset.yaml").write_text("name: a\nqrels: qrels.txt\nruns: {a: {path: a.trec}}\n")
    return folder / "dataset.yaml"


@pytest.mark.slow
def test_where_the_cache_answers_or_helps_it_is_not_imported(tmp_path: Path) -> None:
    path = made(tmp_path)
    environment = {name: value for name, value in os.environ.items() if "CACHE" not in name}
    command = [sys.executable, "-c", SCRIPT, str(path)]
    answers = [
        subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout
        for _ in range(2)
    ]
    assert answers == ["1000 True\n", "1000 False\n"]
    command = [sys.executable, "-c", HELP]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert out.endswith("False\n")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    install_package(tmp_path / "site")
    put_on_path(tmp_path / "site", monkeypatch)
    yield tmp_path / "site"
    for name in [name for name in sys.modules if name.split(".")[0] == "tiny_plugin"]:
        del sys.modules[name]


@pytest.mark.usefixtures("site")
def test_a_format_of_an_installed_distribution_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.tiny"
    path.write_text("q;d;2\nq;e;1\n")
    assert load_run(path).to_dict() == {"q": {"d": 2.0, "e": 1.0}}
    assert load_qrels(path).to_dict() == {"q": {"d": 2, "e": 1}}
    path.write_text("q;d;2\nq;e;x\n")
    with pytest.raises(DataError, match=r"a\.tiny:2:.*'x'"):
        load_run(path)


@pytest.mark.usefixtures("site")
def test_the_cache_tells_the_versions_of_a_format_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, cache = tmp_path / "a.tiny", Cache(tmp_path / "cache", max_bytes=1)
    path.write_text("q;d;2\n")
    assert find_distribution(path) == DISTRIBUTION
    key = cache.file_key(path, "qrels", None, None)
    install_package(tmp_path / "newer", "1.3")
    put_on_path(tmp_path / "newer", monkeypatch)
    assert find_distribution(path) == "tiny-plugin==1.3"
    assert cache.file_key(path, "qrels", None, None) != key


def test_a_built_in_format_is_of_no_other_distribution(tmp_path: Path) -> None:
    assert find_distribution(tmp_path / "a.trec.gz") is None
    assert find_distribution(tmp_path / "a.tiny") is None


def test_an_unknown_suffix_lists_the_known_ones(site: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.tin"
    path.write_text("q;d;2\n")
    with pytest.raises(UnknownNameError, match=r"'\.tin'.*\.parquet.*\.tiny.*\.trec"):
        load_run(path)
    (next(site.glob("*.dist-info")) / "entry_points.txt").write_text(
        "[fusion_bench.formats]\ntiny = tiny_plugin.methods:BestScore\n"
    )
    site.touch()  # folders that did not change are not read again
    with pytest.raises(ConfigError, match="'tiny' is no"):
        load_run(path)
