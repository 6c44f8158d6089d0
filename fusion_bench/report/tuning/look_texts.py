"""Which look at the held-out queries a run takes, and what the next one costs, in words."""

from __future__ import annotations

from fusion_bench.report.tuning_records.look import Look
from fusion_bench.util.formatting import format_percent


def describe_look(look: Look | None) -> str:
    """Number, level and power of the look; empty where nothing was looked at."""
    if look is None:
        return ""
    level = format_level(look.level)
    if look.number is None:
        return f"Looks were not counted ({look.note}). The verdict is tested one-sided at {level}."
    again = ", asked again about the same numbers and queries" if look.is_repeated else ""
    place = "" if look.line is None else f" It is line {look.line} of {look.file}."
    place += f" The ledger is there, because {look.note}." if look.note else ""
    place += f" Looks are missing, so this number is too low: {look.lost}." if look.lost else ""
    return (
        f"This is look {look.number} at these held-out queries{again}. It is tested one-sided at "
        f"{level}, with {format_percent(look.power)} power where a single test has 80 %."
        f"{_describe_plan(look)}{_describe_next(look)}{place}"
    )


def advise_next_look(look: Look | None) -> str:
    """What judging more queries leads to; empty where looks are not counted."""
    if look is None or look.next_number is None or look.next_level is None:
        return ""
    return (
        f" The next look is look {look.next_number}, tested one-sided at "
        f"{format_level(look.next_level)}; judge all the queries that this takes before it."
    )


def format_level(level: float) -> str:
    """``.02``, ``.0025`` or ``1.2e-05``."""
    return f"{level:.2g}".removeprefix("0")


def _describe_plan(look: Look) -> str:
    if look.max_queries is None:
        return ""
    return f" It belongs to a plan of {look.max_queries:,} held-out queries (Lan–DeMets)."


def _describe_next(look: Look) -> str:
    if look.next_number is None or look.next_level is None:
        return " It is the last of its plan." if look.max_queries is not None else ""
    level, factor = format_level(look.next_level), look.next_query_factor or 1.0
    return (
        f" The next, look {look.next_number}, is tested at {level} and needs {factor:.1f} times "
        "the queries of a single test."
    )
