"""Files that pyarrow reads; tests/attacks mutates them and compares it with the plain reader."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fusion_bench.data.grouped_rows import CategoricalIds
from fusion_bench.data.read_options import ReadOptions
from fusion_bench.errors import DataError
from fusion_bench.io.arrow_text import encode_documents, is_regular, parse_regular_text
from fusion_bench.io.formats.text_tables import COLUMNS
from fusion_bench.io.load_records import load_qrels, load_run


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
