"""The groups of queries that a ``dataset.yaml`` asks for, by a rule or from a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from fusion_bench.data.qrels import Qrels
from fusion_bench.data.query_groups import MAX_SHARE, Grouping, QueryGroups, find_query_groups
from fusion_bench.data.records import Query
from fusion_bench.data.run import Run
from fusion_bench.errors import AlignmentError, ConfigError, DataError
from fusion_bench.io.json_objects import read_objects, refuse_repeated, require_text
from fusion_bench.io.outputs import write_output
from fusion_bench.util.formatting import pluralize
from fusion_bench.util.json_text import encode_json_lines


def read_groups(path: Path, qrels: Qrels) -> dict[str, str]:
    """The group of each query that a file names.

    Raises:
        DataError: A line without ``id`` or ``group``, or an id given twice.
        AlignmentError: No judged query is among them.
    """
    groups: dict[str, str] = {}
    for where, item in read_objects(path):
        for key in ("id", "group"):
            if item.get(key) in (None, ""):
                raise DataError(f"{where}: {key!r} is missing: each line has an 'id' and a 'group'")
        query = require_text(item["id"], "id", where)
        refuse_repeated(query, groups, "query", where)
        groups[query] = require_text(item["group"], "group", where)
    if not set(groups) & set(qrels.queries):
        raise AlignmentError(
            f"{path}: no judged query is in it: check that it has the query ids of the qrels"
        )
    return groups


def write_groups(groups: QueryGroups, path: Path, *, is_owned: bool = False) -> int:
    """Write the joined groups, group by group, for ``groups`` of a ``dataset.yaml``.

    Each line also says why the query is linked: to which query, and for which reason.

    Returns:
        The number of queries written.
    """
    joined = set(groups.joined.tolist())
    links = {link.second: link for link in reversed(groups.links)}
    links.update({link.first: link for link in reversed(groups.links) if link.first not in links})
    members = sorted((code, q) for q, code in enumerate(groups.codes.tolist()) if code in joined)
    names, records = groups.names(), []
    for _, q in members:
        record = {"id": groups.queries[q], "group": names[q]}
        if (link := links.get(q)) is not None:
            other = link.first if link.second == q else link.second
            record |= {"linked_to": groups.queries[other], "reason": link.reason}
        records.append(record)
    write_output(path, encode_json_lines(records), option="--write-groups", is_owned=is_owned)
    return len(records)


def join_groups(
    grouping: Grouping,
    records: Mapping[str, Query],
    runs: Sequence[Run],
    qrels: Qrels,
    where: str,
    load_all: Callable[[], Sequence[Run]] | None = None,
) -> dict[str, Query]:
    """The queries with the declared groups, joined where queries of two of them are linked.

    ``identical`` ones stay as they are where the groups found are not usable as they are; reports
    warn then.

    Args:
        grouping: ``identical``, ``auto``, or one that joins nothing.
        records: What is known of the queries, by id.
        runs: The lists that were read.
        qrels: The judgments.
        where: Prefix of a message.
        load_all: Reads all runs of the dataset, so that the systems of an experiment change no
            group; ``identical`` asks for them where the lists alone would join queries. None =
            these are all.

    Raises:
        ConfigError: One group of ``auto`` would hold more than a fifth of the queries.
    """
    is_strict = grouping == "identical"
    if not is_strict and grouping != "auto":
        return dict(records)
    if load_all is not None and not is_strict:
        runs = load_all()
    groups = find_query_groups(qrels.queries, records, runs, qrels, identical=is_strict)
    if is_strict:
        if load_all is not None and any(link.reason == "same lists" for link in groups.links):
            groups = find_query_groups(qrels.queries, records, load_all(), qrels, identical=True)
        return assign_groups(records, groups.joined_names if groups.is_usable else {})
    if groups.is_too_large:
        raise ConfigError(
            f"{where}: the largest group found would hold {groups.sizes.max():,} of "
            f"{pluralize(len(groups.queries), 'query')}, and at most {100 * MAX_SHARE:.0f} % are "
            "allowed: take this key out, look at the groups (fusion-bench dataset check NAME "
            f"--write-groups FILE), then name that file here, or write 'none'"
        )
    return assign_groups(records, groups.joined_names)


def assign_groups(records: Mapping[str, Query], groups: Mapping[str, str]) -> dict[str, Query]:
    """The queries with these groups, by id; those that are not named keep theirs."""
    assigned = {
        query: replace(records.get(query, Query(query)), group=name)
        for query, name in groups.items()
    }
    return {**records, **assigned}
