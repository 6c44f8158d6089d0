"""Which class of queries, by type or intent, a query belongs to."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from fusion_bench.config.query_classes import BY_TYPE, ClassKey
from fusion_bench.config.query_types import (
    PREDICTED_CONFIDENCE,
    PREDICTED_TYPE,
    UNSURE,
    TypeSource,
)
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.records import Query
from fusion_bench.data.view_cache import cached_by_view
from fusion_bench.experiment.system import System


def choose_class(system: System, query: Query) -> str | None:
    """The query type or intent whose numbers a query gets; None = one set for all.

    With ``types: predicted`` a predicted type among its fields counts before its type, which in a
    live query is a prediction anyway.
    """
    key, known = system.class_key, system.query_classes
    if key is None or known is None:
        return None
    value, confidence = query.value_of(key.field), query.confidence
    if key is BY_TYPE and system.types == "hybrid":
        value, confidence = UNSURE, None
    elif key is BY_TYPE and system.types == "predicted" and PREDICTED_TYPE in query.fields:
        value = query.fields[PREDICTED_TYPE]
        confidence = _parse_confidence(query.fields.get(PREDICTED_CONFIDENCE))
    return key.class_of(value, confidence, known)


def _parse_confidence(text: str | None) -> float | None:
    return None if text is None else float(text)


def _types_of(
    runs: AlignedRuns, types: TypeSource | None
) -> tuple[tuple[str | None, ...], tuple[float | None, ...]]:
    """(Q,) types and (Q,) confidences that count."""
    if types == "hybrid":
        return (UNSURE,) * len(runs.queries), (None,) * len(runs.queries)
    if types == "predicted":
        texts = runs.values_of(PREDICTED_CONFIDENCE)
        return runs.values_of(PREDICTED_TYPE), tuple(map(_parse_confidence, texts))
    return runs.types, runs.confidences


def resolve_classes(
    runs: AlignedRuns, key: ClassKey, known: Collection[str], types: TypeSource | None = None
) -> NDArray[np.str_]:
    """(Q,): the query type or intent whose numbers each query gets.

    Args:
        runs: Aligned runs.
        key: What decides.
        known: The classes that have numbers.
        types: Which types count, where types decide; None = those that are given.
    """
    values, confidences = runs.values_of(key.field), runs.confidences
    if key is BY_TYPE:
        values, confidences = _types_of(runs, types)
    pairs = zip(values, confidences, strict=True)
    return np.array([key.class_of(value, confidence, known) for value, confidence in pairs])


def runs_of_class(
    runs: AlignedRuns,
    name: str,
    key: ClassKey,
    known: tuple[str, ...],
    types: TypeSource | None = None,
) -> AlignedRuns | None:
    """The queries that get the numbers of a class; None = there are none.

    Args:
        runs: Aligned runs.
        name: One of the known classes.
        key: What decides.
        known: The classes that have numbers.
        types: Which types count; see :func:`resolve_classes`.
    """
    is_present = (resolve_classes(runs, key, known, types) == name).any()
    return runs_of_resolved_class(runs, name, key, known, types) if is_present else None


@cached_by_view()
def runs_of_resolved_class(
    runs: AlignedRuns, name: str, key: ClassKey, known: tuple[str, ...], types: TypeSource | None
) -> AlignedRuns:
    """The queries that get the numbers of a class, of which there is one at least."""
    return runs.subset(resolve_classes(runs, key, known, types) == name)
