"""What a policy study writes."""

from __future__ import annotations

from typing import Literal

from fusion_bench.config.models import StrictModel
from fusion_bench.evaluation.report_records.data_warning import DataWarning
from fusion_bench.evaluation.report_records.report import Provenance
from fusion_bench.evaluation.report_records.results.unjudged import UnjudgedResult

PolicyVerdict = Literal["pays", "no gain shown", "unjudged decide"]


class PolicyResult(StrictModel):
    """A policy on a collection; every mean is of values on queries that chose nothing.

    Attributes:
        collection: The dataset.
        system: Name of the system with the policy.
        policy: The policy's method.
        measure: The measure.
        queries: Q.
        trials: Parameter sets of the policy that were tried.
        fixed_trials: Fixed variants that were tried: each stands for all queries.
        folds: K.
        default: Mean of the system without the policy.
        configured: Mean with the policy as it is configured; None = it is trained.
        fixed: Mean of the fixed variant that the other folds choose.
        tuned: Mean of the policy with the parameters that the other folds choose.
        oracle: Mean of the best variant of each query: what no policy can pass.
        difference: ``tuned`` − ``fixed``.
        low: Lower end of its 95 % interval, paired.
        high: Upper end.
        null_mean: Mean difference where the features are shuffled across queries.
        null_high: What 97.5 % of the shuffled differences do not exceed.
        null_p: (1 + shufflings of at least the difference) / (1 + shufflings).
        shufflings: Number of shufflings of the null; as many others are put to the test.
        shuffled_above: So many of these others have an interval above 0.
        shuffled_pays: So many of them pass the whole rule.
        reranked: Share of the queries that the tuned policy reranks; None = it always does.
        verdict: See :func:`fusion_bench.tune.policy_study.study.decide_policy`; ``unjudged
            decide`` where it pays, and unjudged documents contradict that.
        unjudged: What unjudged documents could change in the difference of a policy that pays;
            None otherwise, and with complete judgments.
    """

    collection: str
    system: str
    policy: str
    measure: str
    queries: int
    trials: int
    fixed_trials: int
    folds: int
    default: float
    configured: float | None
    fixed: float
    tuned: float
    oracle: float
    difference: float
    low: float
    high: float
    null_mean: float
    null_high: float
    null_p: float
    shufflings: int
    shuffled_above: int
    shuffled_pays: int
    reranked: float | None
    verdict: PolicyVerdict
    unjudged: UnjudgedResult | None = None


class PolicyStudy(StrictModel):
    """The policies of an experiment.

    Attributes:
        format: Always ``fusion-bench-policies``.
        format_version: Version of this record.
        name: Of the experiment.
        settings: Trials, folds, shufflings and seed.
        results: One for each policy and collection.
        data_warnings: What speaks against the judges of the collections, and which trial of
            lists with several is judged.
        provenance: Of the run.
    """

    format: Literal["fusion-bench-policies"] = "fusion-bench-policies"
    format_version: Literal[1] = 1
    name: str
    settings: dict[str, object]
    results: tuple[PolicyResult, ...]
    data_warnings: tuple[DataWarning, ...] = ()
    provenance: Provenance
