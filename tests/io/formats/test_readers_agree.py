"""The fast and the plain reader of text agree; every dialect of a table gives its rows back."""

import gzip
import io
import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fusion_bench.errors import DataError
from fusion_bench.io.formats import text_tables
from fusion_bench.io.load_records import load_qrels, load_run
from fusion_bench.io.raw_files import FileLayout, Kind, RawTable
from tests.examples import examples

# ── the fast and the plain reader

#: What a mutation puts into a file: separators, marks, numbers of every spelling, whole rows.
PIECES = [
    *"\n\r\t \0\v\f\x1c\x1f\x85\xa0\u2028\u3000\ufeff#,;|.-+_'\"0123456789eExXédq",
    *("\r\n", "  ", " \n", "\n\n", "0x10", "1e3", "1.0", "-1", "+2", "1_0", "nan", "inf", "1e999"),
    *(
        "q1 Q0 d9 1 2.5 t\n",
        "q1 0 d9 1\n",
        "q1 d9 3\n",
        "# a comment\n",
        "a tag",
        "１",
        "01",
        "2.5",
    ),
]


def make_file(draw: random.Random) -> tuple[Kind, str, dict[str, str]]:
    """A small file of one of the fixed forms, mutated in up to three places."""
    queries, number = draw.choice([1, 1, 2, 3]), 0
    kind: Kind = draw.choice(["run", "run", "run", "qrels"])
    width = draw.choice([3, 6]) if kind == "run" else 4
    rows = []
    for query in range(queries):
        for rank in range(1, draw.choice([1, 2, 3, 4]) + 1):
            number += 1
            score = draw.choice([f"{9 - rank}", f"{9.5 - rank}", f"{rank}"])
            cells = {
                3: [f"q{query}", f"d{number}", str(rank)],
                4: [f"q{query}", "0", f"d{number}", str(draw.randrange(3))],
                6: [f"q{query}", "Q0", f"d{number}", str(rank), score, "t"],
            }[width]
            rows.append(" ".join(cells))
    text = "\n".join(rows) + "\n"
    if draw.random() < 0.2:
        text = text.replace(" ", "\t")
    for _ in range(draw.choice([0, 1, 1, 1, 2, 3])):
        at = draw.randrange(len(text) + 1)
        until = min(len(text), at + draw.choice([0, 0, 1, 1, 2, 8]))
        piece = draw.choice(PIECES) if draw.random() < 0.8 else ""
        text = text[:at] + piece + text[until:]
    columns = {}
    if kind == "run" and draw.random() < 0.2:
        columns = draw.choice([{"score": "3"}, {"rank": "3"}, {"score": "4", "rank": "5"}])
    return kind, text, columns


def read(path: Path, kind: Kind, columns: dict[str, str]) -> Any:  # noqa: ANN401
    """The rows of a file, or None if it is refused."""
    load = load_run if kind == "run" else load_qrels
    try:
        return load(path, layout=FileLayout(columns=columns)).to_dict()
    except DataError:
        return None


@pytest.mark.parametrize("seed", range(10))
def test_10000_mutated_files_read_the_same_fast_and_plain(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw, path, read_rows, refused = random.Random(seed), tmp_path / "a.trec", 0, 0
    tables, read_large = list[bool](), text_tables._read_large

    def record(*args: Any, **options: Any) -> RawTable | None:  # noqa: ANN401 - of _read_large
        table = read_large(*args, **options)
        tables.append(table is not None)
        return table

    monkeypatch.setattr(text_tables, "_read_large", record)
    for _ in range(1_000):
        kind, text, columns = make_file(draw)
        path.write_bytes(text.encode())
        monkeypatch.setattr(text_tables, "LARGE_FILE", 1)
        fast = read(path, kind, columns)
        monkeypatch.setattr(text_tables, "LARGE_FILE", 1 << 20)
        plain = read(path, kind, columns)
        assert fast == plain, (kind, text, columns)
        read_rows += plain is not None
        refused += plain is None
    # The mutations are neither too mild nor too wild for either reader.
    assert min(read_rows, refused, tables.count(True), tables.count(False)) > 100


# ── every dialect gives its rows back

IDS = st.text(
    st.characters(
        codec="utf-8",
        exclude_categories=["Cc", "Cs", "Zs", "Zl", "Zp"],
        exclude_characters="\ufeff#,;|\"'",
    ),
    min_size=1,
    max_size=6,
).filter(lambda name: not name.isspace())
SCORES = st.floats(-1e6, 1e6).map(lambda score: round(score, 3) + 0.0)


@st.composite
def runs(draw: st.DrawFn) -> dict[str, dict[str, float]]:
    """Lists with distinct scores, so that their order is that of the rows."""
    found = {}
    for query in draw(st.lists(IDS, min_size=1, max_size=3, unique=True)):
        names = draw(st.lists(IDS, min_size=1, max_size=4, unique=True))
        scores = draw(
            st.lists(SCORES, min_size=len(names), max_size=len(names), unique=True).map(sorted)
        )
        found[query] = dict(zip(names, reversed(scores), strict=True))
    return found


def write_cells(rows: list[list[Any]], delimiter: str, *, quoted: bool) -> str:
    text = io.StringIO()
    if quoted:
        rows = [[f'"{cell}"' for cell in row] for row in rows]
    text.writelines(f"{delimiter.join(map(str, row))}\n" for row in rows)
    return text.getvalue()


def write_dialect(run: dict[str, dict[str, float]], dialect: str, draw: st.DataObject) -> str:
    """The text of a run in one dialect of the documentation."""
    rows = [
        (query, name, rank, score)
        for query, names in run.items()
        for rank, (name, score) in enumerate(names.items(), start=1)
    ]
    if dialect == "trec":
        blank = draw.draw(st.sampled_from([" ", "\t", "  "]))
        tag = draw.draw(st.sampled_from(["t", "a long tag", "7"]))
        lines = [[q, "Q0", d, str(rank), repr(score), tag] for q, d, rank, score in rows]
        return "".join(blank.join(line) + "\n" for line in lines)
    if dialect == "msmarco":
        return "".join(f"{q}\t{d}\t{rank}\n" for q, d, rank, _ in rows)
    if dialect == "jsonl":
        return "".join(f"{json.dumps({'qid': q, 'docno': d, 'score': s})}\n" for q, d, _, s in rows)
    delimiter, comma = {"csv": ",", "tsv": "\t", "semicolon": ";", "bars": "|"}[dialect], ","
    header = draw.draw(
        st.sampled_from(
            [["query", "document", "score"], ["QID", "DocNo", "SCORE"], ["query-id", "doc", "sim"]]
        )
    )
    has_commas = dialect == "semicolon"
    cells = [
        [q, d, repr(score).replace(".", comma) if has_commas else repr(score)]
        for q, d, _, score in rows
    ]
    return write_cells([header, *cells], delimiter, quoted=draw.draw(st.booleans()))


@pytest.mark.parametrize("dialect", ["trec", "msmarco", "csv", "tsv", "semicolon", "bars", "jsonl"])
@settings(max_examples=examples(150), suppress_health_check=list(HealthCheck))
@given(run=runs(), data=st.data())
def test_rows_of_every_dialect_come_back(
    dialect: str, run: dict[str, dict[str, float]], data: st.DataObject, tmp_path: Path
) -> None:
    text = write_dialect(run, dialect, data)
    if data.draw(st.booleans()):
        text = text.replace("\n", "\r\n")
    if data.draw(st.booleans()):
        text = f"\ufeff{text}"
    packed = data.draw(st.booleans())
    suffix = {"trec": "trec", "msmarco": "run", "jsonl": "jsonl"}.get(dialect, "csv")
    path = tmp_path / f"a.{suffix}{'.gz' * packed}"
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    if dialect == "msmarco":
        run = {q: dict(zip(d, range(len(d), 0, -1), strict=True)) for q, d in run.items()}
    assert load_run(path).to_dict() == run
