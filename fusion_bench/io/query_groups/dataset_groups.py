"""The groups that a ``dataset.yaml`` asks for by its key ``groups``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from fusion_bench.data.qrels import Qrels
from fusion_bench.data.records import Query
from fusion_bench.data.run import Run
from fusion_bench.io.cache.cached_loader import load_tables
from fusion_bench.io.cache.dataset_cache import Cache
from fusion_bench.io.dataset_config import DECLARED_GROUPS, DatasetSpec
from fusion_bench.io.dataset_paths import DatasetPaths, request_lists
from fusion_bench.io.query_groups.assign_groups import assign_groups, find_and_assign_groups
from fusion_bench.io.query_groups.group_file import read_groups


def resolve_groups(
    spec: DatasetSpec,
    paths: DatasetPaths,
    records: Mapping[str, Query],
    qrels: Qrels,
    read: Sequence[Run],
    cache: Cache | None,
) -> dict[str, Query]:
    """The queries with the groups that ``groups`` asks for.

    Args:
        spec: What the ``dataset.yaml`` says.
        paths: Resolves its paths.
        records: What is known of the queries, by id.
        qrels: The judgments.
        read: The runs that were read, before any is switched off; ``auto`` reads the others.
        cache: Where tables may be kept.

    Raises:
        ConfigError: A group that was found is too large.
        DataError: A file breaks a rule.
        AlignmentError: The file of groups names no judged query.
    """
    if spec.groups is None or spec.groups == DECLARED_GROUPS:
        return dict(records)
    if spec.group_file is not None:
        file = paths.existing(spec.group_file, "groups")
        return assign_groups(records, read_groups(file, qrels))
    runs = {run.name: run for run in read}
    missing = [name for name in spec.runs if name not in runs]
    if missing:
        tables, _ = load_tables(request_lists(spec, paths, missing, (), refined=False)[0], cache)
        runs |= {run.name: run for run in cast("list[Run]", tables)}
    where = paths.source.where(("groups",))
    return find_and_assign_groups(records, [runs[name] for name in spec.runs], qrels, where)
