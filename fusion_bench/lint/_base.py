"""The contract of a lint rule."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

from fusion_bench.config.models import Location
from fusion_bench.config.registry import Registry
from fusion_bench.evaluation.report_records.lint_finding import Severity
from fusion_bench.lint._subject import Subject
from fusion_bench.lint._witness import Witness

#: What a ``dataset.yaml`` may add to a configuration: roles of runs, score spaces of rerank lists,
#: types of queries.
Fact: TypeAlias = Literal["roles", "score_space", "types"]


@dataclass(frozen=True)
class Problem:
    """What a rule finds in one plain system.

    Attributes:
        message: What the configuration does, with its numbers; names no system, so that systems
            of the same numbers share it.
        location: Path of the value inside the system.
        build_witness: Makes ranks and scores on which the real system shows it.
        severity: In place of the rule's.
        of_whole: It is of the whole system, whatever the query type.
    """

    message: str
    location: Location
    build_witness: Callable[[], Witness]
    severity: Severity | None = None
    of_whole: bool = False


class Rule(ABC):
    """Finds one thing that a configuration does or cannot do, before any data is seen.

    Attributes:
        id: Its stable name, in kebab case; never reused for something else.
        severity: ``warning`` = results suffer, or are not what the numbers suggest; ``note`` =
            worth knowing. Only warnings change the exit code of ``fusion-bench lint``.
        facts: What it needs of the ``dataset.yaml``; without a dataset it is not checked.
    """

    id: ClassVar[str]
    severity: ClassVar[Severity] = "warning"
    facts: ClassVar[frozenset[Fact]] = frozenset()

    @abstractmethod
    def find_problems(self, subject: Subject) -> Iterator[Problem]:
        """What it finds in one plain system."""


_rules: Registry[Rule] = Registry("lint rule", "fusion_bench.lint", "fusion_bench.lint_rules")


def register_rule(rule: type[Rule]) -> type[Rule]:
    """Class decorator: make a rule known by its id."""
    _rules.add_plugin(rule.id, rule())
    return rule


def load_rules() -> Mapping[str, Rule]:
    """The rules of this folder by id, in order; a search for others would take too long."""
    return _rules.load_built_in()
