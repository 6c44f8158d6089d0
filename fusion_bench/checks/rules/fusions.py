"""Rules about fusions: weights, bonuses, k that do other than their numbers suggest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fusion_bench.checks.lint_rule import (
    Problem,
    Subject,
    Witness,
    rank_lists,
    register_rule,
    without_blend,
)
from fusion_bench.config.query_types import SUM_TOLERANCE
from fusion_bench.methods.fuse.rrf import RRF, RRFv2


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


@register_rule("bonus-dominates")
def check_bonus_dominates(subject: Subject) -> Iterator[Problem]:
    """The bonus of ``rrf_v2`` sorts documents by their best rank alone.

    A tier whose least score is above the greatest score of a lower one.
    """
    fusion = subject.rank_fusion
    if not isinstance(fusion, RRFv2) or len(subject.sources) < 2 or not fusion.bonus:
        return
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
    tiers = [
        Tier(first, last, min(lows[i * size : (i + 1) * size]), highs[i])
        for i, (first, last) in enumerate(ranges)
    ]
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
        message,
        ("fusion", "bonus"),
        lambda: _build_bonus_witness(subject, fusion, above, below),
    )


def _scoped_sources(subject: Subject, fusion: RRFv2) -> tuple[str, ...]:
    """The sources whose ranks earn a bonus."""
    if fusion.bonus_scope != "question":
        return subject.sources
    return tuple(name for name in subject.sources if "question" in subject.roles_of(name))


def _build_bonus_witness(subject: Subject, fusion: RRFv2, above: Tier, below: Tier) -> Witness:
    """One list's document of the upper tier against one that all lists return."""
    scoped = _scoped_sources(subject, fusion)
    last = above.first if above.last is None else above.last
    lightest = min(scoped, key=lambda name: subject.score_at({name: last}))
    shared = {name: below.first if name in scoped else 1 for name in subject.sources}
    return subject.make_witness(
        f"{lightest} alone ranks d1 {last}; every list returns d2, at best rank {below.first}; "
        "d1 wins",
        rank_lists({"d1": {lightest: last}, "d2": shared}),
        above=(("d1", "d2"),),
    )


#: Where the last rank counts at least this part of the first, ranks hardly count.
LEAST_RATIO = 0.9
#: The length of lists that the configuration does not cut.
USUAL_DEPTH = 100


@register_rule("k-beyond-depth", severity="note")
def check_k_beyond_depth(subject: Subject) -> Iterator[Problem]:
    """With k far beyond the depth, lists are votes.

    A last rank that counts nearly as much as the first.
    """
    fusion = subject.rank_fusion
    if not isinstance(fusion, RRF) or len(subject.sources) < 2:
        return
    depth = subject.depth or USUAL_DEPTH
    weights = subject.weights or {}
    pair = sorted(weights, key=lambda name: -weights[name])[:2]
    first, last = (subject.score_at({pair[0]: rank}) for rank in (1, depth))
    ratio, both = last / first, subject.score_at(dict.fromkeys(pair, depth))
    if depth < 2 or ratio < LEAST_RATIO or both <= first:
        return
    k = min(fusion.k.values()) if isinstance(fusion.k, dict) else fusion.k
    origin = "" if subject.depth else f" (the configuration sets no depth: {depth} is assumed)"
    message = (
        f"k {k:g} is far beyond the depth {depth}{origin}: rank {depth} counts "
        f"{ratio:.1%} of rank 1, so a document that two lists rank last beats one that a "
        "single list ranks first; lists count as votes"
    )
    yield Problem(message, ("fusion", "k"), lambda: _build_depth_witness(subject, pair, depth))


def _build_depth_witness(subject: Subject, pair: list[str], depth: int) -> Witness:
    """The last document of two lists against the first of one."""
    last = {name: min(depth, subject.depth_of(name) or depth) for name in pair}
    return subject.make_witness(
        f"{pair[0]} alone ranks d1 first; {' and '.join(pair)} rank d2 {depth}; d2 wins",
        rank_lists({"d1": {pair[0]: 1}, "d2": last}),
        above=(("d2", "d1"),),
    )


@register_rule("three-lists-ceiling", severity="note")
def check_three_lists_ceiling(subject: Subject) -> Iterator[Problem]:
    """The scale of ``three_lists`` is never used up.

    A greatest score below 1.
    """
    fusion = subject.rank_fusion
    if fusion is None or fusion.normalize != "three_lists":
        return
    total, top = sum((subject.weights or {}).values()), subject.greatest_score
    if not top < 1 - 1e-9:
        return
    message = (
        f"three_lists divides by 3/(k+1), for three lists of weight 1, and the weights sum to "
        f"{total:g}: no score exceeds {top:.3f}, so a threshold on [0, 1] means less than it "
        "says"
    )
    yield Problem(
        message,
        ("fusion", "normalize"),
        lambda: subject.make_witness(
            f"every list ranks d1 first; it scores {top:.3f}",
            rank_lists({"d1": dict.fromkeys(subject.sources, 1)}),
            scores={"d1": top},
        ),
    )


@register_rule("weights-by-type-untyped", facts={"types"})
def check_weights_by_type_untyped(subject: Subject) -> Iterator[Problem]:
    """Every query gets the parameters of the fallback.

    A dataset none of whose types or intents the system names.
    """
    key, known = subject.whole.class_key, subject.whole.query_classes
    if key is None or known is None or not subject.is_fallback or subject.dataset is None:
        return
    if subject.whole.types in {"hybrid", "predicted"}:
        return
    values = subject.dataset.classes(key)
    if values is None or values & set(known) - {key.fallback}:
        return
    named = ", ".join(name for name in known if name != key.fallback) or "none"
    listed = ", ".join(sorted(values))
    given = f"has the {key.field}s {listed}" if values else f"has no {key.title}s"
    message = (
        f"{subject.dataset.name} {given}, and the parameters are by {key.field} ({named}): "
        f"every query gets those of {key.fallback!r}"
    )
    location = (subject.whole.class_field,)
    yield Problem(message, location, lambda: _build_untyped_witness(subject), of_whole=True)


def _build_untyped_witness(subject: Subject) -> Witness:
    """A query without the field, with the whole system and with the one of the fallback."""
    names = subject.system.runs
    ranks = {f"d{i}": {name: 1 + (i + s) % 3 for s, name in enumerate(names)} for i in range(3)}
    plain, whole = without_blend(subject.system), without_blend(subject.whole)
    parts = subject.whole.class_configs
    if parts is not None:
        update = {"blend": plain.blend}
        by_class = {name: part.model_copy(update=update) for name, part in parts.items()}
        whole = whole.model_copy(update={subject.whole.class_field: by_class})
    return subject.make_witness(
        f"without a known {subject.class_field} the query gets the list of {subject.query_class!r}",
        rank_lists(ranks),
        same_as=plain,
        system=whole,
    )


#: Lists of weight 1 that ``three_lists`` divides by.
THREE = 3


@register_rule("weights-sum")
def check_weights_sum(subject: Subject) -> Iterator[Problem]:
    """The weights do not sum to what the formula takes them to.

    Sums of weights by type that differ, and too much weight for ``three_lists``.
    """
    if subject.rank_fusion is None:
        return
    if subject.is_fallback:
        yield from _check_types(subject)
    # Sums above 1 are clamped, and then equal.
    total = sum((subject.weights or {}).values())
    if subject.rank_fusion.normalize != "three_lists" or total <= THREE:
        return
    first, second = (
        subject.score_at(dict.fromkeys(subject.sources, rank)) / subject.divisor for rank in (1, 2)
    )
    if second <= 1:
        return
    message = (
        f"three_lists divides by 3/(k+1), for three lists of weight 1, and the weights sum to "
        f"{total:g}: documents that every list ranks first and second would score {first:.3f} "
        f"and {second:.3f} and are both shown as 1, which a blend or a threshold then reads"
    )
    yield Problem(
        message,
        ("fusion", "weights"),
        lambda: subject.make_witness(
            "every list ranks d1 first and d2 second; both score 1",
            rank_lists({f"d{r}": dict.fromkeys(subject.sources, r) for r in (1, 2)}),
            scores={"d1": 1.0, "d2": 1.0},
        ),
    )


def _check_types(subject: Subject) -> Iterator[Problem]:
    """The sum of weights of each type, where scores grow with it."""
    sums: dict[str, float] = {}
    for name in subject.whole.query_classes or ():
        part = Subject(subject.whole.of_class(name), subject.whole, name, subject.dataset)
        if part.rank_fusion is None or part.rank_fusion.normalize == "max_possible":
            return
        sums[name] = sum((part.weights or {}).values())
    odd = [name for name, total in sums.items() if abs(total - 1) > SUM_TOLERANCE + 1e-9]
    if not odd or max(sums.values()) - min(sums.values()) <= SUM_TOLERANCE + 1e-9:
        return
    listed = ", ".join(f"{name} {total:g}" for name, total in sums.items())
    message = (
        f"the weights sum to {listed}: fused scores grow with the sum, so those of different "
        f"{subject.class_title}s are not on one scale; make each sum 1"
    )
    location = (subject.whole.class_field,)
    yield Problem(message, location, lambda: _build_type_witness(subject, sums), of_whole=True)


def _build_type_witness(subject: Subject, sums: dict[str, float]) -> Witness:
    """The first document of every list, for the type of the greatest sum."""
    name = max(sums, key=lambda query_type: sums[query_type])
    part = Subject(subject.whole.of_class(name), subject.whole, name, subject.dataset)
    field = subject.class_field
    least = min(sums.values()) / sums[name]
    return subject.make_witness(
        f"every list ranks d1 first; it scores {part.greatest_score:.4f} for {field} {name}, and "
        f"only {least:.0%} of that for the {field} of the least sum",
        rank_lists({"d1": dict.fromkeys(part.sources, 1)}),
        scores={"d1": part.greatest_score},
        system=without_blend(part.system),
    )
