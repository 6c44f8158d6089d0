"""Why no decision may rest on the grades of a dataset."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fusion_bench.evaluation.judge_checks.describe_judge import describe_judge
from fusion_bench.evaluation.judge_checks.judge_warnings import (
    describe_agreement,
    describe_shared_family,
)
from fusion_bench.evaluation.judge_checks.list_families import list_families
from fusion_bench.experiment.system import System
from fusion_bench.io.dataset import Dataset


def find_judge_refusals(dataset: Dataset, systems: Iterable[System]) -> Iterator[str]:
    """A judge whose family made a list that was read, and one not shown to agree with people.

    Args:
        dataset: With the lists that the compared systems read.
        systems: These systems.
    """
    judge = describe_judge(dataset, systems)
    if judge is None:
        return
    if shared := describe_shared_family(judge, list_families(dataset)):
        yield f"{dataset.name}: the grades are circular. {shared.removesuffix('.')}"
    if not judge.is_better_than_chance and not judge.is_accepted:
        yield (
            f"{dataset.name}: the grades are those of a machine judge. "
            f"{describe_agreement(judge)} Or say 'unmeasured: accept' under 'qrels'"
        )
