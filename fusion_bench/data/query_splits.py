"""Splits of the queries into tuning and held-out ones, which never share a group.

A group (the query itself, where none is declared) gets a place in [0, 1): the hash of its id and
the split seed. Within each query type the first groups in that order are held out. So only names
decide, not the order of a file or a random state. An added group takes the side of its own place,
and moves at most its neighbors at the threshold.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import BoolArray, IntArray, make_readonly
from fusion_bench.data.records import Query
from fusion_bench.errors import ConfigError

#: The split to tune on and the one to evaluate on, where a dataset has both.
TUNE_ON, JUDGE_ON = "dev", "test"


@dataclass(frozen=True, eq=False)
class QuerySplit:
    """The two parts; queries in neither (a ``train`` split) take no part.

    Attributes:
        tune: Shape (Q,): numbers are chosen on these.
        held_out: Shape (Q,): these decide, and nothing is ever chosen on them.
        origin: How they were told apart, in words.
        split_seed: What was hashed with the ids; None where the dataset's own splits were taken.
    """

    tune: BoolArray
    held_out: BoolArray
    origin: str
    split_seed: str | None = None

    def __post_init__(self) -> None:
        for part, array in (("tune on", self.tune), ("judge on", self.held_out)):
            if not array.any():
                raise ConfigError(
                    f"split: no query is left to {part}: choose another share or split_seed, or "
                    "give the dataset more judged queries"
                )
            make_readonly(array)
        if (self.tune & self.held_out).any():
            raise ConfigError("split: a query is in both parts: give each query one part")


def hash_position(name: str, split_seed: str) -> float:
    """Place in [0, 1): the first 53 bits of the SHA-256 of split seed, zero byte and name."""
    digest = hashlib.sha256(f"{split_seed}\0{name}".encode()).digest()
    return (int.from_bytes(digest[:8], "big") >> 11) / 2**53


def sort_by_hash(names: Iterable[str], split_seed: str) -> list[str]:
    """Names by their place."""
    return sorted(names, key=lambda name: (hash_position(name, split_seed), name))


def groups_by_type(
    groups: Sequence[str], types: Sequence[str | None]
) -> dict[str | None, list[str]]:
    """The groups of each query type, a group under the type that most of its queries have.

    Args:
        groups: Shape (Q,): the group of each query.
        types: Shape (Q,): its type or None.

    Returns:
        Type → its groups, in the order of first appearance; no group appears twice.
    """
    counts: dict[str, Counter[str | None]] = {}
    for group, query_type in zip(groups, types, strict=True):
        counts.setdefault(group, Counter())[query_type] += 1
    groups_of: dict[str | None, list[str]] = {}
    for group, by_type in counts.items():
        # Equally common types: the first by name, so that the order of queries decides nothing.
        chosen = min(by_type, key=lambda name: (-by_type[name], name is not None, name or ""))
        groups_of.setdefault(chosen, []).append(group)
    return groups_of


def hashed_split(
    groups: Sequence[str], types: Sequence[str | None], *, split_seed: str, held_out: float = 0.5
) -> QuerySplit:
    """Hold out a share of the queries of each type, whole groups at a time.

    Args:
        groups: Shape (Q,): the group of each query, its own id where none is declared.
        types: Shape (Q,): its type or None.
        split_seed: Another one gives another split.
        held_out: Share of each type's queries that decides, above 0 and below 1.

    Raises:
        ConfigError: The share is out of range, or a part would be empty.
    """
    if not 0 < held_out < 1:
        raise ConfigError(f"held_out: must be above 0 and below 1, not {held_out}")
    sizes = Counter(groups)
    names: set[str] = set()
    for members in groups_by_type(groups, types).values():
        before, wanted = 0, held_out * sum(sizes[name] for name in members)
        # The first groups by place whose queries come nearest to the share.
        for name in sort_by_hash(members, split_seed):
            if before + sizes[name] / 2 > wanted:
                break
            names.add(name)
            before += sizes[name]
    mask = np.array([group in names for group in groups], dtype=bool)
    kind = "group" if len(sizes) < len(groups) else "query"
    origin = f"{held_out:.0%} of each query type held out by the hash of the {kind} id"
    return QuerySplit(~mask, mask, origin, split_seed)


def dataset_split(queries: Sequence[str], known: Mapping[str, Query]) -> QuerySplit | None:
    """The dataset's own: tune on ``dev``, judge on ``test``; None where it has not both.

    Args:
        queries: Shape (Q,): ids of the judged queries.
        known: What the dataset says about them.
    """
    splits = [known[query].split if query in known else None for query in queries]
    if TUNE_ON not in splits or JUDGE_ON not in splits:
        return None
    tune, judge = (np.array([s == name for s in splits]) for name in (TUNE_ON, JUDGE_ON))
    return QuerySplit(tune, judge, f"the dataset's own: tuned on {TUNE_ON}, judged on {JUDGE_ON}")


def split_queries(
    runs: AlignedRuns, known: Mapping[str, Query], *, split_seed: str, held_out: float = 0.5
) -> QuerySplit:
    """The dataset's own split where it has one, otherwise :func:`hashed_split`.

    Args:
        runs: All judged queries that take part.
        known: What the dataset says about them.
        split_seed: For the hash; ignored where the dataset decides.
        held_out: Share to hold out, ignored likewise.

    Raises:
        ConfigError: A group that stands in both parts of the dataset's own split, or an empty part.
    """
    split = dataset_split(runs.queries, known)
    if split is None:
        return hashed_split(runs.groups, runs.types, split_seed=split_seed, held_out=held_out)
    tune, judge = (
        {runs.groups[q] for q in np.flatnonzero(m)} for m in (split.tune, split.held_out)
    )
    both = tune & judge
    if both:
        raise ConfigError(
            f"split: group {min(both)!r} has queries in {TUNE_ON} and in {JUDGE_ON} ({len(both)} "
            "groups do): queries of one group are not independent, so put each whole group into "
            "one split"
        )
    return split


def assign_folds(
    groups: Sequence[str], types: Sequence[str | None], *, folds: int, split_seed: str
) -> IntArray:
    """Deal whole groups into folds, type by type, in the order of their hash.

    Args:
        groups: Shape (Q,): the group of each query.
        types: Shape (Q,): its type or None.
        folds: K, at least 2.
        split_seed: Another one gives other folds.

    Returns:
        Shape (Q,): the fold of each query, 0 … K−1; no fold is empty.

    Raises:
        ConfigError: Fewer than two folds, or fewer groups than folds.
    """
    distinct = len(set(groups))
    if not 2 <= folds <= distinct:
        raise ConfigError(
            f"folds: must be at least 2 and at most the number of groups to tune on, {distinct}, "
            f"not {folds}"
        )
    fold: dict[str, int] = {}
    for _, members in sorted(groups_by_type(groups, types).items(), key=lambda item: item[0] or ""):
        for name in sort_by_hash(members, split_seed):
            fold[name] = len(fold) % folds
    codes = np.array([fold[group] for group in groups], dtype=np.int64)
    make_readonly(codes)
    return codes
