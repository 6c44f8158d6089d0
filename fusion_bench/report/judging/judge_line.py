"""The command that asks for what to judge first, as pages print it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from shlex import join
from typing import Final

from fusion_bench.evaluation.report_records.report import Provenance

#: Documents to judge at a time.
BUDGET: Final = 50
#: The suffixes of an experiment's file.
SUFFIXES: Final = (".yaml", ".yml")
#: Where ``try`` saves lists that have no experiment.
SAVED: Final = "mine/experiment.yaml"
SAVE_FIRST: Final = " (after 'fusion-bench try' with '--save mine', which writes that file)"


@dataclass(frozen=True)
class JudgePlace:
    """What is judged: one dataset of an experiment.

    Attributes:
        experiment: The experiment's file; what is no such file stands for lists without one.
        dataset: One of its datasets; None = it has one only.
        overrides: Values that ``--set`` replaced.
    """

    experiment: str
    dataset: str | None = None
    overrides: Sequence[str] = ()

    @property
    def is_file(self) -> bool:
        """Whether it is an experiment's file."""
        return self.experiment.endswith(SUFFIXES)

    @classmethod
    def of_report(cls, provenance: Provenance, collection: str, collections: int) -> JudgePlace:
        """One collection of a report.

        Args:
            provenance: Of the report.
            collection: Name of the collection.
            collections: How many the report has.
        """
        dataset = collection if collections > 1 else None
        return cls(provenance.experiment_file, dataset, provenance.overrides)


def format_judge_line(
    place: JudgePlace, candidate: str | None = None, baseline: str | None = None
) -> str:
    """``fusion-bench judge experiments/mine.yaml --candidate NAME --next 50``.

    Args:
        place: What is judged.
        candidate: The system whose difference is to be decided; None = the best.
        baseline: The system that it differs from; None = the experiment's.
    """
    options = {"--baseline": baseline, "--candidate": candidate, "--next": str(BUDGET)}
    return _format_line(place, options)


def format_pool_line(place: JudgePlace, system: str) -> str:
    """``fusion-bench judge experiments/mine.yaml --system NAME --order pool``.

    Args:
        place: What is judged.
        system: The system whose documents are to be judged.
    """
    return _format_line(place, {"--system": system, "--order": "pool"})


def _format_line(place: JudgePlace, options: Mapping[str, str | None]) -> str:
    words = ["fusion-bench", "judge", place.experiment if place.is_file else SAVED]
    for option, name in {"--dataset": place.dataset, **options}.items():
        words += [] if name is None else [option, name]
    for text in place.overrides:
        words += ["--set", text]
    return join(words) + ("" if place.is_file else SAVE_FIRST)
