"""Simulated power of cross-fitting and of the half split, see docs/statistics.md."""

from __future__ import annotations

from typing import Final

from fusion_bench.report.tuning_records.split_choice import SimulatedPower

#: Of ``benchmarks/simulations/results/few_queries.json``, 500 samples a row.
SIMULATED: Final = (
    SimulatedPower(collection="jqara", queries=40, half_split=0.124, cross_fitting=0.198),
    SimulatedPower(collection="jqara", queries=60, half_split=0.270, cross_fitting=0.328),
    SimulatedPower(collection="jqara", queries=100, half_split=0.518, cross_fitting=0.548),
    SimulatedPower(collection="attack", queries=40, half_split=0.020, cross_fitting=0.076),
    SimulatedPower(collection="attack", queries=60, half_split=0.054, cross_fitting=0.104),
    SimulatedPower(collection="attack", queries=100, half_split=0.130, cross_fitting=0.166),
)


def nearest_power(queries: int) -> tuple[SimulatedPower, ...]:
    """The rows of the simulated number of queries that is the nearest."""
    nearest = min((row.queries for row in SIMULATED), key=lambda size: abs(size - queries))
    return tuple(row for row in SIMULATED if row.queries == nearest)
