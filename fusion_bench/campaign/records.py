"""What a campaign freezes, answers and closes with, as records.

Format history:
    1   first version
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field

from fusion_bench.campaign.decision import Tails
from fusion_bench.checks.records import LintFinding
from fusion_bench.config.json_records import OptionalFloat, ReportRecord, StoredRecord
from fusion_bench.config.models import StrictModel
from fusion_bench.data.aligned_runs import Ties
from fusion_bench.evaluation.report_records import RankedDocument
from fusion_bench.report.tuning_records import Gain

#: What an ask is told of the held-out queries.
CampaignWord: TypeAlias = Literal["ship", "keep", "closed"]
FORMAT_VERSION = 1


class CampaignFile(StoredRecord):
    """What a campaign's folder holds; everything else stands in the ledger beside the dataset.

    Attributes:
        format: Always ``fusion-bench-campaign``.
        format_version: See the history in this module.
        campaign: Its id.
        dataset: The ``dataset.yaml``, from this file's folder.
    """

    format: Literal["fusion-bench-campaign"] = "fusion-bench-campaign"
    format_version: Annotated[int, Field(ge=1)] = FORMAT_VERSION
    campaign: str
    dataset: str


class CampaignRules(StrictModel):
    """What is declared before the first ask.

    Attributes:
        asks: K: how many candidates may be tested.
        ships: S: how many of them may ship.
        level: One-sided: the share of campaigns that may ship what gains nothing.
        tails: What must exceed its limit.
        min_gain: A smaller held-out gain is not shipped.
    """

    asks: Annotated[int, Field(ge=1, le=1_000_000)] = 1000
    ships: Annotated[int, Field(ge=1, le=20)] = 1
    level: Annotated[float, Field(gt=0, lt=0.5)] = 0.05
    tails: Tails = "bounded"
    min_gain: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.005


class CampaignPlan(StrictModel):
    """What a campaign froze when it was opened.

    Attributes:
        experiment: Name of the experiment.
        dataset: Name of the dataset.
        rules: What was declared.
        measure: What decides.
        ties: The tie rule.
        baseline: Name of the first system to beat.
        config: Its resolved configuration.
        runs: Names of the runs that candidates may read.
        rerankers: Names of the rerank lists likewise.
        groups: Query → its group, where that is not the declared one.
        tuning: Digests of the ids of the tuning queries, sorted.
        parents: Rule → the field of documents and the column of lists that name the parents of
            chunks, of each rule that a system of the experiment collapses by.
        contents: Digests and settings of the data, by part.
        versions: Of the code, by name.
        no_guarantee: Why its level does not hold; empty = it does.
        weakness: Why it will mostly ship nothing; empty = it finds small gains.
    """

    experiment: str
    dataset: str
    rules: CampaignRules
    measure: str
    ties: Ties
    baseline: str
    config: dict[str, Any]
    runs: tuple[str, ...]
    rerankers: tuple[str, ...]
    groups: dict[str, str]
    tuning: tuple[str, ...]
    parents: dict[str, tuple[str | None, str | None]] = Field(default_factory=dict)
    contents: dict[str, str]
    versions: dict[str, str]
    no_guarantee: str = ""
    weakness: str = ""


class PhasePower(ReportRecord):
    """What one phase of a campaign can find.

    Attributes:
        phase: From 1; each ship begins the next.
        share: One-sided level of each ask.
        detectable_gain: The smallest true gain that ships with power .8; null = no spread is known.
    """

    phase: int
    share: float
    detectable_gain: OptionalFloat


class CampaignStatus(ReportRecord):
    """How a campaign stands; nothing here depends on a held-out value but the ships.

    Attributes:
        format: Always ``fusion-bench-campaign-status``.
        format_version: See the history in this module.
        campaign: Its id.
        experiment: The experiment.
        dataset: The dataset.
        measure: What decides.
        rules: What was declared.
        tuning_queries: How many queries may be looked at.
        held_out_queries: How many decide.
        held_out_groups: In how many groups.
        baseline: The configuration to beat now.
        asked: Asks so far.
        asks_left: How many are left.
        ships: Numbers of the asks that shipped.
        phase: From 1.
        phases: What each phase can find; empty where nothing measured it.
        is_closed: Whether no ask is answered any more.
        guarantee: What its level is worth, in one sentence.
        no_guarantee: Why its level does not hold; empty = it does.
    """

    format: Literal["fusion-bench-campaign-status"] = "fusion-bench-campaign-status"
    format_version: Annotated[int, Field(ge=1)] = FORMAT_VERSION
    campaign: str
    experiment: str
    dataset: str
    measure: str
    rules: CampaignRules
    tuning_queries: int
    held_out_queries: int
    held_out_groups: int
    baseline: dict[str, Any]
    asked: int
    asks_left: int
    ships: tuple[int, ...]
    phase: int
    phases: tuple[PhasePower, ...] = ()
    is_closed: bool
    guarantee: str
    no_guarantee: str


class TuningChange(ReportRecord):
    """A tuning query whose value differs.

    Attributes:
        query: Its id.
        baseline: Value of the baseline.
        candidate: Value of the candidate.
    """

    query: str
    baseline: float
    candidate: float


class LostDocument(RankedDocument):
    """A relevant document of a tuning query that falls out of the first ten.

    Attributes:
        baseline_rank: Under the baseline.
    """

    baseline_rank: int


class TuningAnswer(ReportRecord):
    """Everything about the tuning queries.

    Attributes:
        gain: Candidate (``tuned``) − baseline (``default``), not adjusted.
        changes: The queries that differ, the greatest loss first.
        lint: What lint finds in the candidate.
        lost: Relevant documents that fall out of the first ten; null = not asked for.
    """

    gain: Gain
    changes: tuple[TuningChange, ...]
    lint: tuple[LintFinding, ...]
    lost: tuple[LostDocument, ...] | None = None


class CampaignAnswer(ReportRecord):
    """What an ask is told.

    Attributes:
        format: Always ``fusion-bench-campaign-answer``.
        format_version: See the history in this module.
        campaign: Id of the campaign.
        number: Of the ask, from 1; null = it was not counted.
        answer: ``ship`` = the candidate is the baseline to beat from now on; ``keep`` = stay with
            the baseline; ``closed`` = no ask is answered.
        reason: Why it is closed; empty otherwise.
        asks_left: How many are left.
        phase: From 1: that of the ask.
        is_repeated: The same configuration was asked before: this is its old answer.
        guarantee: What the campaign's level is worth, in one sentence.
        no_guarantee: Why it does not hold; empty = it does.
        tuning: About the tuning queries; null = nothing was computed.
        error: Why the candidate cannot be computed on the tuning queries; empty = it can.
    """

    format: Literal["fusion-bench-campaign-answer"] = "fusion-bench-campaign-answer"
    format_version: Annotated[int, Field(ge=1)] = FORMAT_VERSION
    campaign: str
    number: int | None
    answer: CampaignWord
    reason: str = ""
    asks_left: int
    phase: int
    is_repeated: bool = False
    guarantee: str
    no_guarantee: str = ""
    tuning: TuningAnswer | None = None
    error: str = ""


class ClosedAsk(ReportRecord):
    """One ask with its held-out values.

    Attributes:
        number: From 1.
        date: When it was asked.
        phase: From 1.
        answer: As it was told; null = the ask was killed before.
        config: The candidate's resolved configuration.
        lists: New lists that it read.
        tuning_gain: Mean difference on the tuning queries; null = it cannot be computed.
        is_screened: Not better on the tuning queries, and so not tested.
        is_contradicted: It was told ``ship``, and its values as computed now do not say so.
        gain: Held out, with the interval of its share: the betting interval, or Student's.
        log_e_value: Natural logarithm of the e-value.
    """

    number: int
    date: str
    phase: int
    answer: Literal["ship", "keep"] | None
    config: dict[str, Any]
    lists: tuple[str, ...] = ()
    tuning_gain: OptionalFloat
    is_screened: bool
    is_contradicted: bool
    gain: Gain | None
    log_e_value: OptionalFloat


class CampaignReport(ReportRecord):
    """A closed campaign, whole.

    Attributes:
        format: Always ``fusion-bench-campaign-report``.
        format_version: See the history in this module.
        status: How it stood.
        closed_by: Who closed it.
        overrides: Who looked at held-out queries, and by which command.
        changes: What is not as it was frozen, so that values may differ; empty = nothing.
        asks: In their order.
        held_out: Ids of the held-out queries.
        baseline_values: Of the first baseline on each of them.
        shipped_values: Of what shipped last; empty = nothing did.
    """

    format: Literal["fusion-bench-campaign-report"] = "fusion-bench-campaign-report"
    format_version: Annotated[int, Field(ge=1)] = FORMAT_VERSION
    status: CampaignStatus
    closed_by: str
    overrides: tuple[str, ...]
    changes: str
    asks: tuple[ClosedAsk, ...]
    held_out: tuple[str, ...]
    baseline_values: tuple[float, ...]
    shipped_values: tuple[float, ...]
