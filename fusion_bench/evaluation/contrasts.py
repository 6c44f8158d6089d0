"""Systems against the baseline over all collections; answers that unjudged documents decide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from fusion_bench.checks.unjudged import UnjudgedDifference, UnjudgedEvidence, compare_unjudged
from fusion_bench.data.grouped_rows import number_by_appearance
from fusion_bench.data.ordering import FloatArray
from fusion_bench.errors import ConfigError
from fusion_bench.evaluation.report_records import Collection, SystemResult
from fusion_bench.measures.aliases import is_bounded
from fusion_bench.stats.comparison import BETTER, SHOWN, WORSE, Answer, Comparison, Direction
from fusion_bench.stats.comparison_family import (
    ComparedValues,
    compare_alone,
    compare_family,
    find_first_group,
)

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


def veto_answer(answer: Answer, unjudged: UnjudgedDifference | None, min_gain: float) -> Answer:
    """The answer; ``unjudged decide`` where unjudged documents contradict what it shows.

    Args:
        answer: Of the primary measure.
        unjudged: The same difference; None with complete judgments.
        min_gain: m of ``equivalent``.
    """
    if unjudged is None or answer not in SHOWN:
        return answer
    direction: Direction = 1 if answer in BETTER else -1 if answer in WORSE else 0
    return "unjudged decide" if unjudged.decides(direction, min_gain) else answer


def compare_rows(
    collection: Collection, candidate: SystemResult, baseline: SystemResult, *, alpha: float
) -> UnjudgedDifference | None:
    """What unjudged documents could change between two rows of a report.

    Args:
        collection: Gives groups and judgments.
        candidate: A system of this collection, or of another report on the same queries.
        baseline: Likewise.
        alpha: 1 − coverage of the interval.

    Returns:
        Of the primary measure; None with complete judgments.
    """
    if collection.judgments == "complete":
        return None
    return compare_unjudged(
        _read_evidence(candidate),
        _read_evidence(baseline),
        groups=np.asarray(number_by_appearance(collection.groups)[0]),
        alpha=alpha,
        kind=collection.judgment_kind,
        is_bounded=is_bounded(collection.primary_measure),
    )


def _read_evidence(row: SystemResult) -> UnjudgedEvidence:
    """A report keeps the mean share alone: a sample of one."""
    filled = np.array(row.filled, dtype=np.float64) if row.filled else None
    share = np.array([row.unjudged_share or 0.0])
    return UnjudgedEvidence(share, np.array(row.judged_only, dtype=np.float64), filled)
