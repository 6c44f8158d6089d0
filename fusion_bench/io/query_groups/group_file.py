"""A file of groups: JSON Lines with the id and the group of each query."""

from __future__ import annotations

from pathlib import Path

from fusion_bench.data.qrels import Qrels
from fusion_bench.data.query_groups.find_groups import QueryGroups
from fusion_bench.errors import AlignmentError, DataError
from fusion_bench.io.json_objects import read_objects, require_text
from fusion_bench.io.outputs import write_output
from fusion_bench.util.json_lines import encode_json_lines


def read_groups(path: Path, qrels: Qrels) -> dict[str, str]:
    """The group of each query that a file names.

    Raises:
        DataError: A line without ``id`` or ``group``, or an id given twice.
        AlignmentError: No judged query is among them.
    """
    groups: dict[str, str] = {}
    for number, item in read_objects(path):
        where = f"{path}:{number}"
        for key in ("id", "group"):
            if item.get(key) in (None, ""):
                raise DataError(f"{where}: {key!r} is missing: each line has an 'id' and a 'group'")
        query = require_text(item["id"], "id", where)
        if query in groups:
            raise DataError(f"{where}: query {query!r} stands twice: keep one")
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
