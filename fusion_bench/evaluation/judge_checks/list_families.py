"""The model families behind the lists of a dataset, and behind systems."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from fusion_bench.data.run import Run
from fusion_bench.experiment.system import System
from fusion_bench.io.dataset import Dataset


class ListFamily(Protocol):
    """A list, and the family of the model that made it."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def kind(self) -> str:
        """``run`` or ``rerank``."""

    @property
    def family(self) -> str | None:
        """The family; None = none, or not declared."""


@dataclass(frozen=True)
class DeclaredFamily:
    """A :class:`ListFamily`."""

    name: str
    kind: str
    family: str | None


def list_families(dataset: Dataset) -> list[DeclaredFamily]:
    """The family of each list that was read."""
    return [
        DeclaredFamily(name, kind, family_of(dataset, run))
        for kind, lists in (("run", dataset.runs), ("rerank", dataset.rerankers))
        for name, run in lists.items()
    ]


def find_related_systems(systems: Iterable[System], family: str | None) -> tuple[str, ...]:
    """The systems that declare a family, or one of whose stages does.

    Args:
        systems: The systems.
        family: The family; None = not known.
    """
    names = (each.name for each in systems if family is not None and _has_family(each, family))
    return tuple(dict.fromkeys(names))


def _has_family(system: System, family: str) -> bool:
    stages = (system.stages or {}).values()
    return system.family == family or any(_has_family(stage, family) for stage in stages)


def family_of(dataset: Dataset, run: Run) -> str | None:
    """The family behind one list."""
    is_rerank = dataset.rerankers.get(run.name) is run
    spec = (dataset.spec.rerank if is_rerank else dataset.spec.runs).get(run.name)
    return None if spec is None else spec.family
