"""The command writes a leaderboard of a dataset; a changed cell is refused by its name."""

import json
from pathlib import Path

import pytest

from benchmarks.leaderboard import evaluate as evaluate_module
from benchmarks.leaderboard.__main__ import main
from benchmarks.leaderboard.page import render_pages
from benchmarks.leaderboard.records import FILE, SystemRow, read_leaderboard
from benchmarks.leaderboard.rows import TUNED_PAIR, Lists, Methods, list_rows
from fusion_bench.errors import DataError
from tests.tiny import DATASET, make

Capture = pytest.CaptureFixture[str]
WANTED = {"a", "b", "rrf", "convex", "rrf, tuned", TUNED_PAIR}


def few_rows(lists: Lists, methods: Methods = "all") -> tuple[SystemRow, ...]:
    return tuple(row for row in list_rows(lists, methods) if row.name in WANTED)


@pytest.fixture
def words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(evaluate_module, "list_rows", few_rows)
    make(tmp_path)
    return [str(tmp_path / DATASET), "--trials", "2", "--methods", "core"]


@pytest.fixture
def board(words: list[str], tmp_path: Path, capsys: Capture) -> Path:
    assert main([*words, "--out", str(tmp_path / "out")]) == 0
    assert f"{len(WANTED)} rows computed\n" in capsys.readouterr().out
    return tmp_path / "out" / FILE


def change(path: Path, cell: int, key: str, value: object) -> Path:
    data = json.loads(path.read_text())
    data["collections"][0]["cells"][cell][key] = value
    changed = path.with_name("changed.json")
    changed.write_text(json.dumps(data))
    return changed


def test_it_holds_no_text_and_no_id(board: Path) -> None:
    text = board.read_text()
    assert all(f'"{each}"' not in text for each in ("q1", "q2", "d1", "d3", "g1"))


def test_a_second_run_computes_nothing(
    board: Path, words: list[str], tmp_path: Path, capsys: Capture
) -> None:
    before = board.read_bytes()
    assert main([*words, "--out", str(tmp_path / "out")]) == 0
    assert f"{len(WANTED)} rows reused\n" in capsys.readouterr().out
    assert board.read_bytes() == before


def test_a_changed_cell_is_refused_by_name(board: Path) -> None:
    cell = read_leaderboard(board).collections[0].cells[2]
    with pytest.raises(DataError, match=rf"tiny: {cell.row.name}: .*digest"):
        read_leaderboard(change(board, 2, "values", {"nDCG@10": [0.5] * 3}))


def test_nothing_to_show_is_an_error(board: Path) -> None:
    data = json.loads(board.read_text())
    data["collections"][0]["cells"] = []
    board.write_text(json.dumps(data))
    with pytest.raises(DataError, match="finished row 'rrf'"):
        render_pages(read_leaderboard(board))


def test_what_is_wrong_is_one_line(tmp_path: Path, capsys: Capture) -> None:
    assert main(["absent", "--out", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err.startswith("error: ")
    with pytest.raises(SystemExit):
        main(["absent", "--out", str(tmp_path / "out"), "--trials", "1"])
    assert "--trials needs 2" in capsys.readouterr().err


def test_no_file_of_another_program_is_replaced(
    words: list[str], tmp_path: Path, capsys: Capture
) -> None:
    foreign = tmp_path / "mine" / "leaderboard.md"
    foreign.parent.mkdir()
    foreign.write_text("my own notes")
    place = ["--out", str(foreign.parent)]
    assert main([*words, *place]) == 2
    assert "leaderboard.md" in capsys.readouterr().err
    assert foreign.read_text() == "my own notes"
    assert main([*words, *place, "--force"]) == 0
    assert foreign.read_text().startswith("# Leaderboard")
