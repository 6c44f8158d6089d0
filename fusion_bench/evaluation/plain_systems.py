"""Any system as plain ones, each with one fusion and one blend for all queries it ranks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from fusion_bench.config.query_types import type_of
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import IntArray
from fusion_bench.data.view_cache import cached_by_view
from fusion_bench.errors import AlignmentError, ConfigError
from fusion_bench.experiment.system import System


def plain_systems(
    system: System, runs: AlignedRuns
) -> Iterator[tuple[IntArray, System, AlignedRuns]]:
    """Plain systems that together cover every query: query indices, system, runs."""
    known = system.query_types
    if known is None:
        yield np.arange(len(runs.queries)), system, runs
        return
    types = _resolved_types(runs, known)
    for query_type in sorted(set(types.tolist())):
        part = _typed_runs(runs, query_type, known)
        yield np.flatnonzero(types == query_type), system.of_type(query_type), part


def _resolved_types(runs: AlignedRuns, known: tuple[str, ...]) -> NDArray[np.str_]:
    """(Q,): the type whose settings apply to each query."""
    pairs = zip(runs.types, runs.confidences, strict=True)
    return np.array([type_of(query_type, confidence, known) for query_type, confidence in pairs])


def runs_of_type(runs: AlignedRuns, query_type: str, known: tuple[str, ...]) -> AlignedRuns | None:
    """The queries to which the settings of a type apply; None = there are none.

    Args:
        runs: Aligned runs.
        query_type: One of the known types.
        known: The types that have settings.
    """
    is_present = (_resolved_types(runs, known) == query_type).any()
    return _typed_runs(runs, query_type, known) if is_present else None


@cached_by_view()
def _typed_runs(runs: AlignedRuns, query_type: str, known: tuple[str, ...]) -> AlignedRuns:
    return runs.subset(_resolved_types(runs, known) == query_type)


@contextmanager
def name_system_in_errors(system: System, where: str = "") -> Iterator[None]:
    """Prefix a configuration or alignment error with the name of the system.

    Args:
        system: The system.
        where: The part of it, as a further prefix.
    """
    try:
        yield
    except (AlignmentError, ConfigError) as error:
        kind = ConfigError if isinstance(error, ConfigError) else AlignmentError
        raise kind(f"system {system.name!r}: {where}{error}") from None


def plain_system_of(system: System, runs: AlignedRuns, query: str) -> tuple[System, AlignedRuns]:
    """The plain system that ranks a query, and the runs of that query alone.

    Args:
        system: Any system.
        runs: All sources of the dataset.
        query: Id of one of the queries.
    """
    row = runs.queries.index(query)
    for index, plain, part in plain_systems(system, runs):
        if row in index:
            return plain, part.subset(index == row)
    raise AssertionError("plain systems cover every query")
