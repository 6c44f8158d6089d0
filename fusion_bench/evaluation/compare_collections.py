"""Systems against baselines on several collections: the one inference of eval and compare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from fusion_bench.data.ordering import FloatArray
from fusion_bench.errors import ConfigError
from fusion_bench.measures.bounds import is_bounded
from fusion_bench.stats.compare_family import ComparedValues, compare_alone, compare_family
from fusion_bench.stats.comparison import Comparison
from fusion_bench.stats.first_group import find_first_group

#: Keys of an experiment that decide p, intervals and answers.
INFERENCE_KEYS = ("alpha", "correction", "min_gain", "resamples", "seed")


class Contrast(NamedTuple):
    """Systems of one collection, and the baseline that they are compared with.

    Attributes:
        measures: M names, the primary one first.
        baseline: Name of the baseline.
        values: By system, the baseline included, shape (M, Q).
        keys: (Q,): the group id of each query.
        trials: By system of several trials, shape (T, M, Q): what its values are the means of.
        trial_lists: By the same systems the lists that differ between their trials.
    """

    measures: tuple[str, ...]
    baseline: str
    values: Mapping[str, FloatArray]
    keys: tuple[str, ...]
    trials: Mapping[str, FloatArray] = {}
    trial_lists: Mapping[str, frozenset[str]] = {}

    def table(self, index: int) -> ComparedValues:
        """The values of one measure."""
        measure = self.measures[index]
        values = {name: array[index] for name, array in self.values.items()}
        trials = {name: array[:, index] for name, array in self.trials.items()}
        return ComparedValues(
            measure,
            values,
            self.baseline,
            self.keys,
            is_bounded(measure),
            trials,
            self.trial_lists,
        )

    def first_group(self, settings: Mapping[str, Any]) -> tuple[str, ...]:
        """The systems not shown to be worse than any other on the primary measure."""
        return find_first_group(self.table(0), seed=settings["seed"], alpha=settings["alpha"])


def read_inference_settings(settings: Mapping[str, Any], report: str) -> dict[str, Any]:
    """The settings of a report that decide p, intervals and answers.

    Raises:
        ConfigError: The report lacks one.
    """
    for name in INFERENCE_KEYS:
        if name not in settings:
            raise ConfigError(f"report {report!r}: no setting {name!r}: run the experiment again")
    return {name: settings[name] for name in INFERENCE_KEYS}


def compare_contrasts(
    contrasts: Sequence[Contrast], settings: Mapping[str, Any]
) -> list[tuple[Comparison, ...]]:
    """Compare the systems of all collections; the primary measures are one family.

    Args:
        contrasts: One a collection.
        settings: From :func:`read_inference_settings`.

    Returns:
        For each collection the comparisons, by measure and in the order of the systems.
    """
    primary = compare_family([contrast.table(0) for contrast in contrasts], **settings)
    return [
        (
            *comparisons,
            *(
                comparison
                for index in range(1, len(contrast.measures))
                for comparison in compare_alone(contrast.table(index), alpha=settings["alpha"])
            ),
        )
        for contrast, comparisons in zip(contrasts, primary, strict=True)
    ]
