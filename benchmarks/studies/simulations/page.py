"""Results of simulations: their files, their tables as CSV, and docs/studies/statistics.md."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.studies.simulations.promise import Estimate, Promise
from benchmarks.table import replace_between_marks

RESULTS = Path(__file__).parent / "results"
PAGE = Path(__file__).parents[3] / "docs" / "studies" / "statistics.md"


#: Promises that do not hold, listed at most.
MOST_LINES = 4


@dataclass(frozen=True)
class Result:
    """All that a simulation measured.

    Attributes:
        name: Of its module.
        title: Of its table.
        description: What is simulated, how the data are made, what is promised.
        draws: As asked for.
        promises: Shares of runs.
        estimates: Means over runs.
    """

    name: str
    title: str
    description: str
    draws: int
    promises: tuple[Promise, ...]
    estimates: tuple[Estimate, ...]


def write_result(result: Result, folder: Path = RESULTS) -> Path:
    """Write a result as JSON, named after its module."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{result.name}.json"
    path.write_text(f"{json.dumps(asdict(result), indent=1, ensure_ascii=False)}\n", "utf-8")
    return path


def read_result(path: Path) -> Result:
    """A result as ``write_result`` wrote it."""
    cells = json.loads(path.read_text("utf-8"))
    promises = tuple(Promise(**each) for each in cells.pop("promises"))
    estimates = tuple(Estimate(**each) for each in cells.pop("estimates"))
    return Result(promises=promises, estimates=estimates, **cells)


def write_table(result: Result, page: Path = PAGE) -> None:
    """Renew a simulation's CSV file, and its text between the marks of the page.

    Raises:
        ValueError: The page has no such marks.
    """
    replace_between_marks(page, format_result(result), mark=f"simulation: {result.name}")
    page.with_name(table_name(result)).write_text(format_table(result), "utf-8")


def table_name(result: Result) -> str:
    """The CSV file beside the page."""
    return f"statistics-{result.name.replace('_', '-')}.csv"


def format_result(result: Result) -> str:
    """Title, description, and how many promises hold, with an empty line at both ends."""
    command = f"python -m benchmarks.studies.simulations {result.name} --draws {result.draws}"
    promised = [each for each in result.promises if each.holds is not None]
    held = sum(bool(each.holds) for each in promised)
    text = (
        f"**{result.title}.** {result.description} {held} of {len(promised)} promised shares hold "
        f"([table]({table_name(result)}); `{command}`)."
    )
    lines = [
        f"- not held: {each.design}: {each.event}: {_percent(each.share)} %, promised {each.side} "
        f"{100 * (each.limit or 0):g} %"
        for each in promised
        if not each.holds
    ]
    if len(lines) > MOST_LINES:
        lines[MOST_LINES:] = [f"- not held: {len(lines) - MOST_LINES} more in the table"]
    return "\n" + "\n".join([text, *([""] if lines else []), *lines]) + "\n\n"


def format_table(result: Result) -> str:
    """All shares and means as CSV."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["design", "event", "runs", "value", "low", "high", "promised", "holds"])
    for each in result.promises:
        low, high = each.interval
        limit = "" if each.limit is None else f"{each.side} {each.limit:g}"
        holds = {None: "", True: "yes", False: "no"}[each.holds]
        shares = (f"{share:.4f}" for share in (each.share, low, high))
        writer.writerow([each.design, each.event, each.runs, *shares, limit, holds])
    for mean in result.estimates:
        ends = (mean.value - 2 * mean.standard_error, mean.value + 2 * mean.standard_error)
        numbers = (f"{value:.4g}" for value in (mean.value, *ends))
        writer.writerow([mean.design, mean.quantity, "", *numbers, "", ""])
    return text.getvalue()


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"
