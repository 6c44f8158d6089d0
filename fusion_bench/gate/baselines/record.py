"""The committed baseline: values by query, the data they come from, and why it was written.

Format history:
    1   first version
    2   ``arms`` became ``collections``, ``seal`` ``checksum``, ``reading`` ``read_options`` and
        ``when`` ``updated_at``
    3   ``policy``; an update has ``reasons`` and what changed, check by check
    4   ``anchor``; the statuses of today
    5   ``seed``; an update has ``policy_changes``; digests of the queries field by field
    6   ``ledger``
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from fusion_bench.config.files.json_records import StoredRecord
from fusion_bench.config.files.json_schema import OPTIONAL
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.gate.records.history import BaselineUpdate
from fusion_bench.gate.unjudged_values import StoredUnjudged


def digest_json(data: Mapping[str, Any]) -> str:
    """SHA-256 of JSON data, whatever the order of its keys."""
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


class ListDescription(StoredRecord):
    """The options of a run or rerank list.

    Attributes:
        roles: Roles of a run.
        read_options: The resolved options of its reader.
        score_space: What a rerank list's numbers mean.
        trials: Its files, each seen once by a system; left out with one.
    """

    roles: tuple[str, ...]
    read_options: dict[str, Any]
    score_space: str | None = None
    trials: int = Field(default=1, ge=1, json_schema_extra={OPTIONAL: True})


class CollectionBaseline(StoredRecord):
    """The gated system on one collection.

    Attributes:
        collection: The dataset.
        version: Its version, for people.
        digests: SHA-256 of each part that was loaded: qrels, queries, runs, rerank lists; of a
            list with several trials over all of them.
        lists: The options of each of those lists.
        judgments: What an unjudged document means; None = not declared.
        binary_relevance: Grade from which binary measures count.
        split: Which split was evaluated; None = all judged queries.
        query_type: Which query type; None = all.
        where: Field of the queries → the values that they have; left out where all were evaluated.
        queries: The Q query ids.
        definitions: The definition of each measure.
        values: By measure, the Q values in full precision; of several trials the means.
        trials: By measure, the Q values of each trial; left out with one trial.
        unjudged: What unjudged documents could change in them; left out with complete judgments.
        groups: The group of each query that was found to depend on others, beside the declared
            ones: candidates are compared by these, whatever their lists are. Left out without any.
    """

    collection: str
    version: str
    digests: dict[str, str]
    lists: dict[str, ListDescription]
    judgments: str | None
    binary_relevance: int
    split: str | None
    query_type: str | None
    where: dict[str, tuple[str, ...]] = Field(
        default_factory=dict, json_schema_extra={OPTIONAL: True}
    )
    queries: tuple[str, ...]
    definitions: dict[str, dict[str, Any]]
    values: dict[str, tuple[float, ...]]
    trials: dict[str, tuple[tuple[float, ...], ...]] = Field(
        default_factory=dict, json_schema_extra={OPTIONAL: True}
    )
    unjudged: StoredUnjudged | None = Field(default=None, json_schema_extra={OPTIONAL: True})
    groups: dict[str, str] = Field(default_factory=dict, json_schema_extra={OPTIONAL: True})

    def value_arrays(self, queries: Sequence[str] | None = None) -> dict[str, FloatArray]:
        """The values by measure, each (Q,).

        Args:
            queries: The same ids in the order of the result; by default as stored.
        """
        order = self.find_rows(self.queries if queries is None else queries)
        return {name: np.array(values)[order] for name, values in self.values.items()}

    def trial_arrays(self, queries: Sequence[str] | None = None) -> dict[str, FloatArray]:
        """The values of each trial by measure, each (T, Q); as :meth:`value_arrays`."""
        order = self.find_rows(self.queries if queries is None else queries)
        return {name: np.array(values)[:, order] for name, values in self.trials.items()}

    def find_rows(self, queries: Sequence[str]) -> IntArray:
        """(Q,): where each of the same queries stands here."""
        positions = {query: q for q, query in enumerate(self.queries)}
        return np.array([positions[query] for query in queries], dtype=np.int64)


class Anchor(StoredRecord):
    """Earlier values that no number of small losses may leave far behind.

    Attributes:
        updated_at: When they were accepted, UTC, ISO 8601.
        reason: Why.
        system: The system's name.
        collections: The values, in their own order of the queries.
    """

    updated_at: str
    reason: str
    system: str
    collections: tuple[CollectionBaseline, ...]

    @property
    def by_collection(self) -> dict[str, CollectionBaseline]:
        """The records by the name of the collection."""
        return {record.collection: record for record in self.collections}


class LedgerLine(StoredRecord):
    """A line of the ledger of checked candidates, which a record relies on.

    Attributes:
        line: Its number.
        digest: Its digest.
    """

    line: int
    digest: str


class Baseline(StoredRecord):
    """The accepted state that a gate compares with.

    Attributes:
        format: Always ``fusion-bench-baseline``.
        format_version: See the history in this module.
        engine: ``ENGINE`` of the package that computed the values.
        experiment: The experiment's file name without its suffix.
        system: The system's name.
        config: Its resolved configuration.
        policy: The resolved policy of the gate.
        seed: The experiment's seed.
        v2_enabled: Whether methods of version 2 ran as such.
        ties: The tie rule.
        collections: One record a collection.
        anchor: The values of the first baseline, or of the last one that was blessed.
        history: Every update, the oldest first.
        ledger: The line of this update in the ledger of checked candidates; left out where
            candidates are not counted.
        checksum: SHA-256 of all other keys: a file edited by hand is refused.
    """

    format: Literal["fusion-bench-baseline"] = "fusion-bench-baseline"
    format_version: int = 6
    engine: int
    experiment: str
    system: str
    config: dict[str, Any]
    policy: dict[str, Any]
    seed: int
    v2_enabled: bool
    ties: str
    collections: tuple[CollectionBaseline, ...]
    anchor: Anchor
    history: Annotated[tuple[BaselineUpdate, ...], Field(min_length=1)]
    ledger: LedgerLine | None = Field(default=None, json_schema_extra={OPTIONAL: True})
    checksum: str = ""

    @property
    def by_collection(self) -> dict[str, CollectionBaseline]:
        """The records by the name of the collection."""
        return {record.collection: record for record in self.collections}

    @property
    def is_anchor(self) -> bool:
        """Whether the anchor has the very values of this baseline."""
        anchored = self.anchor.by_collection
        return all(
            np.array_equal(values, anchored[record.collection].value_arrays(record.queries)[name])
            for record in self.collections
            for name, values in record.value_arrays().items()
        )

    @property
    def contents(self) -> dict[str, Any]:
        """What an update can change: everything but history, anchor and ledger."""
        return self.model_dump(mode="json", exclude={"history", "anchor", "ledger", "checksum"})

    @property
    def stored_data(self) -> dict[str, Any]:
        """What its file holds; an empty ``where``, no ``unjudged`` and one trial are left out."""
        data = self.model_dump(mode="json")
        if self.ledger is None:
            del data["ledger"]
        for collection in (*data["collections"], *data["anchor"]["collections"]):
            for key in ("where", "unjudged", "trials", "groups"):
                if not collection[key]:
                    del collection[key]
            for description in collection["lists"].values():
                if description["trials"] == 1:
                    del description["trials"]
        return data

    def with_checksum(self) -> Baseline:
        """The same with its checksum."""
        data = self.stored_data
        del data["checksum"]
        return self.model_copy(update={"checksum": digest_json(data)})
