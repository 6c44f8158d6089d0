"""A bonus larger than what the sum that it is added to can make up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from fusion_bench.fuse.rrf_v2 import RRFv2
from fusion_bench.lint._base import Problem, Rule, register_rule
from fusion_bench.lint._subject import Subject
from fusion_bench.lint._witness import Witness, rank_lists, without_blend


@dataclass(frozen=True)
class Tier:
    """Documents of one bonus: those whose best rank lies in a range.

    Attributes:
        first: The best of these ranks.
        last: The worst; None = no limit.
        low: The least score, before ``normalize``.
        high: The greatest.
    """

    first: int
    last: int | None
    low: float
    high: float

    @property
    def label(self) -> str:
        """``1``, ``2–3``, ``4+``."""
        if self.last is None:
            return f"{self.first}+"
        return f"{self.first}" if self.first == self.last else f"{self.first}–{self.last}"

    def __str__(self) -> str:
        """The ranks and the scores."""
        low = "up to " if self.last is None else f"{self.low:.4f} to "
        return f"{self.label}: {low}{self.high:.4f}"


@register_rule
class BonusDominates(Rule):
    """``bonus-dominates``: the bonus of ``rrf_v2`` sorts documents by their best rank alone."""

    id: ClassVar[str] = "bonus-dominates"

    def find_problems(self, subject: Subject) -> Iterator[Problem]:
        """A tier whose least score is above the greatest score of a lower one."""
        fusion = subject.rank_fusion
        if not isinstance(fusion, RRFv2) or len(subject.sources) < 2 or not fusion.bonus:
            return
        tiers = _list_tiers(subject, fusion)
        pairs = ((a, b) for i, a in enumerate(tiers) for b in tiers[i + 1 :] if a.low > b.high)
        pair = next(pairs, None)
        if pair is None:
            return
        above, below = pair
        lists = "the question's lists" if fusion.bonus_scope == "question" else "any list"
        message = (
            f"best rank {above.label} in {lists} scores at least {above.low:.4f} and best rank "
            f"{below.label} at most {below.high:.4f}, whatever the other lists say; scores by best "
            f"rank: {'; '.join(map(str, tiers))}"
        )
        yield Problem(
            message, ("fusion", "bonus"), lambda: _build_witness(subject, fusion, above, below)
        )


def _list_tiers(subject: Subject, fusion: RRFv2) -> list[Tier]:
    """The tiers of the bonus, and the documents without one, as far as the lists go."""
    scoped, depth = _scoped_sources(subject, fusion), subject.depth
    starts = [1, *(limit + 1 for limit in fusion.bonus)]
    ends = [limit if depth is None else min(limit, depth) for limit in fusion.bonus]
    ranges = list(zip(starts, [*ends, None], strict=True))
    if depth is not None:
        ranges = [(first, last) for first, last in ranges if first <= depth]
    best = [
        {name: first if name in scoped else 1 for name in subject.sources} for first, _ in ranges
    ]
    alone = [{name: last or 0} for _, last in ranges for name in scoped]
    scores = subject.list_scores([*best, *alone])
    highs, lows = scores[: len(best)], scores[len(best) :]
    size = len(scoped)
    return [
        Tier(first, last, min(lows[i * size : (i + 1) * size]), highs[i])
        for i, (first, last) in enumerate(ranges)
    ]


def _scoped_sources(subject: Subject, fusion: RRFv2) -> tuple[str, ...]:
    """The sources whose ranks earn a bonus."""
    if fusion.bonus_scope != "question":
        return subject.sources
    return tuple(name for name in subject.sources if "question" in subject.roles_of(name))


def _build_witness(subject: Subject, fusion: RRFv2, above: Tier, below: Tier) -> Witness:
    """One list's document of the upper tier against one that all lists return."""
    scoped = _scoped_sources(subject, fusion)
    last = above.first if above.last is None else above.last
    lightest = min(scoped, key=lambda name: subject.score_at({name: last}))
    shared = {name: below.first if name in scoped else 1 for name in subject.sources}
    return Witness(
        without_blend(subject.system),
        f"{lightest} alone ranks d1 {last}; every list returns d2, at best rank {below.first}; "
        "d1 wins",
        rank_lists({"d1": {lightest: last}, "d2": shared}),
        above=(("d1", "d2"),),
        dataset=subject.dataset,
    )
