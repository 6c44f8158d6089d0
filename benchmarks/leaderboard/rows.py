"""The rows of a collection: every system of the leaderboard, by kind.

No method is listed by hand: a fusion, a blend or a dialect appears as soon as it is registered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Literal, TypeAlias

from benchmarks.leaderboard.records import SystemRow
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.alignment import align
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.records import ScoreSpace
from fusion_bench.data.run import Run
from fusion_bench.errors import FusionBenchError, MissingExtraError
from fusion_bench.experiment.dialect import dialects
from fusion_bench.experiment.system import System
from fusion_bench.io.dataset_config import DatasetSpec
from fusion_bench.measures import parse_measure
from fusion_bench.methods.blend import blends
from fusion_bench.methods.fuse import Trainable, fusions
from fusion_bench.ranking.system_scores import evaluate_systems
from fusion_bench.tune.space import declared_parameters

BASELINE = "rrf"
CONVEX = "convex"
#: The untuned methods of a short leaderboard: the usual rank, score and voting fusions.
CORE = (
    *(BASELINE, "rrf_v2", "isr", "log_isr", "rbc", "borda", "condorcet"),
    *(CONVEX, "dbsf", "comb_sum", "comb_mnz", "softmax_rrf"),
)
MEASURE = parse_measure("nDCG@10")
#: Candidates that a reranker sees.
RERANK_DEPTH = 50
Keys = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Lists:
    """The lists of a collection.

    Attributes:
        roles: Of each source, by name.
        spaces: Score space of each rerank list, by name; blends use the first one.
    """

    roles: Mapping[str, frozenset[str]]
    spaces: Mapping[str, ScoreSpace] = field(default_factory=dict)

    @classmethod
    def of_spec(cls, spec: DatasetSpec) -> Lists:
        """The lists that a ``dataset.yaml`` names."""
        roles = {name: frozenset(run.roles) for name, run in spec.runs.items()}
        return cls(roles, {name: each.score_space for name, each in spec.rerank.items()})

    @property
    def rerankers(self) -> tuple[str, ...]:
        """Names of the rerank lists."""
        return tuple(self.spaces)

    @cached_property
    def example(self) -> AlignedRuns:
        """Four made queries with these lists: what cannot be computed there fits no data."""
        scores = {f"q{n}": {"d1": 0.9, "d2": 0.5, f"d{n}": 0.2} for n in range(3, 7)}
        runs = [Run.from_dict(name, scores, roles=roles) for name, roles in self.roles.items()]
        rerankers = [Run.from_dict(name, scores) for name in self.spaces]
        judged = Qrels.from_dict({query: {"d1": 1, "d2": 0} for query in scores})
        return align(judged, runs, rerankers=rerankers, spaces=self.spaces)

    @property
    def pair(self) -> tuple[str, ...]:
        """The first keyword source and the first semantic one; empty = there is no such pair."""
        kinds = [
            [name for name, roles in self.roles.items() if role in roles]
            for role in ("keyword", "semantic")
        ]
        pairs = [(first, second) for first in kinds[0] for second in kinds[1] if first != second]
        return pairs[0] if pairs else ()

    def fits(self, keys: Keys) -> bool:
        """Whether a system of these keys can be built and computed on these lists."""
        try:
            system = System(name="candidate", **keys)
            if any(system.find_misfits(self.roles, self.rerankers)):
                return False
            evaluate_systems([system], self.example, [MEASURE])
        except MissingExtraError:
            return True  # where the package is installed
        except FusionBenchError:
            return False
        return True

    def fit_runs(self, keys: Keys) -> dict[str, Any] | None:
        """The keys with all sources, or with the pair; None = neither fits."""
        choices = [tuple(self.roles), self.pair]
        candidates = [{"runs": list(runs), **keys} for runs in choices if len(runs) > 1]
        return next((each for each in candidates if self.fits(each)), None)


def list_fusions() -> dict[str, dict[str, Any]]:
    """Each fusion at its defaults, and each other name that stands for more than a method."""
    known: dict[str, dict[str, Any]] = {name: {"method": name} for name in fusions.load_all()}
    for name, meant in fusions.aliases.items():
        if len(meant) > 1 and dict(meant) not in known.values():
            known[name] = dict(meant)
    return known


def _is_trained(fusion: Keys) -> bool:
    """Whether a fusion learns from judged queries."""
    return issubclass(fusions.find_model(dict(fusion)), Trainable)


def source_systems(lists: Lists) -> dict[str, Keys]:
    """Each source alone."""
    return {name: {"runs": [name]} for name in lists.roles}


def fusion_systems(lists: Lists, *, trained: bool) -> dict[str, Keys]:
    """Each fusion that is trained, or each that is not."""
    chosen = {name: keys for name, keys in list_fusions().items() if _is_trained(keys) == trained}
    return _keep_fitting(lists, {name: {"fusion": keys} for name, keys in chosen.items()})


def dialect_systems(lists: Lists, *, whole_lists: bool = False) -> dict[str, Keys]:
    """Each method of each engine, at the engine's defaults or over whole lists.

    Args:
        lists: Of the collection.
        whole_lists: Without the engine's default windows; only engines that have one.
    """
    systems: dict[str, Keys] = {}
    for name, dialect in dialects.load_all().items():
        if whole_lists and not dialect.defaults:
            continue
        suffix = ", whole lists" if whole_lists else ""
        windows = dict.fromkeys(dialect.defaults) if whole_lists else {}
        for method in dialect.methods:
            fusion = method.model_fields["method"].default
            systems[f"{name} {fusion}{suffix}"] = {"dialect": name, "fusion": fusion, **windows}
    return _keep_fitting(lists, systems)


def blend_systems(lists: Lists) -> dict[str, Keys]:
    """Each blend of the first rerank list over the baseline; empty without one."""
    if not lists.rerankers:
        return {}
    names = [name for name, model in blends.load_all().items() if "reranker" in model.model_fields]
    systems = {f"{BASELINE}, {name}": _with_reranker(lists, {}, name) for name in names}
    return _keep_fitting(lists, systems)


def _with_reranker(
    lists: Lists, keys: Keys, method: str = "replace", depth: int = RERANK_DEPTH
) -> dict[str, Any]:
    """The keys with a blend of the first rerank list over the best ``depth`` documents."""
    blend = {"method": method, "reranker": lists.rerankers[0], "depth": depth}
    return {**keys, "blend": {**blend, "missing": "below"}}


def _keep_fitting(lists: Lists, systems: Mapping[str, Keys]) -> dict[str, Keys]:
    complete = {name: lists.fit_runs(keys) for name, keys in systems.items()}
    return {name: keys for name, keys in complete.items() if keys is not None}


def _iterate_kinds(lists: Lists) -> Iterator[tuple[str, dict[str, Keys]]]:
    """Kind of row → its systems, for what runs at its defaults without a reranker."""
    yield "source", source_systems(lists)
    yield "method", fusion_systems(lists, trained=False)
    yield "learned", fusion_systems(lists, trained=True)
    yield "engine", dialect_systems(lists)
    yield "engine, whole lists", dialect_systems(lists, whole_lists=True)


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
        yield from _iterate_kinds(lists)
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
            if name in tuned and declared_parameters(System(name="system", **keys))
        },
    )
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
            yield reranked_name(name, depth), _with_reranker(lists, keys, depth=depth)
        union = {"runs": runs, "depth": depth}
        yield reranked_name(UNION, depth), _with_reranker(lists, union, depth=WHOLE)


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
