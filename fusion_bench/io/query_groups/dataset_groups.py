"""The groups that a ``dataset.yaml`` asks for by its key ``groups``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from fusion_bench.data.qrels import Qrels
from fusion_bench.data.records import Query
from fusion_bench.data.run import Run
from fusion_bench.io.cache.cached_loader import load_tables
from fusion_bench.io.cache.dataset_cache import Cache
from fusion_bench.io.dataset_config import DatasetSpec
from fusion_bench.io.dataset_paths import DatasetPaths, request_lists
from fusion_bench.io.query_groups.assign_groups import (
    assign_groups,
    find_and_assign_groups,
    join_identical,
)
from fusion_bench.io.query_groups.group_file import read_groups


def resolve_groups(
    spec: DatasetSpec,
    paths: DatasetPaths,
    records: Mapping[str, Query],
    qrels: Qrels,
    read: Sequence[Run],
    cache: Cache | None,
    sealed: Mapping[str, str] | None = None,
) -> tuple[dict[str, Query], dict[str, Query]]:
    """The queries with the declared groups, and with those that ``groups`` makes of them.

    Args:
        spec: What the ``dataset.yaml`` says.
        paths: Resolves its paths.
        records: What is known of the queries, by id.
        qrels: The judgments.
        read: The runs that were read, before any is switched off; ``auto`` reads the others.
        cache: Where tables may be kept.
        sealed: Groups by query that stand for those that a search would find; None = search.

    Raises:
        ConfigError: A group that was found is too large.
        DataError: A file breaks a rule.
        AlignmentError: The file of groups names no judged query.
    """
    declared = dict(records)
    if spec.group_file is not None:
        file = paths.existing(spec.group_file, "groups")
        declared = assign_groups(records, read_groups(file, qrels))
    if sealed is not None:
        return declared, assign_groups(declared, sealed)
    if spec.grouping in {"none", "file"}:
        return declared, declared
    known = {run.name: run for run in read}

    def load_all() -> list[Run]:
        missing = [name for name in spec.runs if name not in known]
        requests = request_lists(spec, paths, missing, (), refined=False)[0] if missing else []
        tables = cast("list[Run]", load_tables(requests, cache)[0])
        others = {run.name: run for run in tables}
        return [(known | others)[name] for name in spec.runs]

    if spec.grouping == "identical":
        return declared, join_identical(declared, read, qrels, load_all)
    where = paths.source.where(("groups",))
    return declared, find_and_assign_groups(declared, load_all(), qrels, where)
