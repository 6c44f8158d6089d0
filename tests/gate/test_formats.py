"""Bars of text characters: every line on one scale, however long the names."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len

from fusion_bench.gate.formats import BAR_HALF_WIDTH, MAX_BAR_NAME_WIDTH, BarRow, draw_bars
from fusion_bench.util.formatting import MOST_DECIMALS

NUMBERS = st.floats(-1, 1)
ROWS = st.builds(BarRow, st.text(), NUMBERS, st.none() | NUMBERS, st.floats(-1, 0))


def test_bars_lie_left_and_right_of_their_lines_on_one_scale() -> None:
    rows = [BarRow("a", -0.08, None, -0.02), BarRow("b", 0.16, None, -0.02)]
    lost, gained, ends = draw_bars(rows)
    assert lost == "a  -0.0800          ██████┊█│"
    assert gained == "b  +0.1600                ┊ │████████████████"
    assert ends.split() == ["-0.16", "0", "+0.16"]
    assert ends.index(" 0 ") + 1 == lost.index("│") == gained.index("│")
    (line, _) = draw_bars([BarRow("a", -0.04, -0.08, 0)])
    assert line == "a  -0.0400  ├───────████████│"
    (line, _) = draw_bars([BarRow("a", 0.08, -0.04, 0)])
    assert line == "a  +0.0800          ├───────│████████████████"
    (line, _) = draw_bars([BarRow("a", 0.0, 0.0, -0.01)])
    assert line == "a  0.0000  ┊               │"
    (line, _) = draw_bars([BarRow("a", 0.0, None, 0.0)])
    assert line == "a  0.0000                  │"


@pytest.mark.parametrize("limit", [-0.001, -0.0000001])
def test_a_small_limit_stands_left_of_zero(limit: float) -> None:
    (line, _) = draw_bars([BarRow("a", 0.5, None, limit)])
    assert "┊│" in line


@given(st.lists(ROWS, min_size=1, max_size=4))
@example([BarRow("0" * 50, -1e-300, None, 0.0)])
@example([BarRow("\U00012544" * 4, -4e-12, None, 0.0)])
def test_any_rows_line_up(rows: list[BarRow]) -> None:
    lines = draw_bars(rows)
    zeros = {cell_len(line.rpartition("│")[0]) for line in lines[:-1]}
    assert len(zeros) == 1
    assert all(line.isprintable() for line in lines)
    number = len("-0.") + MOST_DECIMALS
    assert max(map(cell_len, lines)) <= MAX_BAR_NAME_WIDTH + 2 + number + 2 + 2 * BAR_HALF_WIDTH + 1
