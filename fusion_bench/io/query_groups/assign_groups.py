"""Give queries the groups that a ``dataset.yaml`` asks for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from fusion_bench.data.qrels import Qrels
from fusion_bench.data.query_groups.find_groups import MAX_SHARE, find_query_groups
from fusion_bench.data.records import Query
from fusion_bench.data.run import Run
from fusion_bench.errors import ConfigError
from fusion_bench.util.formatting import pluralize


def find_and_assign_groups(
    records: Mapping[str, Query], runs: Sequence[Run], qrels: Qrels, where: str
) -> dict[str, Query]:
    """The queries with the declared groups, joined where queries of two of them are linked.

    Args:
        records: What is known of the queries, by id.
        runs: All runs of the dataset: which ones an experiment uses changes no group.
        qrels: The judgments.
        where: Prefix of a message.

    Raises:
        ConfigError: One joined group would hold more than a fifth of the queries.
    """
    groups = find_query_groups(qrels.queries, records, runs, qrels)
    if groups.is_too_large:
        raise ConfigError(
            f"{where}: the largest group found would hold {groups.sizes.max():,} of "
            f"{pluralize(len(groups.queries), 'query')}, and at most {100 * MAX_SHARE:.0f} % are "
            "allowed: take this key out, look at the groups (fusion-bench dataset check NAME "
            f"--write-groups FILE), then name that file here, or say 'none'"
        )
    return assign_groups(records, groups.joined_names)


def join_identical(
    records: Mapping[str, Query],
    runs: Sequence[Run],
    qrels: Qrels,
    load_all: Callable[[], Sequence[Run]] | None = None,
) -> dict[str, Query]:
    """The queries with the declared groups, joined where queries of two of them are identical.

    They stay as they are where the groups found are not usable as they are; reports warn then.

    Args:
        records: What is known of the queries, by id.
        runs: The lists that were read.
        qrels: The judgments.
        load_all: Reads all runs of the dataset. It is called where the lists alone would join
            queries, so that the systems of an experiment change no group; None = these are all.
    """
    groups = find_query_groups(qrels.queries, records, runs, qrels, identical=True)
    if load_all is not None and any(link.reason == "same lists" for link in groups.links):
        groups = find_query_groups(qrels.queries, records, load_all(), qrels, identical=True)
    return assign_groups(records, groups.joined_names if groups.is_usable else {})


def assign_groups(records: Mapping[str, Query], groups: Mapping[str, str]) -> dict[str, Query]:
    """The queries with these groups, by id; those that are not named keep theirs."""
    assigned = {
        query: replace(records.get(query, Query(query)), group=name)
        for query, name in groups.items()
    }
    return {**records, **assigned}
