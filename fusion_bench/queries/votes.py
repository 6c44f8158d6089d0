"""A person's votes on generated queries: which of them a user could have asked."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from fusion_bench.errors import DataError
from fusion_bench.io.json_objects import read_objects
from fusion_bench.util.files.atomic_files import append_whole


def read_votes(path: Path, queries: Sequence[str]) -> dict[str, bool]:
    """The votes of a file: query id → keep; the last vote on a query counts.

    Args:
        path: JSON Lines with ``id`` and ``keep``, true or false.
        queries: The known ids.

    Raises:
        DataError: A line breaks a rule, or names an unknown query.
    """
    known = set(queries)
    votes: dict[str, bool] = {}
    for number, item in read_objects(path):
        where = f"{path}:{number}"
        query, keep = item.get("id"), item.get("keep")
        if not isinstance(query, str) or not isinstance(keep, bool):
            raise DataError(f"{where}: a vote needs an 'id', and 'keep': true or false")
        if query not in known:
            raise DataError(f"{where}: no query {query!r}: the votes are on another file's queries")
        votes[query] = keep
    return votes


def save_vote(path: Path, query: str, *, keep: bool) -> None:
    """Append one vote; a killed session loses none.

    Raises:
        FusionBenchError: The file cannot be written to.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    append_whole(path, f"{json.dumps({'id': query, 'keep': keep})}\n".encode())


def list_open(queries: Sequence[str], votes: Mapping[str, bool], *, seed: int = 0) -> Iterator[str]:
    """The queries without a vote, in random order, so that whoever stops early saw a sample."""
    for i in np.random.default_rng(seed).permutation(len(queries)).tolist():
        if queries[i] not in votes:
            yield queries[i]
