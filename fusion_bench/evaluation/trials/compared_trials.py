"""The trials of systems of two reports: the same or new ones, and what one trial hides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fusion_bench.evaluation.report_records.collection import Collection
from fusion_bench.evaluation.report_records.data_warning import DataWarning
from fusion_bench.evaluation.report_records.results.system import SystemResult

SINGLE_TRIAL = "single trial"


def match_trial_lists(left: Collection, right: Collection) -> dict[str, frozenset[str]]:
    """By system of the second report the lists that differ between its trials.

    A list whose files are others than in the first report has another name here, because its
    trials are new ones: they do not move together with those of the first.

    Args:
        left: The collection in the first report.
        right: The same in the second.
    """
    return {
        system: frozenset(
            name if _list_digests(left, name) == _list_digests(right, name) else f"{name} (second)"
            for name in lists
        )
        for system, lists in right.trial_lists.items()
    }


def _list_digests(collection: Collection, name: str) -> dict[str, str]:
    """The digest of each trial of a list, by part."""
    later = f"{name} trial "
    parts = collection.digests.items()
    return {part: digest for part, digest in parts if part == name or part.startswith(later)}


def warn_single_trial(
    row: SystemResult, names: Iterable[str], others: Iterable[SystemResult]
) -> Iterator[DataWarning]:
    """Whether a system of one trial reads a list that has several in the other report.

    Args:
        row: The system.
        names: The lists that it reads.
        others: The systems that it is compared with.
    """
    repeated = {name for other in others if other.trials for name in other.trials.lists}
    lists = sorted(set(names) & {name.partition("/")[2] for name in repeated})
    if row.trials is None and lists:
        text = (
            f"{row.name} has one trial of {lists[0]}, which has several in the other report. It "
            "counts as fixed, so its intervals are too narrow where trials differ: make several "
            "trials of both."
        )
        yield DataWarning(key=SINGLE_TRIAL, text=text)
