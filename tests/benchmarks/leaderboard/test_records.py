"""The command writes a leaderboard of a dataset; a changed cell is refused by its name."""

import json
from pathlib import Path

import pytest

from benchmarks.leaderboard import evaluate as evaluate_module
from benchmarks.leaderboard.__main__ import main
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


def test_a_changed_cell_is_refused_by_name(board: Path) -> None:
    cell = read_leaderboard(board).collections[0].cells[2]
    with pytest.raises(DataError, match=rf"tiny: {cell.row.name}: .*digest"):
        read_leaderboard(change(board, 2, "values", {"nDCG@10": [0.5] * 3}))
