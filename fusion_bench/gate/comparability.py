"""Whether a candidate and a baseline can be compared, and if not, why.

Pure functions of two records. A reason names what differs, with both values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from fusion_bench._version import ENGINE
from fusion_bench.gate.baseline import Baseline, CollectionBaseline
from fusion_bench.stats.comparison import NOISE
from fusion_bench.util.formatting import pluralize

#: Printed digits of a digest.
DIGEST_LENGTH = 12


def find_incompatibilities(
    baseline: Baseline, ties: str, collections: Sequence[CollectionBaseline]
) -> Iterator[str]:
    """Why the candidate and the baseline cannot be compared; nothing where they can.

    Lists that only the candidate reads may be new: that is a change of configuration. Lists that
    the baseline reads must exist unchanged.

    Args:
        baseline: The committed one.
        ties: The candidate's tie rule.
        collections: The candidate's data, with ``digests`` and ``lists`` of all that was loaded.
    """
    if baseline.engine != ENGINE:
        yield f"engine version: baseline {baseline.engine}, here {ENGINE}"
    if baseline.ties != ties:
        yield f"tie rule: baseline {baseline.ties!r}, candidate {ties!r}"
    names = [new.collection for new in collections]
    for old in baseline.collections:
        if old.collection not in names:
            yield f"{old.collection}: in the baseline, but not in the experiment"
    for new in collections:
        committed = baseline.find_collection(new.collection)
        if committed is None:
            yield f"{new.collection}: the baseline has no such collection"
        else:
            for reason in _compare_collection(committed, new):
                yield f"{new.collection}: {reason}"


def _compare_collection(old: CollectionBaseline, new: CollectionBaseline) -> Iterator[str]:
    for part, digest in old.digests.items():
        now = new.digests.get(part)
        if now is None:
            yield f"{part} of the baseline is missing from the dataset"
        elif now != digest:
            before, after = digest[:DIGEST_LENGTH], now[:DIGEST_LENGTH]
            yield f"contents of {part} changed: baseline {before}, candidate {after}"
    for part, description in old.lists.items():
        here = new.lists.get(part)
        if here is not None and here != description:
            change = _describe_change(description.model_dump(), here.model_dump())
            yield f"options of {part} changed: {change}"
    for key in ("judgments", "binary_relevance", "split", "query_type"):
        before, after = getattr(old, key), getattr(new, key)
        if before != after:
            yield f"{key.replace('_', ' ')} changed: baseline {before!r}, candidate {after!r}"
    missing, added = set(old.queries) - set(new.queries), set(new.queries) - set(old.queries)
    if missing or added:
        yield f"queries changed: {len(missing):,} are missing, {len(added):,} are new"
    yield from _compare_definitions(old, new)


def _compare_definitions(old: CollectionBaseline, new: CollectionBaseline) -> Iterator[str]:
    for name, definition in new.definitions.items():
        before = old.definitions.get(name)
        if before is None or name not in old.values:
            known = ", ".join(old.definitions)
            yield f"the baseline has no values of {name} (it has {known})"
        elif before != definition:
            change = _describe_change(before, definition)
            yield f"the definition of {name} changed: {change}"


def _describe_change(before: Mapping[str, object], after: Mapping[str, object]) -> str:
    return ", ".join(
        f"{key} {before.get(key)!r} → {after.get(key)!r}"
        for key in {**before, **after}
        if before.get(key) != after.get(key)
    )


def find_changed_values(old: CollectionBaseline, new: CollectionBaseline) -> Iterator[str]:
    """Where the baseline's configuration does not reproduce the committed values.

    Args:
        old: As committed.
        new: The same system on the same queries, evaluated now.
    """
    committed = old.value_arrays(new.queries)
    for name, now in new.value_arrays().items():
        before = committed[name]
        changed = np.flatnonzero(~(np.abs(now - before) <= NOISE))
        if len(changed):
            q = changed[0]
            yield (
                f"{old.collection}: the baseline's configuration does not reproduce {name} of "
                f"{pluralize(len(changed), 'query')} (query {new.queries[q]!r}: committed "
                f"{before[q]:.6g}, now {now[q]:.6g})"
            )
