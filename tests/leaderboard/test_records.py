"""Leaderboards are joined and recomputed; what was changed is refused, by the name of its cell."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fusion_bench.cli.application.app import app
from fusion_bench.errors import DataError
from fusion_bench.leaderboard import evaluate as evaluate_module
from fusion_bench.leaderboard.evaluate import verify
from fusion_bench.leaderboard.page import render_pages
from fusion_bench.leaderboard.records import FILE, SystemRow, merge, read_leaderboard
from fusion_bench.leaderboard.rows import TUNED_PAIR, Lists, Methods, list_rows
from tests.tiny import DATASET, make

WANTED = {"a", "b", "rrf", "convex", "rrf, tuned", TUNED_PAIR}


def few_rows(lists: Lists, methods: Methods = "all") -> tuple[SystemRow, ...]:
    return tuple(row for row in list_rows(lists, methods) if row.name in WANTED)


@pytest.fixture
def board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(evaluate_module, "list_rows", few_rows)
    make(tmp_path)
    words = ["leaderboard", str(tmp_path / DATASET), "--trials", "2", "--methods", "core"]
    result = CliRunner().invoke(app, [*words, "--out", str(tmp_path / "out"), "--json"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.output)["rows"] == {"computed": len(WANTED)}
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


def test_equal_boards_join_and_a_changed_cell_is_refused_by_name(board: Path) -> None:
    assert merge([board, board]) == read_leaderboard(board)
    cell = read_leaderboard(board).collections[0].cells[2]
    values = {"nDCG@10": [0.5] * 3}
    with pytest.raises(DataError, match=rf"tiny: {cell.row.name}: .*digest"):
        read_leaderboard(change(board, 2, "values", values))
    forged = cell.model_copy(update={"values": {"nDCG@10": (0.5, 0.5, 0.5)}}).seal()
    other = change(board, 2, "values", values)
    other = change(other, 2, "digest", forged.digest)
    data = json.loads(other.read_text())
    data["collections"][0]["cells"][2] = json.loads(forged.model_dump_json())
    other.write_text(json.dumps(data))
    with pytest.raises(DataError, match=f"{cell.row.name}: differs"):
        merge([board, other])
    data["engine"] = 0
    other.write_text(json.dumps(data))
    with pytest.raises(DataError, match="engine 0"):
        merge([board, other])


def test_verify_computes_cells_again(board: Path, tmp_path: Path) -> None:
    cells = verify(read_leaderboard(board), tmp_path / DATASET)
    assert cells == dict.fromkeys(WANTED, 0)
    runner = CliRunner()
    words = ["leaderboard", "verify", str(board), str(tmp_path / DATASET)]
    assert runner.invoke(app, words).exit_code == 0
    data = json.loads(board.read_text())
    cell = read_leaderboard(board).collections[0].cells[0]
    value = cell.values["nDCG@10"]
    forged = cell.model_copy(
        update={"values": {**cell.values, "nDCG@10": (value[0] + 1e-9, *value[1:])}}
    )
    data["collections"][0]["cells"][0] = json.loads(forged.seal().model_dump_json())
    board.write_text(json.dumps(data))
    result = runner.invoke(app, words)
    assert result.exit_code == 1
    assert f"{cell.row.name}: differs" in result.output
    assert "1e-09" in result.output
    (tmp_path / "datasets/tiny/qrels.txt").write_text("q1 0 d1 2\nq2 0 d3 1\nq4 0 d4 1\n")
    assert isinstance(runner.invoke(app, words).exception, DataError)


def test_nothing_to_join_to_show_or_to_verify_is_an_error(board: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="two or more"):
        merge([board])
    data = json.loads(board.read_text())
    data["collections"][0]["cells"] = []
    board.write_text(json.dumps(data))
    with pytest.raises(DataError, match="no cell"):
        verify(read_leaderboard(board), tmp_path / DATASET)
    with pytest.raises(DataError, match="finished row 'rrf'"):
        render_pages(read_leaderboard(board))


def test_no_file_of_another_program_is_replaced(board: Path) -> None:
    foreign = board.with_name("mine") / "leaderboard.md"
    foreign.parent.mkdir()
    foreign.write_text("my own notes")
    words = ["leaderboard", "merge", str(board), str(board), "--out", str(foreign.parent)]
    runner = CliRunner()
    assert runner.invoke(app, words).exit_code != 0
    assert foreign.read_text() == "my own notes"
    assert runner.invoke(app, [*words, "--force"]).exit_code == 0
    assert foreign.read_text().startswith("# Leaderboard")
