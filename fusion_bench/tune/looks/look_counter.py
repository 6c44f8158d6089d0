"""Counts the looks at held-out queries: number and level of each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fusion_bench.errors import ConfigError
from fusion_bench.report.tuning_records import look as record
from fusion_bench.tune.looks.digests import query_digests
from fusion_bench.tune.looks.lan_demets import planned_levels
from fusion_bench.tune.looks.ledger import (
    Look,
    LookPlan,
    read_looks,
    related_looks,
    update_ledger,
)
from fusion_bench.tune.looks.levels import look_level, power_at_level, query_factor
from fusion_bench.tune.looks.plans import check_plan, plan_fractions


@dataclass(frozen=True)
class LookCounter:
    """Counts the looks of one dataset.

    Attributes:
        path: The ledger that looks are written to; None = they are not counted.
        alpha: Two-sided level of a single look.
        max_queries: Of the declared plan; None = none is declared.
        readonly: A ledger that is read too, and cannot be written to; None = there is none.
        note: Why looks are not counted, or are counted elsewhere; empty = neither.
        earlier: The dataset and the look of the report that the run replaces; None = there is none.
    """

    path: Path | None
    alpha: float = 0.05
    max_queries: int | None = None
    readonly: Path | None = None
    note: str = ""
    earlier: tuple[str, record.Look] | None = None

    def find_plan(self, queries: Iterable[str], judgments: Iterable[str] = ()) -> LookPlan | None:
        """The plan that looks at these held-out queries belong to; None = there is none yet.

        Raises:
            ConfigError: A plan was declared after the first look, or the experiment does not keep
                to the one that was declared before it.
            DataError: A line of the ledger is no look.
        """
        wanted = self.max_queries
        if self.path is None:
            if wanted is not None:
                raise ConfigError(f"tune.looks.max_queries: needs counted looks, but {self.note}")
            return None
        earlier = related_looks(self._read_all(), (*query_digests(queries), *judgments))
        return check_plan(earlier, wanted, self.path)

    def open_look(self, look: Look) -> Look:
        """Write a look without its verdict, unless it was made before.

        Args:
            look: What is looked at; its number and level are not read.

        Returns:
            The look with its number and its level.

        Raises:
            ConfigError: The plan does not allow it.
            FusionBenchError: The ledger is malformed, or cannot be written.
        """
        opened: list[Look] = []

        def add(looks: list[Look]) -> list[Look]:
            known = [*self._read_readonly(), *looks]
            opened.extend(item for item in known if item.asks_same(look))
            return looks if opened else [*looks, self._number(look, known)]

        if self.path is None:
            return look.model_copy(update={"level": self.alpha / 2})
        looks = update_ledger(self.path, add)
        return opened[0] if opened else looks[-1]

    def close_look(self, look: Look, verdict: str) -> None:
        """Write the verdict of a look that :meth:`open_look` returned."""
        if self.path is not None:
            closed = look.model_copy(update={"verdict": verdict})
            update_ledger(
                self.path,
                lambda looks: [closed if item.asks_same(look) else item for item in looks],
            )

    def describe(self, look: Look) -> record.Look:
        """The record of an opened look, for the report."""
        single = self.alpha / 2
        shared = {"level": look.level, "power": power_at_level(look.level, single=single)}
        if self.path is None:
            return record.Look(number=None, note=self.note, **shared)
        made = related_looks(self._read_all(), look.contents)
        number, level = len(made) + 1, look_level(len(made) + 1, self.alpha)
        has_next = True
        if look.plan is not None:
            fractions = plan_fractions(made, look.plan)
            has_next = fractions[-1] < 1
            level = planned_levels([*fractions, 1.0], single)[-1] if has_next else 0.0
        return record.Look(
            number=look.number,
            next_number=number if has_next else None,
            next_level=level if has_next else None,
            next_query_factor=query_factor(level, single=single) if has_next else None,
            is_repeated=look.verdict is not None,
            file=str(self.path),
            line=look.line,
            digest=None if look.line is None else look.digest,
            note=self.note,
            max_queries=None if look.plan is None else look.plan.max_queries,
            **shared,
        )

    def describe_lost(self, dataset: str) -> str:
        """Which look of an earlier report at the dataset the ledger lacks; empty where none."""
        if self.earlier is None or self.earlier[0] != dataset or self.earlier[1].line is None:
            return ""
        look = self.earlier[1]
        if any((each.line, each.digest) == (look.line, look.digest) for each in self._read_all()):
            return ""
        return (
            f"line {look.line} of {look.file}, look {look.number}, on which the report before this "
            "one relies, is not in the ledger"
        )

    def _read_readonly(self) -> list[Look]:
        return [] if self.readonly is None else read_looks(self.readonly)

    def _read_all(self) -> list[Look]:
        return self._read_readonly() + ([] if self.path is None else read_looks(self.path))

    def _number(self, look: Look, known: Sequence[Look]) -> Look:
        """The look with the number and the level that follow from the looks before it."""
        earlier = related_looks(known, look.contents)
        number = len(earlier) + 1
        level = look_level(number, self.alpha)
        if look.plan is not None:
            fractions = plan_fractions([*earlier, look], look.plan)
            level = planned_levels(fractions, self.alpha / 2)[-1]
        return look.model_copy(update={"number": number, "level": level})


#: Of data in memory.
UNCOUNTED = LookCounter(None, note="the data are in memory: name a ledger, looks: {file: …}")
