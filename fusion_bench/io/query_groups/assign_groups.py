"""Give queries the groups that a ``dataset.yaml`` asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from fusion_bench.data.qrels import Qrels
from fusion_bench.data.query_groups.find_groups import MAX_SHARE, find_query_groups
from fusion_bench.data.records import Query
from fusion_bench.data.run import Run
from fusion_bench.errors import ConfigError
from fusion_bench.io.dataset_config import DECLARED_GROUPS
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
            f"--write-groups FILE), then name that file here, or say {DECLARED_GROUPS!r}"
        )
    joined = set(groups.joined.tolist())
    members = zip(groups.queries, groups.codes.tolist(), groups.names(), strict=True)
    return assign_groups(records, {query: name for query, code, name in members if code in joined})


def assign_groups(records: Mapping[str, Query], groups: Mapping[str, str]) -> dict[str, Query]:
    """The queries with these groups, by id; those that are not named keep theirs."""
    assigned = {
        query: replace(records.get(query, Query(query)), group=name)
        for query, name in groups.items()
    }
    return {**records, **assigned}
