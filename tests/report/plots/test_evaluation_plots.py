"""The pictures: what is in them, and that the same report gives the same bytes."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import matplotlib as mpl
import pytest
from matplotlib.figure import Figure

from fusion_bench.evaluation.report_records import Collection
from fusion_bench.report.plots import make_figures, render_png, render_svg
from fusion_bench.report.plots._base import DPI, WIDTH
from fusion_bench.report.plots.evaluation import MARKS, draw_differences, draw_forest, draw_means
from tests.report import cases
from tests.report.cases import PRIMARY, SECOND

MAGIC = b"\x89PNG\r\n\x1a\n"


def size(data: bytes) -> tuple[int, int]:
    """Width and height from the header."""
    assert data[:8] == MAGIC
    assert data[12:16] == b"IHDR"
    return int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")


def legend(figure: Figure) -> list[str]:
    return [text.get_text() for made in figure.legends for text in made.get_texts()]


def names(figure: Figure) -> list[str]:
    return [label.get_text() for label in figure.axes[0].get_yticklabels()][::-1]


def title(figure: Figure) -> str:
    return figure.get_suptitle()


def expected(figure: Figure) -> tuple[int, int]:
    width, height = figure.get_size_inches()
    return int(width * DPI), int(height * DPI)


@pytest.mark.parametrize("draw", [lambda c: draw_means(c, PRIMARY), draw_differences])
def test_the_same_report_gives_the_same_bytes(
    draw: Callable[[Collection], Figure],
) -> None:
    first = render_png(draw(cases.full()))
    rc: dict[Any, Any] = {
        "font.size": 30.0,
        "savefig.bbox": "tight",
        "lines.linewidth": 9,
        "savefig.dpi": 10,
    }
    with mpl.rc_context(rc):
        assert render_png(draw(cases.full())) == first
        assert mpl.rcParams["font.size"] == 30
    assert b"Software" not in first
    other = render_png(draw(cases.full("another")))
    assert other != first


@pytest.mark.parametrize(
    "collection",
    [cases.full(), cases.many(1), cases.many(45)],
    ids=["full", "one", "many"],
)
def test_size(collection: Collection) -> None:
    count = sum(row.kind == "system" for row in collection.systems)
    figure = draw_means(collection, PRIMARY)
    width, height = size(render_png(figure))
    assert (width, height) == expected(figure)
    assert width == WIDTH * DPI
    assert height > 0.27 * DPI * count
    assert len(names(figure)) == count
    if collection.comparisons:
        shown = draw_differences(collection)
        assert size(render_png(shown)) == expected(shown)


def test_bars_and_their_marks() -> None:
    figure = draw_means(cases.full(split="test", query_type="local"), PRIMARY, alpha=0.1)
    assert names(figure) == ["better one", "base", "worse one"]
    axes = figure.axes[0]
    assert axes.get_xlabel().startswith(f"{PRIMARY}: mean and 90 % ")
    assert all(part in title(figure) for part in (PRIMARY, "split test", "type local", ": 3 "))
    bars = [segment for lines in axes.collections for segment in lines.get_segments()]  # type: ignore[attr-defined]
    reach = [segment[:, 0].round(6).tolist() for segment in bars]
    assert sorted(reach) == [[0.1, 0.3], [0.3, 0.5], [0.7, 0.9]]
    [right] = axes.child_axes
    means = [label.get_text() for label in right.get_yticklabels()]
    assert means == ["0.2000", "0.4000", "0.8000"]
    looks = {(shape, face == "white") for key, (shape, _, face, _) in MARKS.items() if key}
    assert len(looks) == len(MARKS) - 1


@pytest.mark.parametrize(
    ("verdicts", "labels"),
    [
        ([], []),
        (["better"], ["better"]),
        (["worse", "better"], ["better", "worse"]),
        (["identical"], ["not shown"]),
        (["identical", "not shown"], ["not shown"]),
        (["unjudged decide"], ["unjudged decide"]),
        ([None], [""]),
        (
            ["better", "worse", "not shown", "identical", "unjudged decide", None],
            ["better", "worse", "not shown", "unjudged decide", ""],
        ),
    ],
)
def test_legend_names_the_verdicts_there_are(
    verdicts: Sequence[str | None], labels: Sequence[str]
) -> None:
    rows = [cases.system(f"s{i}", 0.5, 0.6) for i in range(len(verdicts))]
    found = [cases.compared(f"s{i}", 0.1, verdict) for i, verdict in enumerate(verdicts)]
    figure = draw_means(
        cases.collection(cases.system("base", 0.5, 0.4), *rows, comparisons=found), PRIMARY
    )
    *marks, line = legend(figure)
    assert marks == ["baseline", *(MARKS[label][3] for label in labels)]
    assert line == "baseline base 0.4500"


def test_references_are_lines_and_a_far_ceiling_is_only_named() -> None:
    figure = draw_means(cases.full(), PRIMARY)
    assert legend(figure)[-4:] == [
        "baseline base 0.4000",
        "best single source 0.4000",
        "best source per query 0.9000",
        "perfect order 1.0000",
    ]
    rows = (
        cases.system("base", 0.11, 0.11),
        cases.system("x", 0.12, 0.12),
        cases.floor(0.1, 0.1),
        cases.ceiling(1.0, 1.0),
    )
    figure = draw_means(cases.collection(*rows), PRIMARY)
    assert legend(figure)[-1].startswith("perfect order 1.0000 (off ")
    assert legend(figure)[-2] == "best single source 0.1000"
    assert figure.axes[0].get_xlim()[1] < 0.9


def test_missing_numbers_leave_gaps() -> None:
    rows = [cases.system("base", None, None), cases.system("x", 0.2, None)]
    bare = rows[1].measures[PRIMARY].model_copy(update={"low": None, "high": None})
    rows[1] = rows[1].model_copy(update={"measures": {PRIMARY: bare, SECOND: bare}})
    nan = cases.system("nan", math.nan, 0.5)
    found = cases.collection(*rows, nan, cases.floor(None, None))
    figure = draw_means(found, PRIMARY)
    assert names(figure)[0] == "x"
    assert size(render_png(figure)) == expected(figure)
    assert any(line.startswith("baseline base n/a ") for line in legend(figure))
    shown = draw_differences(found)
    assert size(render_png(shown)) == expected(shown)


HARD = [
    "x" * 300,
    "$\\frac{1$",
    "a$b$c",
    "\\",
    "_hidden",
    "中文 🙂",
    "مرحبا",
    "हिन्दी",
    "a\nb\x1b",
    "",
    "%s {}",
]


def test_any_name_is_drawn_as_it_is() -> None:
    rows = [cases.fused(name, 0.9 - 0.01 * i) for i, name in enumerate(HARD)]
    found = [cases.compared(name) for name in HARD]
    collection = cases.collection(cases.system("base", 0.1), *rows, comparisons=found)
    figure = draw_means(collection, PRIMARY)
    assert size(render_png(figure)) == expected(figure)
    assert names(figure)[1:4] == ["$\\frac{1$".replace("$", r"\$"), r"a\$b\$c", "\\"]
    assert names(figure)[8] == r"a\nb\x1b"
    assert size(render_png(draw_differences(collection)))


def panels(figure: Figure) -> list[str]:
    return [axes.get_title(loc="left") for axes in figure.axes if axes.get_visible()]


def test_differences() -> None:
    figure = draw_differences(cases.full())
    assert panels(figure) == ["better one", "worse one"]
    assert "system - base " in title(figure)
    better, worse = figure.axes
    [text] = [text.get_text() for text in better.texts]
    assert text.split()[2:] == ["+0.4000", "better", "wins/ties/losses", "2/1/0"]
    gains, losses = (patch.get_data().values for patch in better.patches)  # type: ignore[attr-defined]
    assert gains.tolist() == pytest.approx([0.4, 0.4, 0.4])
    assert losses.tolist() == [0, 0, 0]
    gains, losses = (patch.get_data().values for patch in worse.patches)  # type: ignore[attr-defined]
    assert gains.tolist() == [0, 0, 0]
    assert losses.tolist() == pytest.approx([-0.1, -0.2, -0.3])  # sorted


@pytest.mark.parametrize(("count", "shown"), [(2, 1), (5, 4), (7, 6), (45, 6)])
def test_the_best_few_have_a_panel(count: int, shown: int) -> None:
    figure = draw_differences(cases.many(count))
    best = [f"system {i}" for i in range(count - 2, -1, -1)]
    assert panels(figure) == best[:shown]
    assert len(figure.axes) == shown


def test_the_forest_shows_differences_and_what_can_be_detected() -> None:
    detectable = [
        item.model_copy(update={"min_detectable_difference": 0.25})
        for item in cases.full().comparisons
    ]
    found = cases.full(split="test").model_copy(update={"comparisons": tuple(detectable)})
    figure = draw_forest(found)
    assert "on tiny, split test: 3" in title(figure)
    assert names(figure) == ["better one", "worse one"]
    [axes] = figure.axes
    boxes = [bar.get_extents().transformed(axes.transData.inverted()) for bar in axes.patches]
    assert [(round(box.x0, 9), round(box.x1, 9)) for box in boxes] == [(-0.25, 0.25)] * 2
    right = axes.child_axes[0]
    assert [label.get_text() for label in right.get_yticklabels()] == ["-0.2000", "+0.4000"]
    assert any("below 80 % power" in line for line in legend(figure))


def test_the_forest_is_one_picture_and_comes_first() -> None:
    report = cases.report(cases.full())
    first = next(make_figures("evaluation", report, report.collections[0]))
    assert first.file == "nDCG@10-forest.png"
    alone = cases.collection(cases.system("base", 0.5, 0.4))
    files = [figure.file for figure in make_figures("evaluation", report, alone)]
    assert "nDCG@10-forest.png" not in files
    drawn, again = (render_svg(draw_forest(cases.full())) for _ in range(2))
    assert drawn == again
    assert b"<svg" in drawn
