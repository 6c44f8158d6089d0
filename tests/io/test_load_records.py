"""From rows to records: score spaces, names, one fingerprint for one content."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from fusion_bench.data.records import ScoreSpace
from fusion_bench.errors import DataError
from fusion_bench.io.load_records import load_qrels, load_run

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
