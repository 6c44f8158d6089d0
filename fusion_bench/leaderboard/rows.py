"""The rows of a collection: every system of the leaderboard, by kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, TypeAlias

from fusion_bench.experiment.system import System
from fusion_bench.leaderboard.records import SystemRow
from fusion_bench.leaderboard.systems import (
    BASELINE,
    CONVEX,
    CORE,
    RERANK_DEPTH,
    Keys,
    Lists,
    fusion_systems,
    iterate_kinds,
    policy_systems,
    source_systems,
    with_reranker,
)
from fusion_bench.tune.space import declared_parameters

Methods: TypeAlias = Literal["all", "core"]

DEFAULT_CONSTANT: Final = 60
#: The k that are compared with the default one.
CONSTANTS: Final = (0, 1, 2, 5, 10, 20, 30, 40, 50, 60, 80, 100, 200, 500)
#: Which lists the k are compared on, and each list's depth.
ALL_LISTS, SHORT_LISTS, PAIR = "all lists", "first 10", "two lists"
SHORT: Final = 10
FLOOR: Final = "random order"
#: Chosen out of fold from fixed systems.
CHOSEN_SOURCE, CHOSEN_CONSTANT = "best source, out of fold", "best k, out of fold"
#: The difference of two tuned rows, which both choose anew in each flip.
TUNED_PAIR: Final = "convex, tuned − rrf, tuned"
#: Depths that a reranker orders.
DEPTHS: Final = (20, RERANK_DEPTH, 100)
UNION: Final = "union"
#: Documents that a system of the union orders: all of them.
WHOLE: Final = 100_000


def list_rows(lists: Lists, methods: Methods = "all") -> tuple[SystemRow, ...]:
    """All rows of a collection, or those that the questions need; the baseline is among them."""
    fusions = fusion_systems(lists, trained=False)
    kinds = [*_plain_kinds(lists, fusions, methods), *_derived_kinds(lists, fusions, methods)]
    rows = [
        SystemRow(name=name, kind=kind, config=dict(keys))
        for kind, systems in kinds
        for name, keys in systems.items()
    ]
    return (*rows, *_choices(lists, fusions), SystemRow(name=FLOOR, kind="floor"))


def _plain_kinds(
    lists: Lists, fusions: Mapping[str, Keys], methods: Methods
) -> Iterator[tuple[str, Mapping[str, Keys]]]:
    if methods == "all":
        yield from iterate_kinds(lists)
        return
    yield "source", source_systems(lists)
    yield "method", {name: keys for name, keys in fusions.items() if name in CORE}


def _derived_kinds(
    lists: Lists, fusions: Mapping[str, Keys], methods: Methods
) -> Iterator[tuple[str, Mapping[str, Keys]]]:
    tuned = fusions if methods == "all" else {BASELINE, CONVEX}
    yield (
        "tuned",
        {
            tuned_name(name): keys
            for name, keys in fusions.items()
            if name in tuned and _has_space(keys)
        },
    )
    policies = policy_systems(lists)
    yield "policy", {name: keys for name, keys in policies.items() if "blend" not in keys}
    yield "k", dict(_constants(lists, fusions[BASELINE]["runs"]))
    if lists.rerankers:
        rows = _reranked(lists, fusions, methods)
        yield "reranked", {name: keys for name, keys in rows if lists.fits(keys)}


def _constants(lists: Lists, runs: list[str]) -> Iterator[tuple[str, Keys]]:
    """Each k over all lists, their first documents, and a pair where there are more lists."""
    variants: dict[str, dict[str, Any]] = {
        ALL_LISTS: {"runs": runs},
        SHORT_LISTS: {"runs": runs, "depth": SHORT},
    }
    if len(lists.pair) < len(runs) and lists.pair:
        variants[PAIR] = {"runs": list(lists.pair)}
    for variant, keys in variants.items():
        for k in CONSTANTS:
            if (name := k_name(k, variant)) != BASELINE:
                yield name, {**keys, "fusion": {"method": BASELINE, "k": k}}


def _reranked(
    lists: Lists, fusions: Mapping[str, Keys], methods: Methods
) -> Iterator[tuple[str, Keys]]:
    """Rows below the reranker: sources and two fusions at each depth, all methods at one."""
    short = {name: fusions[name] for name in (BASELINE, CONVEX) if name in fusions}
    runs = fusions[BASELINE]["runs"]
    for depth in DEPTHS:
        whole = methods == "all" and depth == RERANK_DEPTH
        plain = {**source_systems(lists), **(fusions if whole else short)}
        for name, keys in plain.items():
            yield reranked_name(name, depth), with_reranker(lists, keys, depth=depth)
        union = {"runs": runs, "depth": depth}
        yield reranked_name(UNION, depth), with_reranker(lists, union, depth=WHOLE)


def _choices(lists: Lists, fusions: Mapping[str, Keys]) -> Iterator[SystemRow]:
    """What is chosen out of fold from fixed systems, and tuned fusions against it."""
    sources = tuple(map(dict, source_systems(lists).values()))
    runs = fusions[BASELINE]["runs"]
    constants = tuple(
        {"runs": runs, "fusion": {"method": BASELINE, "k": k}}
        for k in sorted(CONSTANTS, key=lambda k: k != DEFAULT_CONSTANT)
    )
    yield SystemRow(name=CHOSEN_SOURCE, kind="chosen", candidates=sources)
    yield SystemRow(name=CHOSEN_CONSTANT, kind="chosen", candidates=constants)
    for name in (BASELINE, CONVEX):
        if name in fusions:
            keys = dict(fusions[name])
            yield SystemRow(
                name=against_source(name), kind="tuned pair", config=keys, candidates=sources
            )
    if CONVEX in fusions:
        keys = dict(fusions[CONVEX])
        yield SystemRow(
            name=TUNED_PAIR, kind="tuned pair", config=keys, rival=dict(fusions[BASELINE])
        )


def _has_space(keys: Keys) -> bool:
    """Whether there is anything to tune."""
    return bool(declared_parameters(System(name="system", **keys)))


def tuned_name(method: str) -> str:
    """Name of the tuned row of a method."""
    return f"{method}, tuned"


def against_source(method: str) -> str:
    """Name of the difference between a tuned method and the source that is chosen out of fold."""
    return f"{tuned_name(method)} − {CHOSEN_SOURCE}"


def reranked_name(name: str, depth: int = RERANK_DEPTH) -> str:
    """Name of a row below the reranker."""
    return f"{name}, reranked {depth}"


def k_name(k: int, variant: str = ALL_LISTS) -> str:
    """Name of the row of a constant."""
    if variant == ALL_LISTS:
        return BASELINE if k == DEFAULT_CONSTANT else f"rrf k={k}"
    return f"rrf k={k}, {variant}"
