"""A sample of a log's queries by frequency: some that many ask, and some that few ask.

The log is cut into strata of equal traffic: its most frequent queries with a third of all searches
(head), those with the next third (torso), and the rest (tail). As many queries are drawn of each,
so that a mean over the sample weighs head, torso and tail as the traffic does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from fusion_bench.data.query_groups.similar_texts import (
    jaccard_index,
    normalize_text,
    propose_pairs,
)
from fusion_bench.errors import ConfigError
from fusion_bench.io.outputs import write_output
from fusion_bench.queries.personal_data import find_personal_data
from fusion_bench.queries.query_log import LoggedText, QueryLog
from fusion_bench.util.formatting import pluralize
from fusion_bench.util.json_lines import encode_json_lines
from fusion_bench.util.table_view import Columns, TableView, list_columns

#: Names of the strata, the most frequent queries first.
STRATA: Final = ("head", "torso", "tail")
#: Two queries whose shingles have at least this Jaccard index count as one.
SIMILAR: Final = 0.7
#: Queries that are looked at for each one that is drawn, so that duplicates can be replaced.
SPARE: Final = 4
#: Hexadecimal digits of an id: of a million queries, two have one id with probability .0004.
ID_DIGITS: Final = 14


@dataclass(frozen=True)
class SampledQuery:
    """A query of the sample.

    Attributes:
        id: From its normalized text, so that it stays when more is sampled.
        text: Its most frequent spelling.
        frequency: How often it was asked.
        stratum: ``head``, ``torso`` or ``tail``.
        personal: Kinds of personal data that it seems to hold.
    """

    id: str
    text: str
    frequency: int
    stratum: str
    personal: tuple[str, ...] = ()


@dataclass(frozen=True, repr=False)
class QuerySample(TableView):
    """A sample of a log.

    Attributes:
        queries: Stratum by stratum, the most frequent first.
        distinct: Queries of the log, by stratum.
        similar: Drawn queries that were replaced, as they resemble another one.
        personal: Drawn queries with personal data that were replaced; by kind.
        short: How many queries fewer than asked for; 0 where the log has enough.
    """

    queries: tuple[SampledQuery, ...]
    distinct: dict[str, int]
    similar: int = 0
    personal: dict[str, int] = field(default_factory=dict)
    short: int = 0

    def _summary(self) -> str:
        return f"QuerySample({pluralize(len(self.queries), 'query')})"

    def _table_columns(self, limit: int | None = None) -> Columns:
        """One row a query."""
        return list_columns(SampledQuery, self.queries[:limit])


def sample_queries(
    log: QueryLog, count: int, *, seed: int = 0, drop_personal: bool = False
) -> QuerySample:
    """Draw queries from each stratum of a log.

    Args:
        log: The log.
        count: Queries to draw, at least 1.
        seed: Of the draw.
        drop_personal: Whether a query with personal data is replaced, and not only flagged.

    Raises:
        ConfigError: A count below 1.
    """
    if count < 1:
        raise ConfigError(f"a sample needs at least 1 query, not {count}")
    strata = cut_strata(log)
    generator = np.random.default_rng(seed)
    pools = {name: _shuffle(queries, SPARE * count, generator) for name, queries in strata.items()}
    personal: dict[str, int] = {}
    if drop_personal:
        pools = {name: [*_drop_personal(pool, personal)] for name, pool in pools.items()}
    pools, similar = _drop_similar(pools)
    quotas = _share_out(count, {name: len(pool) for name, pool in pools.items()})
    chosen = [
        _describe(query, name)
        for name, pool in pools.items()
        for query in sorted(pool[: quotas[name]], key=lambda each: (-each.frequency, each.text))
    ]
    distinct = {name: len(queries) for name, queries in strata.items()}
    return QuerySample(tuple(chosen), distinct, similar, personal, count - len(chosen))


def cut_strata(log: QueryLog) -> dict[str, list[LoggedText]]:
    """The queries of each stratum, the most frequent first.

    A query belongs to the stratum in which the middle of its own searches lies.
    """
    strata: dict[str, list[LoggedText]] = {name: [] for name in STRATA}
    before = 0
    for query in log.queries:
        middle = before + query.frequency / 2
        strata[STRATA[min(int(len(STRATA) * middle / log.searches), len(STRATA) - 1)]].append(query)
        before += query.frequency
    return strata


def write_sample(sample: QuerySample, path: Path) -> Path:
    """Write the sample as ``queries.jsonl``.

    Raises:
        FusionBenchError: The file cannot be written.
    """
    return write_output(path, encode_json_lines(map(_to_record, sample.queries)))


def query_id(text: str) -> str:
    """The id of a query: ``q-`` and a digest of its normalized text."""
    return f"q-{hashlib.sha256(normalize_text(text).encode()).hexdigest()[:ID_DIGITS]}"


def _to_record(query: SampledQuery) -> dict[str, Any]:
    flags = {"personal": ", ".join(query.personal)} if query.personal else {}
    facts = {"stratum": query.stratum, "frequency": query.frequency}
    return {"id": query.id, "text": query.text, **facts, **flags}


def _describe(query: LoggedText, stratum: str) -> SampledQuery:
    return SampledQuery(
        query_id(query.text), query.text, query.frequency, stratum, find_personal_data(query.text)
    )


def _shuffle(
    queries: Sequence[LoggedText], most: int, generator: np.random.Generator
) -> list[LoggedText]:
    return [queries[i] for i in generator.permutation(len(queries))[:most].tolist()]


def _drop_personal(pool: Sequence[LoggedText], counts: dict[str, int]) -> Iterator[LoggedText]:
    for query in pool:
        kinds = find_personal_data(query.text)
        for kind in kinds:
            counts[kind] = counts.get(kind, 0) + 1
        if not kinds:
            yield query


def _drop_similar(
    pools: dict[str, list[LoggedText]],
) -> tuple[dict[str, list[LoggedText]], int]:
    """The pools without queries that resemble one before them, and how many these are."""
    queries = [(name, query) for name, pool in pools.items() for query in pool]
    texts = [normalize_text(query.text) for _, query in queries]
    earlier: dict[int, list[int]] = {}
    for first, second in propose_pairs(texts).tolist():
        if jaccard_index(texts[first], texts[second]) >= SIMILAR:
            earlier.setdefault(max(first, second), []).append(min(first, second))
    dropped: set[int] = set()
    for number in sorted(earlier):
        if any(other not in dropped for other in earlier[number]):
            dropped.add(number)
    kept: dict[str, list[LoggedText]] = {name: [] for name in pools}
    for number, (name, query) in enumerate(queries):
        if number not in dropped:
            kept[name].append(query)
    return kept, len(dropped)


def _share_out(count: int, sizes: dict[str, int]) -> dict[str, int]:
    """Equal quotas; what a small stratum cannot fill is drawn from the others, the tail first."""
    quotas = dict.fromkeys(sizes, 0)
    open_names = list(reversed(sizes))
    left = count
    while left and (open_names := [name for name in open_names if quotas[name] < sizes[name]]):
        for name in open_names:
            if left:
                quotas[name] += 1
                left -= 1
    return quotas
