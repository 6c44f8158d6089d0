"""Plain systems on queries for which some of their sources are switched off."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import BoolArray, IntArray
from fusion_bench.data.view_cache import cached_by_view
from fusion_bench.errors import ConfigError
from fusion_bench.evaluation.ranking.removed_sources import remove_sources
from fusion_bench.experiment.system import System
from fusion_bench.fuse import CrossFitted, Trainable


def split_by_switches(
    system: System, runs: AlignedRuns
) -> Iterator[tuple[IntArray, System, AlignedRuns]]:
    """The system without the sources that are off: query indices, system, runs.

    A source that is off for a query weighs 0 for it, so that neither a sum of weights nor a
    greatest possible score counts it. A trained fusion knows its sources by their number: it sees
    a source that is off as one that returned nothing.

    Args:
        system: A plain system.
        runs: All sources of the dataset and its stages.

    Raises:
        ConfigError: The sources that are on do not fit the fusion.
    """
    is_trained = isinstance(system.fusion, CrossFitted | Trainable)
    if is_trained or not any(runs.switches[row] for row in _switch_rows(runs, system)):
        yield np.arange(len(runs.queries)), system, runs
        return
    for removed, keep in _list_patterns(runs, system.runs):
        part = runs if keep.all() else _queries_of(runs, system.runs, removed)
        if not removed:
            yield np.flatnonzero(keep), system, part
            continue
        roles = [runs.roles[i] for i in runs.rows(system.runs)]
        try:
            plain = remove_sources(system, removed, roles)
        except ConfigError as error:
            first = runs.queries[int(np.argmax(keep))]
            raise ConfigError(
                f"system {system.name!r}: {', '.join(removed)} off for {keep.sum():,} queries "
                f"(for example {first!r}): {error}"
            ) from None
        yield np.flatnonzero(keep), plain, part


def _switch_rows(runs: AlignedRuns, system: System) -> list[int]:
    """The rows of the system's sources; empty where no source has a switch."""
    return runs.rows(system.runs) if runs.switches else []


@cached_by_view()
def _list_patterns(
    runs: AlignedRuns, sources: tuple[str, ...]
) -> tuple[tuple[tuple[str, ...], BoolArray], ...]:
    """Each set of sources that is off for some queries, and which queries, (Q,)."""
    patterns, codes = np.unique(runs.off[runs.rows(sources)], axis=1, return_inverse=True)
    names = np.array(sources, dtype=object)
    return tuple(
        (tuple(names[is_off]), codes.reshape(-1) == code) for code, is_off in enumerate(patterns.T)
    )


@cached_by_view()
def _queries_of(
    runs: AlignedRuns, sources: tuple[str, ...], removed: tuple[str, ...]
) -> AlignedRuns:
    """The queries for which just these of the sources are off."""
    [keep] = [keep for names, keep in _list_patterns(runs, sources) if names == removed]
    return runs.subset(keep)
