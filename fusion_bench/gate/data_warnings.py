"""The warnings of the lists that the candidate reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fusion_bench.evaluation.dataset_checks.data_warnings import find_data_warnings
from fusion_bench.evaluation.judge_checks.describe_judge import describe_judge
from fusion_bench.evaluation.judge_checks.judge_warnings import find_judge_warnings
from fusion_bench.evaluation.list_checks.list_infos import task_list_infos
from fusion_bench.evaluation.prepared_dataset import EvaluationSet
from fusion_bench.evaluation.report_records.data_warning import DataWarning
from fusion_bench.experiment.system import System


def find_warnings(collections: Sequence[EvaluationSet], candidate: System) -> Iterator[DataWarning]:
    """The warnings of each collection, as ``eval`` has them.

    Args:
        collections: The loaded datasets.
        candidate: The gated system; lists that only the baseline's system reads have none.

    Yields:
        Each text begins with its collection where there are several.
    """
    configs = {candidate.name: candidate.resolved_config}
    used = {*candidate.base_runs, *candidate.reranker_names}
    for task in collections:
        every = task_list_infos(task)
        infos = [info for info in every if info.name in used]
        measures = [measure.name for measure in task.measures]
        start = f"{task.dataset.name}: " if len(collections) > 1 else ""
        warnings = (
            *find_judge_warnings(describe_judge(task.dataset, [candidate]), every),
            *find_data_warnings(infos, len(task.runs.queries), configs, measures),
        )
        for warning in warnings:
            yield DataWarning(key=warning.key, text=start + warning.text)
