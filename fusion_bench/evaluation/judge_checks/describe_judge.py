"""The machine judge of a dataset, and how far it agrees with people."""

from __future__ import annotations

from collections.abc import Iterable

from fusion_bench.evaluation.judge_checks.list_families import find_related_systems
from fusion_bench.evaluation.report_records.judge_info import JudgeInfo
from fusion_bench.experiment.system import System
from fusion_bench.io.dataset import Dataset
from fusion_bench.io.judgments.load_judge import load_judge
from fusion_bench.stats.agreement.grade_pairs import GradePairs, pair_grades
from fusion_bench.stats.agreement.kappa import make_weights, measure_kappa


def describe_judge(dataset: Dataset, systems: Iterable[System] = ()) -> JudgeInfo | None:
    """The judge of a dataset's judgments where it is a machine; None = people gave the grades.

    Args:
        dataset: The dataset.
        systems: Those that are evaluated.

    Raises:
        DataError: The file of a human judge breaks a rule.
    """
    spec = dataset.spec
    if spec.qrels is None or spec.qrels.kind == "human":
        return None
    known = {
        "family": spec.qrels.family,
        "related_systems": find_related_systems(systems, spec.qrels.family),
        "is_accepted": spec.qrels.unmeasured == "accept",
    }
    pairs = {
        name: pair_grades(load_judge(dataset, name), dataset.qrels)
        for name, judge in spec.judges.items()
        if judge.kind == "human"
    }
    if not pairs:
        return JudgeInfo.model_validate(known)
    name = max(pairs, key=lambda judge: int(pairs[judge].counts.sum()))
    return _measure(pairs[name], spec.binary_relevance).model_copy(update={**known, "people": name})


def _measure(pairs: GradePairs, binary_relevance: int) -> JudgeInfo:
    graded = measure_kappa(pairs.counts, make_weights(pairs.grades, "none"))
    binary = measure_kappa(pairs.binary_counts(binary_relevance), make_weights((0, 1), "none"))
    return JudgeInfo(
        pairs=int(pairs.counts.sum()),
        queries=len(pairs.queries),
        kappa=graded.value,
        low=graded.low,
        high=graded.high,
        binary_kappa=binary.value,
        binary_low=binary.low,
        binary_high=binary.high,
    )
