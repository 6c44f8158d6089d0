"""What runs in a worker: it opens a dataset once, keeps it, and answers calls about its queries."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from functools import cache, lru_cache
from typing import Any

import numpy as np

from fusion_bench.data.records import Query
from fusion_bench.data.rows.ids import encode_ids
from fusion_bench.errors import FusionBenchError
from fusion_bench.tune.space.objective import TuningObjective
from fusion_bench.tune.space.open_objective import ObjectivePaths

_lock = threading.Lock()  # a Dask worker may have several threads
_open_objective = cache(ObjectivePaths.open)


def run_call(function: Callable[..., Any], argument: Any) -> Any:  # noqa: ANN401
    """A function's result, or its error in a form that every process can read."""
    try:
        with _lock:
            return function(argument)
    except FusionBenchError as error:
        raise FusionBenchError(str(error)) from None


@lru_cache(maxsize=32)  # the folds of a search and some types, or some folders
def _select_queries(paths: ObjectivePaths, rows: bytes) -> TuningObjective:
    objective, _ = _open_objective(paths)
    keep = np.isin(np.arange(len(objective.runs.queries)), np.frombuffer(rows, dtype=np.int64))
    return objective.subset_queries(keep)


def clear_caches() -> None:
    """Forget the datasets that are open."""
    _open_objective.cache_clear()
    _select_queries.cache_clear()


def call_on_part(call: tuple[Any, ...]) -> object:
    """What a method returns on some queries of an objective, for a system and its space."""
    paths, rows, system, parameters, function, argument = call
    part = _select_queries(paths, rows.tobytes())
    return function(replace(part, system=system, parameters=parameters), argument)


def outline_objective(
    paths: ObjectivePaths,
) -> tuple[TuningObjective, ObjectivePaths, Mapping[str, Query]]:
    """An objective without candidates, its paths and fingerprint, and what is known of queries."""
    objective, known = _open_objective(paths)
    runs = objective.runs
    values = ((item.name, getattr(runs, item.name)) for item in fields(runs))
    empty: Any = {name: value[..., :0] for name, value in values if isinstance(value, np.ndarray)}
    outline = replace(runs, **empty, vocabulary=encode_ids([]).vocabulary)
    paths = replace(paths, fingerprint=objective.fingerprint)
    return replace(objective, runs=outline, qrels=None, later_trials=()), paths, known
