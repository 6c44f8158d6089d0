"""The record of a baseline: its values by query, the data they come from, its updates.

Format history:
    1   first version
    2   ``arms`` became ``collections``, ``seal`` ``checksum``, ``reading`` ``read_options`` and
        ``when`` ``updated_at``
    3   ``policy``; an update has ``reasons`` and what changed, check by check
    4   ``anchor``; the statuses of today
    5   ``seed``; an update has ``policy_changes``; digests of the queries field by field
    6   ``ledger``
    7   ``max_drops``; the statuses of today. Files of version 6 are read, too
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from pydantic import Field, PrivateAttr

from fusion_bench.config.json_records import OPTIONAL, StoredRecord
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.experiment.settings import ANSWERED
from fusion_bench.gate.verdict import CheckOutcome, CheckResult, check_name
from fusion_bench.stats.unjudged import (
    QueryBounds,
    UnjudgedEvidence,
)
from fusion_bench.stats.values import MeasuredValues
from fusion_bench.util.digests import digest_json


class StoredUnjudged(StoredRecord):
    """One system on one collection whose judgments are not complete.

    Attributes:
        share: The Q shares of unjudged documents in the top 10.
        judged_only: By measure, the Q values over judged documents only; empty = no document is
            judged not relevant, so that they tell nothing.
        filled: By measure that has a formula for it, the Q values with unjudged documents filled;
            null = no list has a judged document. Empty likewise.
    """

    share: tuple[float, ...]
    judged_only: dict[str, tuple[float, ...]]
    filled: dict[str, tuple[float | None, ...]]
    _bounds: dict[str, QueryBounds] = PrivateAttr(default_factory=dict)

    def with_bounds(self, bounds: dict[str, QueryBounds]) -> StoredUnjudged:
        """Add, by measure, what unjudged documents could make of the values."""
        self._bounds = bounds
        return self

    @property
    def is_sparse(self) -> bool:
        """Whether no document is judged not relevant."""
        return not self.judged_only

    def read_evidence(self, measure: str) -> tuple[UnjudgedEvidence, QueryBounds | None]:
        """The evidence on one measure; bounds are not known of a record from a file."""
        share, filled = np.array(self.share), self.filled.get(measure)
        evidence = UnjudgedEvidence(
            share,
            np.zeros(len(share)) if self.is_sparse else np.array(self.judged_only[measure]),
            None if filled is None else np.array(filled, dtype=np.float64),
        )
        return evidence, self._bounds.get(measure)


class ListChange(StoredRecord):
    """A run or rerank list of the baseline that is no longer the same.

    Attributes:
        collection: The dataset.
        part: ``runs/NAME`` or ``rerank/NAME``.
        change: ``contents``, ``missing``, or the option that changed, such as ``roles``.
        before: Digest or option of the baseline.
        after: The same of the candidate; None where it is missing.
    """

    collection: str
    part: str
    change: str
    before: Any
    after: Any

    @property
    def description(self) -> str:
        """What changed, with both values."""
        if self.change == "missing":
            return f"{self.collection}: {self.part} of the baseline is missing from the dataset"
        if self.change == "contents":
            sides = (str(self.before)[:12], str(self.after)[:12])
            text = f"contents of {self.part} changed"
        else:
            sides = (repr(self.before), repr(self.after))
            text = f"{self.change} of {self.part} changed"
        return f"{self.collection}: {text}: baseline {sides[0]}, candidate {sides[1]}"


class DocumentChange(StoredRecord):
    """The ranks of a relevant document before and after.

    Attributes:
        document: Its id.
        grade: Its grade.
        rank_before: Old rank; None = not in the list.
        rank_after: New rank; None = not in the list.
        cut_rank_before: Old rank below ``top_k``; None = ``top_k`` does not remove it.
        cut_rank_after: New rank below ``top_k``; None likewise.
        cause: The term that moved it.
        title: Its title, or the beginning of its text; empty where the dataset has neither.
    """

    document: str
    grade: int
    rank_before: int | None
    rank_after: int | None
    cut_rank_before: int | None = None
    cut_rank_after: int | None = None
    cause: str
    title: str = ""

    @property
    def is_moved(self) -> bool:
        """Whether its rank changed."""
        return self.rank_before != self.rank_after


class LostQuery(StoredRecord):
    """A query whose value fell.

    Attributes:
        collection: The dataset.
        query: Its id.
        text: The beginning of its text; empty where the dataset has none.
        measure: The first measure of the policy.
    """

    collection: str
    query: str
    text: str = ""
    measure: str


class QueryRegression(LostQuery):
    """A query whose value fell, and which documents moved in its list.

    Attributes:
        value_before: Its old value.
        value_after: Its new value.
        top_k: Length limit of the old and of the new list; None = no limit.
        documents: Its relevant documents: those that moved first.
        has_old_ranks: Whether the old ranks are known; after a change of the lists they are not.
        trial: The candidate's trial that the ranks are of, from 1; None where it has one.
    """

    value_before: float
    value_after: float
    top_k: tuple[int | None, int | None] = (None, None)
    documents: tuple[DocumentChange, ...]
    has_old_ranks: bool = True
    trial: int | None = None


#: What a change of the policy does; ``other`` is neither looser nor stricter in every case.
PolicyEffect: TypeAlias = Literal["looser", "stricter", "other"]


class PolicyChange(StoredRecord):
    """One difference of two policies, or of what they guard.

    Attributes:
        path: The key below ``gate``; or ``experiment``, ``system``, ``seed``.
        before: In the baseline; None = not there.
        after: Today; None = not there.
        effect: Whether the gate is looser or stricter by it.
    """

    path: str
    before: Any
    after: Any
    effect: PolicyEffect

    @property
    def needs_update(self) -> bool:
        """Whether only an update of the baseline accepts it; a stricter policy needs none."""
        return self.effect != "stricter"

    @property
    def description(self) -> str:
        """``checks.RR@10.max_drop 0.01 → 0.5``."""
        return f"{self.path} {format_side(self.before)} → {format_side(self.after)}"


def format_side(value: object) -> str:
    """One side of a change as a reader of YAML knows it."""
    match value:
        case None:
            return "none"
        case bool():
            return str(value).lower()
        case float():
            return f"{value:g}"
        case list() | tuple():
            return f"[{', '.join(map(format_side, value))}]"
        case dict():
            pairs = ", ".join(f"{key}: {format_side(item)}" for key, item in value.items())
            return f"{{{pairs}}}"
    return str(value)


class CheckUpdate(CheckOutcome):
    """What an update did to one check of the policy: the new values against the old ones.

    Attributes:
        old_mean: Mean of the replaced baseline; None with an error.
        new_mean: Mean of the new one; None likewise.
    """

    old_mean: float | None
    new_mean: float | None

    @classmethod
    def from_result(cls, check: CheckResult) -> CheckUpdate:
        """The part of a check's result that is kept."""
        kept = check.model_dump(include=set(cls.model_fields))
        return cls(**kept, old_mean=check.baseline_mean, new_mean=check.candidate_mean)


class QueryLoss(LostQuery):
    """A query that an update made worse.

    Attributes:
        old_value: Its value in the replaced baseline.
        new_value: Its value in the new one.
    """

    old_value: float
    new_value: float

    @classmethod
    def from_result(cls, loss: QueryRegression) -> QueryLoss:
        """The part of a loss that is kept."""
        kept = loss.model_dump(include={"collection", "query", "text", "measure"})
        return cls(**kept, old_value=loss.value_before, new_value=loss.value_after)


class BaselineUpdate(StoredRecord):
    """Why the baseline was written, and what that changed.

    Attributes:
        updated_at: UTC, ISO 8601.
        reasons: As given with ``--reason``; further ones were added without a change.
        version: The version of this package.
        config_sha256: SHA-256 of the system's resolved configuration.
        means: Means by collection and measure.
        verdict: What the gate says of the new values against the old ones, in one line; empty
            where there was no baseline, or one that cannot be compared.
        incomparable: Why the two, or some of their measures, cannot be compared.
        config_changes: What differs in the resolved configuration: path → (old, new).
        list_changes: What differs in the lists that both read.
        policy_changes: What differs in the policy; the looser ones are accepted by this update.
        checks: Every check of the policy.
        losses: The queries that lost most.
        is_anchor: Whether the values became the anchor.
    """

    updated_at: str
    reasons: Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Field(min_length=1)]
    version: str
    config_sha256: str
    means: dict[str, dict[str, float]]
    verdict: str = ""
    incomparable: tuple[str, ...] = ()
    config_changes: dict[str, tuple[Any, Any]] = Field(default_factory=dict)
    list_changes: tuple[ListChange, ...] = ()
    policy_changes: tuple[PolicyChange, ...] = ()
    checks: tuple[CheckUpdate, ...] = ()
    losses: tuple[QueryLoss, ...] = ()
    is_anchor: bool = False

    @property
    def reason(self) -> str:
        """All reasons in one line."""
        return "; ".join(self.reasons)


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

    def measured_values(self, queries: Sequence[str]) -> dict[str, MeasuredValues]:
        """The values by measure, with their repeats and what unjudged documents could change.

        Args:
            queries: The same ids in the order of the result.
        """
        # A list of other files has another name here: its repeats are new ones.
        lists = frozenset(
            f"{part} {self.digests[part]}" for part, each in self.lists.items() if each.trials > 1
        )
        order, found = self.find_rows(queries), {}
        for name, values in self.values.items():
            repeats = np.array(self.trials[name]) if name in self.trials else None
            unjudged = None if name == ANSWERED else self.unjudged
            sides = (None, None) if unjudged is None else unjudged.read_evidence(name)
            found[name] = MeasuredValues(np.array(values), repeats, lists, *sides)
        return {name: each.select_queries(order) for name, each in found.items()}

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


class SealedDrop(StoredRecord):
    """What ``max_drop: auto`` stands for in one check.

    Attributes:
        collection: The dataset.
        slice: A query type, or ``field: value``; None = all queries.
        measure: Its name.
        max_drop: m.
        reason: Why it is this drop.
    """

    collection: str
    slice: str | None
    measure: str
    max_drop: float
    reason: str

    @property
    def description(self) -> str:
        """The check, its drop, and why it is this one."""
        return (
            f"{check_name(self.collection, self.slice, self.measure)} {self.max_drop:g} "
            f"({self.reason})"
        )


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
        max_drops: What ``max_drop: auto`` stands for in each check; left out where the policy
            states all drops.
        ledger: The line of this update in the ledger of checked candidates; left out where
            candidates are not counted.
        checksum: SHA-256 of all other keys: a file edited by hand is refused.
    """

    format: Literal["fusion-bench-baseline"] = "fusion-bench-baseline"
    format_version: int = 7
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
    max_drops: tuple[SealedDrop, ...] = Field(default=(), json_schema_extra={OPTIONAL: True})
    ledger: LedgerLine | None = Field(default=None, json_schema_extra={OPTIONAL: True})
    checksum: str = ""

    @property
    def by_collection(self) -> dict[str, CollectionBaseline]:
        """The records by the name of the collection."""
        return {record.collection: record for record in self.collections}

    def drops_of(self, collection: str) -> dict[tuple[str | None, str], float]:
        """By slice and measure, what ``max_drop: auto`` stands for on one collection."""
        sealed = (each for each in self.max_drops if each.collection == collection)
        return {(each.slice, each.measure): each.max_drop for each in sealed}

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
        kept = {"format_version", "history", "anchor", "ledger", "checksum"}
        return self.model_dump(mode="json", exclude=kept)

    @property
    def stored_data(self) -> dict[str, Any]:
        """What its file holds, without the optional keys that hold nothing."""
        data = self.model_dump(mode="json")
        for key in ("max_drops", "ledger"):
            if not data[key]:
                del data[key]
        for collection in (*data["collections"], *data["anchor"]["collections"]):
            for key in ("where", "unjudged", "trials", "groups"):
                if not collection[key]:
                    del collection[key]
            for description in collection["lists"].values():
                if description["trials"] == 1:
                    del description["trials"]
        return data

    def with_checksum(self) -> Baseline:
        """Add the checksum."""
        data = self.stored_data
        del data["checksum"]
        return self.model_copy(update={"checksum": digest_json(data)})
