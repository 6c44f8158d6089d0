"""The part of a pool that belongs to queries of a file, such as a random sample."""

from __future__ import annotations

from pathlib import Path

from fusion_bench.errors import ConfigError, DataError
from fusion_bench.judge.pool.pool import Pool
from fusion_bench.util.files.regular_files import read_regular_text
from fusion_bench.util.formatting import list_names, pluralize
from fusion_bench.util.os_errors import explain_error


def read_query_ids(path: Path) -> frozenset[str]:
    """Ids of queries, one a line; empty lines count for nothing.

    Raises:
        DataError: The file cannot be read, or holds no id.
    """
    try:
        text = read_regular_text(path)
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: {explain_error(error)}") from None
    ids = frozenset(line.strip() for line in text.splitlines()) - {""}
    if not ids:
        raise DataError(f"{path}: no query: name the id of one on each line")
    return ids


def keep_queries(pool: Pool, queries: frozenset[str]) -> Pool:
    """The documents of these queries.

    Raises:
        ConfigError: No system returns anything for one of them.
    """
    missing = sorted(queries - {each.query for each in pool.documents})
    if missing:
        raise ConfigError(
            f"--queries: no list has a document for {pluralize(len(missing), 'query')} "
            f"({list_names(missing[:3])}): check the ids"
        )
    kept = tuple(each for each in pool.documents if each.query in queries)
    return Pool(pool.systems, pool.depth, kept)
