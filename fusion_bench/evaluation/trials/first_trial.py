"""What is found on the first trial alone, though lists have several."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from fusion_bench.evaluation.report_records.data_warning import DataWarning
from fusion_bench.evaluation.trials.select_trial import describe_selection
from fusion_bench.io.dataset import Dataset

FIRST_TRIAL: Final = "first trial"


def describe_first_trial(dataset: Dataset, *results: str) -> tuple[str, ...]:
    """Sentences on the results that read one trial of several.

    Args:
        dataset: With every trial.
        results: Names of such results, in the plural, beside the groups that are found.

    Returns:
        Empty where every list has one file.
    """
    trial = describe_selection(dataset)
    if trial is None:
        return ()
    texts = []
    if results:
        names = " and ".join(filter(None, (", ".join(results[:-1]), results[-1])))
        texts.append(f"{names} are those of {trial}. New trials may give others.")
    has_runs = any(part.startswith("runs/") for part in dataset.trial_lists)
    if has_runs and (dataset.spec.grouping == "auto" or dataset.found_groups):
        grouping = f"'groups: {dataset.spec.grouping}'"
        texts.append(f"{grouping} compared {trial}. New trials may give other groups.")
    return tuple(texts)


def warn_first_trial(texts: Iterable[str]) -> Iterator[DataWarning]:
    """The sentences of :func:`describe_first_trial` as warnings."""
    return (DataWarning(key=FIRST_TRIAL, text=text) for text in texts)
