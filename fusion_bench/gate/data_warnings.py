"""The warnings of the judge, and of the lists that the candidate reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fusion_bench.evaluation.dataset_checks.data_warnings import find_data_warnings
from fusion_bench.evaluation.dataset_checks.ignored_queries import (
    count_known_ignored,
    warn_ignored,
)
from fusion_bench.evaluation.dataset_checks.judged_grades import (
    find_grade_warnings,
    list_grades,
)
from fusion_bench.evaluation.judge_checks.dataset_judges import find_dataset_warnings
from fusion_bench.evaluation.judge_checks.describe_judge import describe_judge
from fusion_bench.evaluation.judge_checks.judge_warnings import find_judge_warnings
from fusion_bench.evaluation.list_checks.list_infos import task_list_infos
from fusion_bench.evaluation.prepared_dataset import EvaluationSet
from fusion_bench.evaluation.report_records.data_warning import DataWarning
from fusion_bench.evaluation.run_experiment import find_datasets, load_lists
from fusion_bench.evaluation.trials.first_trial import describe_first_trial, warn_first_trial
from fusion_bench.experiment.system import System
from fusion_bench.gate.inputs import GateInputs, open_own_cache
from fusion_bench.io.dataset_config import read_spec


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
        judge = describe_judge(task.dataset, [candidate])
        grades = list_grades(task.dataset.qrels, task.runs.queries)
        relevance = task.dataset.spec.binary_relevance
        warnings = (
            *find_judge_warnings(judge, every),
            *find_grade_warnings(grades, relevance, is_machine=judge is not None),
            *warn_ignored(count_known_ignored(task), len(task.runs.queries)),
            *find_data_warnings(infos, len(task.runs.queries), configs, measures),
            *warn_first_trial(describe_first_trial(task.dataset)),
        )
        for warning in warnings:
            yield DataWarning(key=warning.key, text=start + warning.text)


def find_update_warnings(inputs: GateInputs) -> Iterator[str]:
    """What speaks against the judge whose grades become the baseline.

    Args:
        inputs: The experiment; only datasets that a machine judged are read.

    Yields:
        Each text begins with its dataset where there are several.
    """
    paths = [*find_datasets(inputs.experiment, inputs.source, inputs.folders)]
    for _, path in paths:
        qrels = read_spec(path)[0].qrels
        if qrels is not None and qrels.kind == "machine":
            cache = open_own_cache(path) or False
            dataset = load_lists(path, (inputs.candidate,), inputs.progress, cache=cache)
            start = f"{dataset.name}: " if len(paths) > 1 else ""
            for warning in find_dataset_warnings(dataset, [inputs.candidate]):
                yield start + warning.text
