"""How to read each picture of the page of two reports."""

from __future__ import annotations

from fusion_bench.evaluation.report_records.collection import Collection
from fusion_bench.util.formatting import escape_control_chars, format_coverage


def change_texts(collection: Collection, alpha: float, *, is_tested: bool) -> dict[str, list[str]]:
    """Picture → paragraphs.

    Args:
        collection: Of the new report; its primary measure and baseline are named.
        alpha: 1 − coverage of the intervals.
        is_tested: Whether differences have intervals.
    """
    primary, coverage = collection.primary_measure, format_coverage(alpha)
    interval = (
        f"Its {coverage} interval is paired by query; all intervals hold together for the systems "
        "that both reports have. One that crosses 0 does not show that nothing changed."
        if is_tested
        else "Nothing is tested, as the reports do not have the same queries or judgments."
    )
    texts = {
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
            "Gray: differences too small to be detected with 80 % power.",
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
    return {name: [*map(escape_control_chars, lines)] for name, lines in texts.items()}
