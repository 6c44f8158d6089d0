"""Queries that depend on each other, that a model wrote, or whose grades tell nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Final

import numpy as np

from fusion_bench.checks.records import DataWarning, ListInfo, NearDuplicates
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.query_groups import MAX_SHARE, MIN_GROUPS, find_query_groups
from fusion_bench.data.records import Query
from fusion_bench.io.dataset import Dataset
from fusion_bench.io.query_groups import write_groups
from fusion_bench.util.formatting import format_percent, pluralize

#: Reports warn where so large a part of the queries is linked.
MIN_SHARE = 0.01
#: Where this part is linked, nothing is shipped before groups are declared or refused.
WITHHOLDING_SHARE = 0.1
#: What is said where the dataset chooses how groups are found.
CHOSEN_GROUPING = {
    "auto": "groups: auto: every link between queries was followed.",
    "none": "groups: none: nothing was searched for groups but the queries' own field.",
}


def find_near_duplicates(
    dataset: Dataset, queries: Sequence[str] | None = None, *, min_share: float = MIN_SHARE
) -> NearDuplicates | None:
    """What a search among a dataset's queries finds.

    Args:
        dataset: With the runs that are used; these are compared.
        queries: The queries to search; all judged ones by default.
        min_share: Least share of linked queries that is worth a record.

    Returns:
        None where few queries or none are linked, or the dataset says ``groups: auto`` or
        ``groups: none``.
    """
    if dataset.spec.grouping in {"auto", "none"}:
        return None
    searched = dataset.qrels.queries if queries is None else tuple(queries)
    groups = find_query_groups(searched, dataset.queries, [*dataset.runs.values()], dataset.qrels)
    linked = int(groups.sizes.sum())
    if not linked or linked < min_share * len(searched):
        return None
    return NearDuplicates(
        dataset=dataset.name if dataset.has_file else None,
        queries=len(searched),
        linked=linked,
        groups=len(groups.joined),
        largest=int(groups.sizes.max()),
        links=dict(Counter(link.reason for link in groups.links)),
        is_too_large=groups.is_too_large,
        withholds=dataset.spec.grouping == "identical"
        and linked >= WITHHOLDING_SHARE * len(searched),
    )


def write_found_groups(
    dataset: Dataset, path: Path, *, is_owned: bool = False
) -> dict[str, int | str]:
    """Write the groups that are found among all judged queries, for ``groups`` of a dataset.yaml.

    Args:
        dataset: The dataset.
        path: Where to.
        is_owned: Whether its ``groups`` are this very file.

    Returns:
        The file, and the numbers of groups and queries in it.
    """
    runs = [*dataset.runs.values()]
    groups = find_query_groups(dataset.qrels.queries, dataset.declared, runs, dataset.qrels)
    count = write_groups(groups, path, is_owned=is_owned)
    return {"file": str(path), "groups": len(groups.joined), "queries": count}


def describe_near_duplicates(record: NearDuplicates) -> str:
    """How many queries depend on others, why that matters, and how to group them."""
    links = ", ".join(f"{reason}: {count:,}" for reason, count in record.links.items())
    text = (
        f"{record.linked:,} of {pluralize(record.queries, 'query')} depend on others, so intervals "
        f"are too narrow. No group joins them (links by {links}): "
        f"{pluralize(record.groups, 'group')}, the largest of {record.largest:,}. A tuning run may "
        "hold out what it was tuned on."
    )
    if record.withholds:
        text += (
            " So many are linked that no 'ship' and no 'pass' is said before dataset.yaml "
            "says 'groups: auto' or names a file of groups; with 'groups: none' nothing ships."
        )
        if not {"same text", "same lists"}.isdisjoint(record.links):
            text += (
                " Identical queries are joined without being asked only in one split, and where "
                f"at least {MIN_GROUPS} groups and half of them remain, none of over "
                f"{100 * MAX_SHARE:.0f} % of the queries."
            )
    if record.dataset is None:
        return (
            f"{text} Write a dataset.yaml ('fusion-bench try … --save DIR' does), then look at "
            "them: fusion-bench dataset check DIR --write-groups groups.jsonl"
        )
    check = f"fusion-bench dataset check {quote(record.dataset)} --write-groups groups.jsonl"
    if record.is_too_large:
        return (
            f"{text} The largest holds {format_percent(record.largest / record.queries)} of the "
            f"queries; 'groups: auto' allows {100 * MAX_SHARE:.0f} %. Look at them: {check}"
        )
    return f"{text} Put 'groups: auto' into dataset.yaml, or a file of groups: {check}"


#: The key of a query that says so, and its value as a field.
FIELD: Final = "synthetic"
TRUE: Final = "true"


def count_synthetic(records: Mapping[str, Query], queries: Sequence[str]) -> int:
    """How many of the queries are marked ``synthetic: true``.

    Args:
        records: What is known of the queries, by id.
        queries: The ids to count.
    """
    known = (records[query] for query in queries if query in records)
    return sum(record.fields.get(FIELD) == TRUE for record in known)


#: Key of the warning.
HELD_OUT: Final = "held-out queries"


def warn_held_out(lists: Iterable[ListInfo]) -> Iterator[DataWarning]:
    """Which open campaigns hold out queries of the dataset, and how many.

    Args:
        lists: Of the dataset; each says so.
    """
    counts = {name: count for each in lists for name, count in each.held_out.items()}
    for campaign, count in counts.items():
        yield DataWarning(
            key=HELD_OUT,
            text=f"The open campaign {campaign} holds out {pluralize(count, 'judged query')}.",
            evidence={"campaign": campaign, "queries": count},
        )


def list_grades(qrels: Qrels, queries: Collection[str]) -> tuple[int, ...]:
    """The different grades of the judged documents of some queries, in ascending order.

    Args:
        qrels: The judgments.
        queries: Ids of the queries.
    """
    chosen = set(queries)
    is_chosen = np.array([query in chosen for query in qrels.queries], dtype=bool)
    grades = qrels.grades[np.repeat(is_chosen, np.diff(qrels.offsets))]
    return tuple(sorted({*grades.tolist()}))
