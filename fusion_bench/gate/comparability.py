"""Whether a candidate and a baseline may be compared at all, and if not, why not.

Pure functions of two records. A reason names what differs, with both values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from fusion_bench._version import ENGINE
from fusion_bench.gate.baseline import Baseline, CollectionBaseline
from fusion_bench.stats.comparison import NOISE
from fusion_bench.util.formatting import pluralize

__all__ = ["find_changed_values", "find_incompatibilities"]

#: Digits of a digest that are shown.
SHOWN = 12


def find_incompatibilities(
    baseline: Baseline, ties: str, arms: Sequence[CollectionBaseline]
) -> Iterator[str]:
    """Why the candidate cannot be held to the baseline; nothing where it can.

    Lists that only one of them reads may come and go: that is a change of configuration. What the
    baseline read must still be there and be the same.

    Args:
        baseline: The committed one.
        ties: The candidate's tie rule.
        arms: The candidate by collection; its ``digests`` and ``lists`` are those of everything
            that was loaded.
    """
    if baseline.engine != ENGINE:
        yield f"engine version: baseline {baseline.engine}, here {ENGINE}"
    if baseline.ties != ties:
        yield f"tie rule: baseline {baseline.ties!r}, candidate {ties!r}"
    names = [arm.collection for arm in arms]
    for lost in baseline.collections:
        if lost.collection not in names:
            yield f"{lost.collection}: in the baseline, and the candidate has no such arm"
    for arm in arms:
        old = baseline.find_collection(arm.collection)
        if old is None:
            yield f"{arm.collection}: the baseline has no such collection"
        else:
            yield from (f"{arm.collection}: {reason}" for reason in _compare_collection(old, arm))


def _compare_collection(old: CollectionBaseline, new: CollectionBaseline) -> Iterator[str]:
    for part, digest in old.digests.items():
        now = new.digests.get(part)
        if now is None:
            yield f"{part} of the baseline is not in the dataset any more"
        elif now != digest:
            yield f"other contents of {part}: baseline {digest[:SHOWN]}, now {now[:SHOWN]}"
    for part, facts in old.lists.items():
        here = new.lists.get(part)
        if here is not None and here != facts:
            change = _describe_change(facts.model_dump(), here.model_dump())
            yield f"{part} takes part otherwise: {change}"
    for what in ("judgments", "binary_relevance", "split", "query_type"):
        before, after = getattr(old, what), getattr(new, what)
        if before != after:
            yield f"other {what.replace('_', ' ')}: baseline {before!r}, candidate {after!r}"
    if set(old.queries) != set(new.queries):
        lost = len(set(old.queries) - set(new.queries))
        more = len(set(new.queries) - set(old.queries))
        yield f"other queries in the split: {lost} of the baseline are gone, {more} are new"
    yield from _compare_definitions(old, new)


def _compare_definitions(old: CollectionBaseline, new: CollectionBaseline) -> Iterator[str]:
    for name, definition in new.definitions.items():
        before = old.definitions.get(name)
        if before is None or name not in old.values:
            known = ", ".join(old.definitions)
            yield f"the baseline has no values of {name} (it has {known})"
        elif before != definition:
            change = _describe_change(before, definition)
            yield f"{name} is defined otherwise: {change}"


def _describe_change(before: Mapping[str, object], after: Mapping[str, object]) -> str:
    return ", ".join(
        f"{key} {before.get(key)!r} → {after.get(key)!r}"
        for key in {**before, **after}
        if before.get(key) != after.get(key)
    )


def find_changed_values(old: CollectionBaseline, again: CollectionBaseline) -> Iterator[str]:
    """Where the baseline's own configuration, run today on the same data, gives other values.

    Args:
        old: As committed.
        again: The same system on the same queries, evaluated now.
    """
    committed = old.value_arrays(again.queries)
    for name, now in again.value_arrays().items():
        before = committed[name]
        wrong = np.flatnonzero(~(np.abs(now - before) <= NOISE))
        if len(wrong):
            q = wrong[0]
            yield (
                f"{old.collection}: {name} of the baseline's own configuration is not what was "
                f"committed for {pluralize(len(wrong), 'query')} (query {again.queries[q]!r}: "
                f"{before[q]:.6g} then, {now[q]:.6g} now): the engine computes otherwise"
            )
