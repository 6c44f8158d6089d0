"""What every way to retrieve has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from fusion_bench.retrieve.answers.collect import Usage
from fusion_bench.retrieve.answers.store import AnswerStore
from fusion_bench.retrieve.common import Progress, Ranking
from fusion_bench.retrieve.texts import SearchTexts


@dataclass
class SearchContext:
    """What a search is done with.

    Attributes:
        store: Keeps what models answered.
        on_progress: Called with what is done now, the steps done, and all steps.
        usage: What was asked of models, by what it was.
    """

    store: AnswerStore
    on_progress: Progress
    usage: dict[str, Usage] = field(default_factory=dict)

    def report_stage(self, stage: str) -> Callable[[int, int], None]:
        """A callback for the steps of one stage."""
        return lambda done, total: self.on_progress(stage, done, total)

    def report_queries(self, total: int) -> Callable[[int], None]:
        """A callback for the queries that are searched for."""
        return lambda done: self.on_progress("searching", done, total)


class Retriever(Protocol):
    """A way to retrieve.

    Attributes:
        name: What its run is called by default.
        roles: The roles of its run.
    """

    @property
    def name(self) -> str:
        """What its run is called by default."""
        ...

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles of its run."""
        ...

    def describe(self) -> dict[str, Any]:
        """Its settings, as JSON has them."""
        ...

    def search(
        self, texts: SearchTexts, depth: int, context: SearchContext
    ) -> Mapping[str, Ranking]:
        """At most ``depth`` documents for each query.

        Raises:
            FusionBenchError: An input breaks a rule, or a model failed.
        """
        ...
