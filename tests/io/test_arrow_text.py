"""pyarrow and the plain reader accept, refuse and read the same files."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Final

import numpy as np
import pytest

from fusion_bench.data.ids import CategoricalIds
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.read_options import ReadOptions
from fusion_bench.data.run import Run
from fusion_bench.errors import DataError, FusionBenchError
from fusion_bench.io.arrow_text import encode_documents, is_regular, parse_regular_text
from fusion_bench.io.file_bytes import decode_text
from fusion_bench.io.formats import trec
from fusion_bench.io.formats._fixed_columns import COLUMNS
from fusion_bench.io.load_records import load_qrels, load_run, make_qrels, make_run
from fusion_bench.io.raw_table import Kind

MUTATIONS: Final = 500
#: What may stand in the place of some bytes of a regular file.
PIECES: Final = (
    *(b" ", b"  ", b"\t", b"\r", b"\r\n", b"\n", b"\n\n", b"\0", b"\x0b", b"\x1c", b"\x7f", b""),
    *(text.encode() for text in ("\u00a0", "\u2003", "\u0085", "é", "文", "５", "\ufeff")),
    *(b'"', b"'", b"\\", b"#", b",", b"\xff", b"q1", b"nan", b"NA", b"null", b"inf", b"-inf"),
    *(b"1e999", b"0x10", b"+5", b"1_0", b".5", b"5.", b"1e3", b"1.0", b"-1", b"-", b"true"),
    *(b"9223372036854775808", b"nan(1)", b"1e-400", b"infinity"),
)


def regular_file(kind: Kind, rng: random.Random) -> bytes:
    lines: list[str] = []
    for q in range(rng.randint(1, 4)):
        for d in rng.sample(range(50), rng.randint(1, 6)):
            value = f"{rng.uniform(-9, 9):.{rng.randint(0, 8)}f}" if kind == "run" else d % 4
            lines.append(
                f"q{q} Q0 doc{d} {len(lines) + 1} {value} tag"
                if kind == "run"
                else f"q{q} 0 doc{d} {value}"
            )
    return "\n".join(lines).encode() + b"\n" * rng.randint(0, 1)


def mutate(data: bytes, rng: random.Random) -> bytes:
    for _ in range(rng.choice([0, 1, 1, 1, 2, 3])):
        if rng.random() < 0.5:  # a whole cell
            cells = data.split(b" ")
            cells[rng.randrange(len(cells))] = rng.choice(PIECES)
            data = b" ".join(cells)
        else:
            start = rng.randrange(len(data) + 1)
            data = data[:start] + rng.choice(PIECES) + data[start + rng.randint(0, 2) :]
    return data


def table_of(
    path: Path, kind: Kind, read_options: ReadOptions, *, by_arrow: bool
) -> Qrels | Run | str:
    """The table, or why there is none; what pyarrow leaves to the other reader comes from it."""
    data, has_ranks = path.read_bytes(), kind == "run" and read_options.rank_from == "column"
    try:
        rows = None
        if by_arrow:
            value = "score" if kind == "run" else "grade"
            rows = parse_regular_text(data, COLUMNS[kind], value, has_ranks=has_ranks)
        if rows is None:
            rows = trec.read_lines(path, kind, decode_text(path, data))
            if not len(rows.queries):
                return "empty"
        (rows,) = encode_documents([rows])
        if kind == "qrels":
            return make_qrels(path, rows)
        return make_run(path, rows, "a", frozenset(), read_options, None)
    except FusionBenchError as error:
        return str(error)


def test_500_mutated_files_are_read_alike(tmp_path: Path) -> None:
    rng = random.Random(20)
    outcomes = {"refused": 0, "read by pyarrow": 0, "read line by line": 0}
    for n in range(MUTATIONS):
        kind: Kind = rng.choice(["run", "run", "qrels"])
        path = tmp_path / f"{n}.trec"
        path.write_bytes(mutate(regular_file(kind, rng), rng))
        read_options = ReadOptions(rank_from=rng.choice(["score", "column"]))
        plain = table_of(path, kind, read_options, by_arrow=False)
        fast = table_of(path, kind, read_options, by_arrow=True)
        if isinstance(plain, str) or isinstance(fast, str):
            assert plain == fast, path.read_bytes()
            outcomes["refused"] += 1
            continue
        assert plain.digest() == fast.digest(), path.read_bytes()
        regular = is_regular(path.read_bytes())
        outcomes["read by pyarrow" if regular else "read line by line"] += 1
    assert min(outcomes.values()) > MUTATIONS // 20, outcomes


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
        parse_regular_text(path.read_bytes(), COLUMNS["run"], "score", has_ranks=True)
        for path in sorted(tmp_path.iterdir())
    ]
    columns = [rows.documents for rows in encode_documents([rows for rows in tables if rows])]
    assert all(isinstance(column, CategoricalIds) for column in columns)
    first, second = (column for column in columns if isinstance(column, CategoricalIds))
    assert first.vocabulary is second.vocabulary
    assert tuple(first.vocabulary) == ("a", "b", "é")
    assert (first.codes.tolist(), second.codes.tolist()) == ([1, 2], [0, 2])


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
    with pytest.raises(DataError, match=r"a\.trec:20001: document .* stands twice"):
        load_run(path)
    lines[20_000] = "q7 Q0 d 1 nan t"
    path.write_text("\n".join(lines))
    with pytest.raises(DataError, match=r"a\.trec:20001: score nan is not a finite number"):
        load_run(path)
    judged = tmp_path / "q.txt"
    judged.write_text(
        "".join(f"q{n // 100} 0 https://example.org/{n} 0x1\n" for n in range(30_000))
    )
    with pytest.raises(DataError, match=r"q\.txt:1: grade '0x1' is not a whole number"):
        load_qrels(judged)
