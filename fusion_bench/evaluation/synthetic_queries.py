"""Queries that a model wrote: counted in every report, and never in one mean with real ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from fusion_bench.data.records import Query
from fusion_bench.errors import ConfigError
from fusion_bench.evaluation.report_records.data_warning import DataWarning
from fusion_bench.util.formatting import pluralize

#: The key of a query that says so, and its value as a field.
FIELD: Final = "synthetic"
TRUE: Final = "true"


def count_synthetic(records: Mapping[str, Query], queries: Sequence[str]) -> int:
    """How many of the queries are marked ``synthetic: true``.

    Args:
        records: What is known of the queries, by id.
        queries: The ids to count.
    """
    return sum(_is_synthetic(records.get(query)) for query in queries)


def refuse_mixture(where: str, records: Mapping[str, Query], queries: Sequence[str]) -> None:
    """Refuse queries of both kinds in one mean.

    Args:
        where: Prefix of a message.
        records: What is known of the queries, by id.
        queries: Those that are averaged.

    Raises:
        ConfigError: Some are synthetic, and some are not.
    """
    count = count_synthetic(records, queries)
    if 0 < count < len(queries):
        raise ConfigError(
            f"{where}: {pluralize(count, 'synthetic query')} and {len(queries) - count:,} real "
            "ones would make one mean, which describes neither: give the synthetic ones a 'split' "
            "of their own in the queries file, and evaluate one split at a time (split: NAME)"
        )


def warn_synthetic(count: int) -> Iterator[DataWarning]:
    """The warning of every report on synthetic queries; nothing for none."""
    if count:
        yield DataWarning(
            key="synthetic queries",
            text=(
                f"The queries ({count:,}) are synthetic: a model wrote them from documents of the "
                "collection. What holds on them may not hold on what users ask."
            ),
        )


def _is_synthetic(record: Query | None) -> bool:
    return record is not None and record.fields.get(FIELD) == TRUE
