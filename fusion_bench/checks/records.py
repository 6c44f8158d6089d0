"""What checks leave in a report: warnings, findings, what was noticed of lists, judges, queries."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from pydantic import Field

from fusion_bench.config.json_records import OptionalFloat, ReportRecord
from fusion_bench.config.options import ObstacleKind
from fusion_bench.data.query_groups import LinkReason


class DataWarning(ReportRecord):
    """One thing to know before a number is believed.

    Attributes:
        key: For programs, such as ``reversed`` or ``constant lists``;
            ``docs/reference/formats.md`` lists them.
        text: A sentence or more.
        evidence: The numbers and names that the text rests on, by name; empty = none, as of what an
            experiment says itself.
    """

    key: str
    text: str
    evidence: dict[str, Any] = Field(default_factory=dict)


class Obstacle(DataWarning):
    """Why nothing is concluded from the data before somebody looks at them.

    Attributes:
        kind: ``unmatched`` = document ids do not meet; ``suspect`` = a check finds that a list is
            not what it seems.
        remedy: What to do.
        lists: The lists that cause it: ``runs/NAME``, ``rerank/NAME``.
    """

    kind: ObstacleKind
    remedy: str
    lists: tuple[str, ...]

    @property
    def statement(self) -> str:
        """The cause and the remedy, and the option that goes on all the same."""
        return f"{self.text} {self.remedy} --allow-{self.kind} goes on all the same."


Severity: TypeAlias = Literal["warning", "note"]


class LintFinding(ReportRecord):
    """What one rule says of the systems that have the same numbers.

    Attributes:
        id: The rule; ``docs/reference/lint.md`` has a section of this name.
        severity: ``warning`` = results suffer, or are not what the numbers suggest; ``note`` =
            worth knowing.
        message: What the configuration does, with its numbers.
        systems: The systems that do it.
        query_types: The query types for which they do it; empty = all queries.
        intents: The intents for which they do it; empty = all queries.
        datasets: The datasets on which they do it; empty where none is known.
        where: ``file:line: path`` of the first system's value.
    """

    id: str
    severity: Severity
    message: str
    systems: tuple[str, ...]
    query_types: tuple[str, ...] = ()
    intents: tuple[str, ...] = ()
    datasets: tuple[str, ...] = ()
    where: str = ""

    @property
    def docs(self) -> str:
        """The section of the documentation."""
        return f"docs/reference/lint.md#{self.id}"


class ListInfo(ReportRecord):
    """One input list and what was noticed about it.

    Attributes:
        name: Its name.
        trial: Which of its files this is, from 1, where the list has one for each trial; None = it
            has one file.
        kind: A source, or a rerank list.
        roles: Its roles.
        read_options: The resolved options it was read with.
        family: The model family behind it; None = none, or not declared.
        score_space: What a rerank list's numbers mean.
        when: Field of a query → values with which a run is on; empty = it is on for all.
        on_queries: Judged queries for which it is on; None = all.
        unanswered_queries: Judged queries it returned nothing for although it is on; scored by
            default.
        unjudged_queries: Queries it answered that are not judged; ignored.
        unmatched_queries: The first of these, each with the judged query that was perhaps meant.
        duplicate_rows: Rows dropped under ``on_duplicate: best_rank``.
        zero_scores: Rows scored exactly 0: padding, more often than not.
        notes: What was read in another way than a reader of the file may expect.
        constant_lists: Judged queries for which all documents, two or more, have one score.
        float32_queries: Judged queries that trec_eval orders otherwise, because it compares scores
            as 32-bit floats.
        lowest_score: Its lowest score.
        mean_as_read: Its mean nDCG@10 over the evaluated queries that it answers; None with few.
        mean_backwards: The same with every list read from its end.
        is_reversed: Whether the second mean is shown to be the greater one.
        own_id_queries: Queries whose own id leads its list, and is not judged relevant; 0 = few.
        mean_with_own_ids: Its mean nDCG@10 over the evaluated queries; None where these are few.
        mean_without_own_ids: The same without the documents that have the ids of their queries.
        rank_column_lists: Lists at the beginning of its file whose rank column was compared with
            the scores; 0 where there is none, or where it decides the order.
        opposed_rank_lists: Those of them in which the two mostly contradict each other.
        has_judged_documents: Whether any of its documents is judged for any query; True where it
            returns nothing for the judged queries.
        judged_share: Share of its first ten places, over all judged queries, that hold such a
            document; None = it has none.
        common_documents: Other list, as ``runs/NAME`` or ``rerank/NAME`` → the share of the
            documents of the smaller one that the other has.
        is_constant: Whether all lists of two documents or more have one score and its ranks come
            from the scores.
        delimiter_scores: Scores with which OpenSearch's hybrid answers part their sub-queries.
        reused_run: The run whose scores a rerank list has in another order; None = none.
        problems: What a look at a rerank list's scores found, a sentence each.
        degraded_queries: Queries of a rerank list that the provider it names did not score, or
            not readably where that makes the list a degraded one.
        unread_scores: Query → 1-based positions of candidates whose score could not be read in the
            provider's answer; they have 0.5.
        provider: ``provider/model`` of a rerank list, where that is known.
        ledger: What it cost and how long it took, where that is known; see ``rerank.ledger``.
        held_out: Open campaign → judged queries of the dataset that it holds out; they are not
            read.
    """

    name: str
    trial: int | None = None
    kind: Literal["run", "rerank"]
    roles: tuple[str, ...]
    read_options: dict[str, Any]
    family: str | None = None
    score_space: str | None = None
    when: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    on_queries: int | None = None
    unanswered_queries: int
    unjudged_queries: int
    unmatched_queries: tuple[tuple[str, str | None], ...] = ()
    duplicate_rows: int
    zero_scores: int
    notes: tuple[str, ...] = ()
    constant_lists: int = 0
    float32_queries: int = 0
    lowest_score: OptionalFloat = None
    mean_as_read: OptionalFloat = None
    mean_backwards: OptionalFloat = None
    is_reversed: bool = False
    own_id_queries: int = 0
    mean_with_own_ids: OptionalFloat = None
    mean_without_own_ids: OptionalFloat = None
    rank_column_lists: int = 0
    opposed_rank_lists: int = 0
    has_judged_documents: bool = True
    judged_share: OptionalFloat = None
    common_documents: dict[str, float] = Field(default_factory=dict)
    is_constant: bool = False
    delimiter_scores: int = 0
    reused_run: str | None = None
    problems: tuple[str, ...] = ()
    degraded_queries: int = 0
    unread_scores: dict[str, tuple[int, ...]] = Field(default_factory=dict)
    provider: str | None = None
    ledger: dict[str, Any] | None = None
    held_out: dict[str, int] = Field(default_factory=dict)

    @property
    def key(self) -> str:
        """``runs/NAME`` or ``rerank/NAME``."""
        return f"{'runs' if self.kind == 'run' else 'rerank'}/{self.name}"

    @property
    def title(self) -> str:
        """Its name, and which repeat."""
        return self.name if self.trial is None else f"{self.name} (trial {self.trial})"


#: Fewer double-judged pairs than this measure no agreement: at κ near .5, 100 independent pairs
#: leave a standard error of about .1.
MIN_PAIRS = 100


class JudgeInfo(ReportRecord):
    """A machine judge, and its agreement with people on the pairs that both graded.

    Attributes:
        family: The family of its model; None = not declared.
        people: The human judge of ``judges`` with the most shared pairs; None = there is none.
        pairs: Pairs of query and document that both graded.
        queries: Queries of these pairs.
        kappa: Cohen's κ of the grades; None where both give one grade alone.
        low: Lower end of its 95 % interval; None with one query.
        high: Upper end.
        binary_kappa: κ of relevant and not relevant.
        binary_low: Lower end of its interval.
        binary_high: Upper end.
        related_systems: Systems that declare the judge's own family, or whose stages do.
        is_accepted: The dataset accepts it although its agreement is not measured, or not shown.
    """

    family: str | None = None
    people: str | None = None
    pairs: int = 0
    queries: int = 0
    kappa: OptionalFloat = None
    low: OptionalFloat = None
    high: OptionalFloat = None
    binary_kappa: OptionalFloat = None
    binary_low: OptionalFloat = None
    binary_high: OptionalFloat = None
    related_systems: tuple[str, ...] = ()
    is_accepted: bool = False

    @property
    def is_measured(self) -> bool:
        """Whether enough pairs were judged by people too."""
        return self.pairs >= MIN_PAIRS and self.kappa is not None

    @property
    def is_better_than_chance(self) -> bool:
        """Whether enough pairs show a κ above 0: the whole interval lies there."""
        return self.is_measured and self.low is not None and self.low > 0


class NearDuplicates(ReportRecord):
    """What a search for near-duplicate queries finds.

    Attributes:
        dataset: The dataset's name; None = no ``dataset.yaml`` describes it.
        queries: Q, the queries that were searched.
        linked: So many of them are linked to one of another declared group.
        groups: The number of groups that these form; links are followed.
        largest: Queries of the largest of them.
        links: Number of links by reason.
        is_too_large: Whether the largest holds more than a fifth of the queries, so that
            ``groups: auto`` refuses it.
        withholds: Whether no ``ship`` and no ``pass`` is said before the dataset's groups
            are declared or refused: a tenth of the queries or more are linked, and it does neither.
    """

    dataset: str | None
    queries: int
    linked: int
    groups: int
    largest: int
    links: dict[LinkReason, int]
    is_too_large: bool
    withholds: bool = False
