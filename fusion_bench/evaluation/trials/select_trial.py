"""One trial of a dataset's lists, for what looks at single lists and documents."""

from __future__ import annotations

from dataclasses import replace

from fusion_bench.errors import ConfigError
from fusion_bench.io.dataset import Dataset
from fusion_bench.util.formatting import list_names, pluralize


def select_trial(dataset: Dataset, number: int) -> Dataset:
    """The dataset with one file of each list; itself where every list has one.

    No list stands there with another trial: of several numbers of files the fewest count.

    Args:
        dataset: Any.
        number: From 1.

    Raises:
        ConfigError: Its lists have fewer trials.
    """
    count = dataset.count_trials()
    if number > count:
        raise ConfigError(
            f"--trial: {dataset.name} has {pluralize(count, 'trial')} of these lists, so "
            f"{number} is none of them: name one from 1 to {count}"
        )
    return dataset.trials[number - 1] if number > 1 else replace(dataset, later_trials=())


def describe_selection(dataset: Dataset, number: int = 1) -> str | None:
    """Which trial of which lists is shown; None where every list has one file.

    Args:
        dataset: With every trial.
        number: The one that is shown.
    """
    if not dataset.later_trials:
        return None
    counts = dataset.trial_counts
    names = [key.partition("/")[2] for key in sorted(counts)]
    numbers = " or ".join(map(str, sorted({*counts.values()})))
    return f"trial {number} of {numbers} of {list_names(names)}"
