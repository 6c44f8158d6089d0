"""Whether a candidate and a baseline can be compared, and if not, why.

Pure functions of two records. A reason names what differs, with both values.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from fusion_bench._version import ENGINE
from fusion_bench.gate.baseline import Baseline, CollectionBaseline
from fusion_bench.stats.comparison import NOISE
from fusion_bench.util.formatting import pluralize


def find_incompatibilities(
    baseline: Baseline, ties: str, collections: Iterable[CollectionBaseline]
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
    committed = baseline.by_collection
    for new in collections:
        old = committed.pop(new.collection, None)
        if old is None:
            yield f"{new.collection}: the baseline has no such collection"
        else:
            for reason in _compare_collection(old, new):
                yield f"{new.collection}: {reason}"
    for name in committed:
        yield f"{name}: in the baseline, but not in the experiment"


def _compare_collection(old: CollectionBaseline, new: CollectionBaseline) -> Iterator[str]:
    for part, digest in old.digests.items():
        now = new.digests.get(part)
        if now is None:
            yield f"{part} of the baseline is missing from the dataset"
        elif now != digest:
            yield f"contents of {part} changed: baseline {digest[:12]}, candidate {now[:12]}"
    for name in new.definitions:
        if name not in old.definitions:
            yield f"the baseline has no values of {name} (it has {', '.join(old.definitions)})"
    for path, sides in find_changes(_list_settings(old, new), _list_settings(new, old)).items():
        yield f"{path} changed: baseline {sides[0]!r}, candidate {sides[1]!r}"
    missing, added = set(old.queries) - set(new.queries), set(new.queries) - set(old.queries)
    if missing or added:
        yield f"queries changed: {len(missing):,} are missing, {len(added):,} are new"


def _list_settings(record: CollectionBaseline, other: CollectionBaseline) -> dict[str, Any]:
    """What must be the same in two records, with the options of the lists and measures of both."""
    settings = record.model_dump(include={"judgments", "binary_relevance", "split", "query_type"})
    for key in ("lists", "definitions"):
        options = record.model_dump(include={key})[key]
        settings[key] = {name: options[name] for name in options if name in getattr(other, key)}
    return settings


def find_changes(before: object, after: object, path: str = "") -> dict[str, tuple[Any, Any]]:
    """What differs between two nested mappings: path → (before, after)."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        changes: dict[str, tuple[Any, Any]] = {}
        for key in dict.fromkeys([*before, *after]):
            subpath = f"{path}.{key}" if path else str(key)
            changes |= find_changes(before.get(key), after.get(key), subpath)
        return changes
    # Through JSON: there a tuple equals a list.
    return {} if json.dumps(before) == json.dumps(after) else {path: (before, after)}


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
