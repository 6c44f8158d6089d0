"""The warnings of judges where a dataset is at hand, and no record of its lists."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from fusion_bench.evaluation.judge_checks.describe_judge import describe_judge
from fusion_bench.evaluation.judge_checks.judge_warnings import (
    SHARED_FAMILY,
    describe_shared_family,
    find_judge_warnings,
)
from fusion_bench.evaluation.judge_checks.list_families import find_related_systems, list_families
from fusion_bench.evaluation.report_records.data_warning import DataWarning
from fusion_bench.evaluation.report_records.judge_info import JudgeInfo
from fusion_bench.experiment.system import System
from fusion_bench.io.dataset import Dataset


def find_dataset_warnings(dataset: Dataset, systems: Iterable[System]) -> tuple[DataWarning, ...]:
    """What speaks against the judge of a dataset's judgments.

    Args:
        dataset: With the lists that the systems read.
        systems: These systems.
    """
    return tuple(find_judge_warnings(describe_judge(dataset, systems), list_families(dataset)))


def find_shared_families(
    dataset: Dataset, judges: Iterable[str], systems: Collection[System]
) -> Iterator[DataWarning]:
    """The judges whose family also made a list that the systems read, or works in a system.

    Args:
        dataset: With these lists.
        judges: Names of ``judges``, or ``qrels``.
        systems: These systems.
    """
    lists = list_families(dataset)
    for name in judges:
        spec = dataset.spec.judges.get(name) or dataset.spec.qrels
        family = None if spec is None else spec.family
        judge = JudgeInfo(family=family, related_systems=find_related_systems(systems, family))
        if text := describe_shared_family(judge, lists, who=f"Judge {name!r}"):
            yield DataWarning(key=SHARED_FAMILY, text=text)
