"""Fingerprints: what a value or a dataset depends on, as named parts.

A part is a setting, such as ``judgments``, with its value; or contents, such as ``qrels``, with the
SHA-256 of what was read. The order of queries and of rows in a file decides no part.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Final

from fusion_bench.config.query_types import PREDICTED_CONFIDENCE, PREDICTED_TYPE
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.records import COMPARED_FIELDS, Query
from fusion_bench.data.run import Run
from fusion_bench.util.digests import hash_values
from fusion_bench.util.formatting import pluralize

#: Most changed parts that a sentence names, and the length at which a value is cut.
MAX_NAMED, MAX_LENGTH = 4, 60


#: Fields of a query that decide values by themselves, without being named in an experiment.
DECIDING_FIELDS: Final = (*COMPARED_FIELDS, PREDICTED_TYPE, PREDICTED_CONFIDENCE)

#: Hexadecimal digits of the digest of a query.
QUERY_DIGITS = 12


def query_digest(query: str) -> str:
    """A digest of a query's id, or of another text: 48 bits of its SHA-256."""
    return hashlib.sha256(query.encode()).hexdigest()[:QUERY_DIGITS]


def query_digests(queries: Iterable[str]) -> tuple[str, ...]:
    """A digest of each query id, sorted."""
    return tuple(sorted(map(query_digest, queries)))


def judgment_texts(qrels: Qrels) -> dict[str, str]:
    """Query → its relevant documents and their grades, as one text.

    It stays the same where a query gets another id, or further documents without relevance.
    """
    return {
        query: json.dumps(sorted(item for item in grades.items() if item[1] > 0))
        for query, grades in qrels.to_dict().items()
    }


def judgment_digests(qrels: Qrels | None, queries: Iterable[str]) -> tuple[str, ...]:
    """A digest of the relevant documents and their grades of each query, sorted.

    What several queries have in common tells none of them, and is left out.
    """
    texts = {} if qrels is None else judgment_texts(qrels)
    counts = Counter(texts.values())
    return query_digests(texts[query] for query in queries if counts[texts.get(query, "")] == 1)


@dataclass(frozen=True)
class Fingerprint:
    """Everything a value depends on.

    Attributes:
        parts: Name → a SHA-256 of contents, or a setting as JSON.
        rows: Name of contents → how many rows they have.
    """

    parts: Mapping[str, str]
    rows: Mapping[str, int] = field(default_factory=dict, compare=False)

    @classmethod
    def of_settings(cls, settings: Mapping[str, object]) -> Fingerprint:
        """The parts of settings, a part for each value, however nested: ``system.fusion.k``."""
        parts = (_flatten_settings(name, value) for name, value in settings.items())
        return cls(dict(chain.from_iterable(parts)))

    @classmethod
    def of_queries(
        cls, qrels: Qrels, queries: Mapping[str, Query], *, all_fields: bool = False
    ) -> Fingerprint:
        """What is known of the judged queries, a part for each field that any of them has.

        Args:
            qrels: The judgments.
            queries: What is known, by id.
            all_fields: With the number of words of each text, which fingerprints have always had,
                and the fields that only an experiment gives a meaning.
        """
        known = [queries[query] for query in sorted(qrels.queries) if query in queries]
        names = dict.fromkeys(name for query in known for name in query.compared_fields)
        chosen = sorted(names) if all_fields else [n for n in DECIDING_FIELDS if n in names]
        columns = {name: [query.value_of(name) for query in known] for name in chosen}
        if all_fields and any(query.text for query in known):
            columns["words"] = [None if q.text is None else str(len(q.text.split())) for q in known]
        return cls(
            {
                f"queries.{name}": hash_values(
                    [q.id for q, value in zip(known, values, strict=True) if value is not None],
                    [value for value in values if value is not None],
                )
                for name, values in columns.items()
            }
        )

    @classmethod
    def of_table(cls, name: str, table: Qrels | Run) -> Fingerprint:
        """One part: the contents of judgments or of a list."""
        return cls({name: table.digest()}, {name: len(table.documents)})

    def __or__(self, other: Fingerprint) -> Fingerprint:
        """The parts of both."""
        return Fingerprint({**self.parts, **other.parts}, {**self.rows, **other.rows})

    def with_prefix(self, prefix: str) -> Fingerprint:
        """Put a prefix before every name: ``prefix/name``."""
        return Fingerprint(
            {f"{prefix}/{name}": value for name, value in self.parts.items()},
            {f"{prefix}/{name}": count for name, count in self.rows.items()},
        )

    @cached_property
    def digest(self) -> str:
        """SHA-256 over all parts."""
        names = sorted(self.parts)
        return hash_values(names, [self.parts[name] for name in names])

    def find_changes(self, earlier: Fingerprint) -> Iterator[str]:
        """What is not as it was, a clause for each part: ``seed: 7, was 6``."""
        for name in dict.fromkeys([*earlier.parts, *self.parts]):
            before, now = earlier.parts.get(name), self.parts.get(name)
            if before != now:
                yield f"{name}: {self._describe(name, before, now, earlier.rows.get(name))}"

    def _describe(self, name: str, before: str | None, now: str | None, rows: int | None) -> str:
        if before is None or now is None:
            return "was not there" if before is None else "is not there any more"
        if name not in self.rows or rows is None:
            return f"{_shorten(now)}, was {_shorten(before)}"
        change = self.rows[name] - rows
        if change == 0:
            return f"other contents in as many rows ({rows:,})"
        return f"{pluralize(abs(change), 'row')} {'more' if change > 0 else 'fewer'} than {rows:,}"

    def summarize_changes(self, earlier: Fingerprint) -> str:
        """The changes in one clause; the first few are named."""
        changes = list(self.find_changes(earlier))
        more = len(changes) - MAX_NAMED
        named = "; ".join(changes[:MAX_NAMED])
        return f"{named}; and {pluralize(more, 'more change')}" if more > 0 else named


def _flatten_settings(name: str, value: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _flatten_settings(f"{name}.{key}", inner)
    else:
        yield name, json.dumps(value, sort_keys=True)


def _shorten(text: str) -> str:
    if len(text) == 64 and not text.strip("0123456789abcdef"):  # a SHA-256
        return text[:12]
    return text if len(text) <= MAX_LENGTH else f"{text[: MAX_LENGTH - 1]}…"
