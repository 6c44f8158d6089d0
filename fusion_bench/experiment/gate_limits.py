"""Limits of a gate that no drop can reach, and that would therefore check nothing."""

from __future__ import annotations

from collections.abc import Iterator

from fusion_bench.config.files.yaml_source import Source
from fusion_bench.config.models import Location
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.gate_settings import GatePolicy
from fusion_bench.measures.bounds import is_bounded


def refuse_unreachable_limits(policy: GatePolicy, source: Source) -> None:
    """Refuse tolerances and guards that no values of their measure can break.

    Args:
        policy: The policy of the gate.
        source: The experiment's file with its lines.

    Raises:
        ConfigError: Names the line, the limit and what is allowed.
    """
    for location, measure, limit in _list_limits(policy, source):
        if is_bounded(measure) and limit >= 1:
            raise ConfigError(
                f"{source.where(location)}: less than 1 is needed, as {measure} has values from 0 "
                f"to 1 and cannot fall by more than 1, given {limit:g}"
            )
    for i, guard in enumerate(policy.guards):
        if guard.max_share >= 1:
            raise ConfigError(
                f"{source.where(('gate', 'guards', i, 'max_share'))}: less than 1 is needed, as a "
                f"guard that all queries may break checks nothing, given {guard.max_share:g}"
            )


def _list_limits(policy: GatePolicy, source: Source) -> Iterator[tuple[Location, str, float]]:
    """Path, measure and value of each tolerance and of each guard's loss."""
    for name, tolerance in policy.checks.items():
        for key, limit in tolerance.stated_limits.items():
            yield (*locate_check(source, name), key), name, limit
    for i, guard in enumerate(policy.guards):
        yield ("gate", "guards", i, "max_loss"), guard.measure, guard.max_loss


def locate_check(source: Source, measure: str) -> Location:
    """The path of a measure's tolerances; the short form of a policy has no ``checks``.

    Args:
        source: The experiment's file with its lines.
        measure: The measure as the policy names it.
    """
    places: tuple[Location, ...] = (("gate", measure), ("gate", "checks", measure))
    return next((path for path in places if path in source.lines), places[1])
