"""What ``rerank --simulate`` prints."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fusion_bench.cli._console import echo, echo_table
from fusion_bench.rerank.simulation.simulation_result import SimulationPoint, SimulationResult

__all__ = ["print_study"]

#: Heading → what stands below it.
_Cells = dict[str, Callable[[SimulationPoint], str]]
_DEADLINE: _Cells = {
    "deadline, ms": lambda one: "none" if one.deadline_ms is None else f"{one.deadline_ms:g}"
}


def print_study(found: SimulationResult) -> None:
    """Two tables and what they say."""
    echo(f"Replayed: {found.first}; second provider: {found.second or 'none'}.")
    _table("by how often the provider is down", found, found.by_failure, _down(found))
    _table("by deadline, nothing failing, with a breaker", found, found.by_deadline, _DEADLINE)
    echo(
        f"{found.measure}: always reranked {found.reranked:.4f}, fused order {found.fused:.4f}; "
        "in brackets the 95 % interval of the simulation's own noise, over its repeats."
    )
    for line in (found.answer, *found.notes):
        echo(line)


def _down(found: SimulationResult) -> _Cells:
    cells: _Cells = {
        "provider down": lambda one: f"{100 * one.failure_rate:.4g} %",
        "breaker": lambda one: _yes(is_so=one.breaker),
    }
    if found.second is not None:
        cells["second provider"] = lambda one: _yes(is_so=one.fallback)
    return cells


def _table(
    title: str, found: SimulationResult, points: Sequence[SimulationPoint], first: _Cells
) -> None:
    cells: _Cells = {
        **first,
        found.measure: _quality,
        "share reranked": lambda one: f"{100 * one.reranked:.1f} %",
        "latency mean, ms": lambda one: f"{one.mean:.0f}",
        "median, ms": lambda one: f"{one.p50:.0f}",
        "95th percentile, ms": lambda one: f"{one.p95:.0f}",
    }
    rows = [[cell(one) for cell in cells.values()] for one in points]
    echo_table(list(cells), rows, title=title)


def _quality(one: SimulationPoint) -> str:
    if one.low is None or one.high is None:
        return f"{one.quality:.4f}"
    return f"{one.quality:.4f} [{one.low:.4f}, {one.high:.4f}]"


def _yes(*, is_so: bool) -> str:
    return "yes" if is_so else "no"
