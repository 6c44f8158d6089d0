"""The rows of a collection: every system of the leaderboard, by kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from benchmarks.studies.leaderboard.cells import Row
from benchmarks.studies.leaderboard.methods import (
    BASELINE,
    Keys,
    Lists,
    fusion_systems,
    iterate_kinds,
    policy_systems,
    source_systems,
    with_reranker,
)
from fusion_bench.experiment.system import System
from fusion_bench.tune.space import declared_parameters

#: The k of Cormack, Clarke and Büttcher's Table 1.
CONSTANTS: Final = (0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 500)
DEFAULT_CONSTANT: Final = 60
FLOOR: Final = "random order"
CONVEX: Final = "convex"
#: The difference of two tuned rows, which both choose anew in each flip.
TUNED_PAIR: Final = "convex, tuned − rrf, tuned"


def list_rows(lists: Lists) -> tuple[Row, ...]:
    """All rows of a collection; the baseline is among them."""
    rows = [
        Row(name=name, kind=kind, config=dict(keys))
        for kind, systems in (*iterate_kinds(lists), *_derived_kinds(lists))
        for name, keys in systems.items()
    ]
    return (*rows, Row(name=FLOOR, kind="floor"))


def _derived_kinds(lists: Lists) -> Iterator[tuple[str, Mapping[str, Keys]]]:
    methods = fusion_systems(lists, trained=False)
    yield "tuned", {tuned_name(name): keys for name, keys in methods.items() if _has_space(keys)}
    if CONVEX in methods:
        yield "tuned pair", {TUNED_PAIR: methods[CONVEX]}
    policies = policy_systems(lists)
    yield "policy", {name: keys for name, keys in policies.items() if "blend" not in keys}
    constants = {k: {"method": "rrf", "k": k} for k in CONSTANTS if k != DEFAULT_CONSTANT}
    runs = methods[BASELINE]["runs"]
    yield "k", {k_name(k): {"runs": runs, "fusion": keys} for k, keys in constants.items()}
    if lists.rerankers:
        plain: dict[str, Keys] = {**source_systems(lists), **methods}
        reranked: dict[str, Keys] = {
            reranked_name(name): with_reranker(lists, keys) for name, keys in plain.items()
        }
        reranked |= {name: keys for name, keys in policies.items() if "blend" in keys}
        yield "reranked", {name: keys for name, keys in reranked.items() if lists.fits(keys)}


def _has_space(keys: Keys) -> bool:
    """Whether there is anything to tune."""
    return bool(declared_parameters(System(name="system", **keys)))


def tuned_name(method: str) -> str:
    """Name of the tuned row of a method."""
    return f"{method}, tuned"


def reranked_name(name: str) -> str:
    """Name of a row below the reranker."""
    return f"{name}, reranked"


def k_name(k: int) -> str:
    """Name of the row of a constant."""
    return BASELINE if k == DEFAULT_CONSTANT else f"rrf k={k}"
