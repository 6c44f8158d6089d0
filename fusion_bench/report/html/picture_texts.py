"""What stands below each picture of a page, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fusion_bench.evaluation.report_file import Report
from fusion_bench.evaluation.report_records import Collection
from fusion_bench.measures.aliases import display_measure
from fusion_bench.report.evaluation_tables import primary_table
from fusion_bench.util.formatting import format_coverage

HEAT: Final = (
    "One row a system, one column a query. Blue: better than the baseline on this query; orange: "
    "worse; the stronger, the more.",
    "Columns are in the order of the chosen system's gain. A row that fades from blue to orange as "
    "that one does wins and loses on the same queries; one that does not, on others: that is where "
    "a mix could gain.",
    "Where there are more queries than pixels, a column shows the mean of its neighbors. Enlarge "
    "it to see each query; click one to open it.",
)
QUERIES: Final = (
    "Each row is a query, with the baseline's value, the chosen system's, and their difference. "
    "Open one to see the documents.",
    "Single queries explain a difference; they do not prove one. Any system loses some queries by "
    "chance.",
)
OVERLAP: Final = (
    "Shares of common documents in the first ranks of two sources, as a mean over queries. "
    "Sources that share little have more to give each other, if both find relevant documents.",
    "“Only by this source” counts relevant documents that no other source returns at any rank: "
    "without it, no fusion can reach them.",
)
DEPTH_CURVE: Final = (
    "Every source is cut at this rank before it is fused. Where a line is flat, deeper lists cost "
    "time and change nothing.",
)


def picture_texts(report: Report, collection: Collection) -> dict[str, Sequence[str]]:
    """Picture → paragraphs.

    Args:
        report: Whose level is named.
        collection: Whose baseline and measure are named.
    """
    coverage = format_coverage(report.alpha)
    primary, baseline = display_measure(collection.primary_measure), collection.baseline
    together = (
        "All intervals hold together: one or more of them miss the true difference in about "
        f"{100 * report.alpha:g} % of all runs, or fewer."
    )
    return {
        "systems": (
            f"Each row is a system; the dot is its mean, the bar the {coverage} interval of that "
            "mean. All bars of a column share one scale.",
            "Overlapping bars do not mean “no difference”: systems answer the same queries, so the "
            "paired difference decides, and the verdict rests on it alone.",
            "Floor and ceiling rows are no competitors. The floor is the best single source; "
            "nothing can pass the perfect order of the candidates.",
            *primary_table(report, collection).notes,
        ),
        "forest": (
            f"Each mark is the mean of system − {baseline} in {primary} over the same queries, "
            f"with its {coverage} interval. Right of 0 is better.",
            f"{together} An interval that crosses 0 does not show that the systems are equal.",
            "Gray: differences that are often missed (below 80 % power). A mark inside can still "
            "be shown: the band is about other samples of queries, the verdict about this one.",
        ),
        "heat": HEAT,
        "queries": QUERIES,
        "overlap": OVERLAP,
        "leave_one_out": (
            f"Mean {primary} of a system without one source, minus the mean with it. Left of 0 the "
            "source helps; right of 0 the system is better without it.",
            "The intervals are paired by query and not adjusted for their number: take them as a "
            "hint which source to look at.",
        ),
        "depth_curve": DEPTH_CURVE,
    }


def change_texts(collection: Collection, alpha: float, *, is_tested: bool) -> dict[str, list[str]]:
    """Picture → paragraphs.

    Args:
        collection: Of the new report; its primary measure and baseline are named.
        alpha: 1 − coverage of the intervals.
        is_tested: Whether differences have intervals.
    """
    primary, coverage = display_measure(collection.primary_measure), format_coverage(alpha)
    interval = (
        f"Its {coverage} interval is paired by query; all intervals hold together for the systems "
        "that both reports have. One that crosses 0 does not show that nothing changed."
        if is_tested
        else "Nothing is tested, as the reports do not have the same queries or judgments."
    )
    return {
        "systems": [
            f"Each row is a system. The dot is its mean now, the bar the {coverage} interval of "
            "that mean, the open mark its mean then.",
            "The difference is now − then of the same system over the queries of both reports. "
            f"{interval}",
            f"“Against {collection.baseline}” is the verdict of each report on the system against "
            "the baseline of that report, then and now.",
        ],
        "forest": [
            f"Each mark is the mean of now − then in {primary}. Right of 0 is better than before. "
            f"{interval}",
            "Gray: differences that are often missed (below 80 % power).",
        ],
        "heat": [
            "One row a system, one column a query. Blue: better now than then on this query; "
            "orange: worse; the stronger, the more.",
            "Columns are in the order of the chosen system's change. Systems whose values did not "
            "change have no row.",
        ],
        "queries": [
            "Each row is a query, with the chosen system's value then and now, and their "
            "difference. Open one to see every system.",
            "Single queries explain a difference; they do not prove one.",
        ],
    }
