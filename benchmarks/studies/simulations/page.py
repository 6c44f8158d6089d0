"""Results of simulations: their files, and their tables in docs/studies/statistics.md."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.studies.simulations.promise import Estimate, Promise
from benchmarks.table import replace_between_marks

RESULTS = Path(__file__).parent / "results"
PAGE = Path(__file__).parents[3] / "docs" / "studies" / "statistics.md"


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
    """Renew the table between ``<!-- simulation: NAME -->`` and ``<!-- /simulation: NAME -->``.

    Raises:
        ValueError: The page has no such marks.
    """
    replace_between_marks(page, format_result(result), mark=f"simulation: {result.name}")


def format_result(result: Result) -> str:
    """Title, description and tables as Markdown, with an empty line at both ends."""
    command = f"python -m benchmarks.studies.simulations {result.name} --draws {result.draws}"
    parts = [
        f"**{result.title}.** {result.description} (`{command}`)",
        _format_promises(result.promises),
        _format_estimates(result.estimates),
    ]
    return "\n" + "\n\n".join(part for part in parts if part) + "\n\n"


def _format_promises(promises: Sequence[Promise]) -> str:
    if not promises:
        return ""
    lines = [
        "| design | event | runs | share, 95 % interval | promised | holds |",
        "|:--|:--|--:|:--|:--|:--|",
    ]
    for each in promises:
        low, high = each.interval
        share = f"{_percent(each.share)} % [{_percent(low)}, {_percent(high)}]"
        limit = "–" if each.limit is None else f"{each.side} {100 * each.limit:g} %"
        holds = {None: "–", True: "yes", False: "**no**"}[each.holds]
        cells = (each.design, each.event, f"{each.runs:,}", share, limit, holds)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def _format_estimates(estimates: Sequence[Estimate]) -> str:
    if not estimates:
        return ""
    lines = ["| design | quantity | mean ± standard error |", "|:--|:--|:--|"]
    for each in estimates:
        value = f"{each.value:.4g} ± {each.standard_error:.1g}"
        lines.append(f"| {each.design} | {each.quantity} | {value} |")
    return "\n".join(lines)
