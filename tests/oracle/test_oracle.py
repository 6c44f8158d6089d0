"""The fast path gives the slow obvious loop's order, and its scores.

Scores are bit-identical, but where a transcendental function takes part (``sigmoid``, ``arctan``,
``logistic``, ``log_odds``, ``logit``, ``log_prob``): numpy's and the C library's differ in the last
place, so 1e-12 relative.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from fusion_bench.data.alignment import align
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.read_options import ReadOptions
from fusion_bench.data.run import Run
from fusion_bench.errors import DataError, FusionBenchError
from fusion_bench.experiment.system import System
from fusion_bench.methods.blend import blends
from fusion_bench.methods.fuse import Trainable, fusions
from fusion_bench.methods.normalize import normalizers
from fusion_bench.ranking.system_ranking import rank_candidates
from tests.examples import examples
from tests.oracle import rank_methods, score_methods, trained_methods
from tests.oracle import ranking as oracle

EXAMPLES = settings(suppress_health_check=[HealthCheck.too_slow])
#: Nine pairs of a fusion and a blend share what they check.
EXAMPLES_OF_A_PAIR = settings(EXAMPLES, max_examples=examples(25))
QUERIES = ("q1", "q2", "q3")
DOCUMENTS = ("d1", "d10", "d9", "D1", "é", "z", "日本", "a b", "𝒳")
NAMES = ("bm25", "dense", "hyde", "graph")
ROLES = ("question", "hyde", "keyword", "semantic", "graph-role")
CURVES = {"sigmoid", "arctan", "logistic"}
CURVED_FUSIONS = {"softmax_rrf", "log_odds"}

FEW = st.sampled_from([0.0, 1.0, 2.0, 3.0])
WIDE = st.one_of(
    FEW,
    st.sampled_from([1e-9, -1e-9, 1e6, -1e6, 0.1, 0.2, 0.30000000000000004, 0.3, 140_000.0]),
    st.integers(-5, 5).map(float),
    st.floats(-1e6, 1e6).filter(lambda x: x == 0 or abs(x) > 1e-9),
)
#: Scores of both signs and of several sizes, whose sums under a curve do not cancel out.
MIXED = FEW | st.sampled_from([-1.0, 0.1, 140_000.0])
WEIGHTS = st.sampled_from([0.0, 0.1, 0.2, 0.35, 0.5, 1.0, 2.0, 3.0, 7.0])
ALPHAS = st.sampled_from([0.0, 0.3, 0.5, 1.0])
SMALL = st.sampled_from([0.0, 0.005, 0.01, 0.02, 0.05, 1.0])


@dataclass(frozen=True)
class Case:
    """Sources as rows, and a system as plain data."""

    rows: Mapping[str, Sequence[oracle.Row]]
    roles: Mapping[str, frozenset[str]]
    reranks: Sequence[oracle.Row]
    space: str
    system: dict[str, Any]
    ties: str


@st.composite
def rows(draw: DrawFn, scores: SearchStrategy[float], *, least: int = 0) -> list[oracle.Row]:
    """One source's rows: a list a query, any of them empty but not all."""
    found: list[oracle.Row] = []
    for query in QUERIES[: draw(st.integers(1, 3))]:
        names = draw(st.lists(st.sampled_from(DOCUMENTS), unique=True, min_size=least, max_size=9))
        found += [(query, name, draw(scores), rank) for rank, name in enumerate(names)]
    return found or [("q1", "d1", draw(scores), 0)]


def partial(options: Mapping[str, SearchStrategy[Any]]) -> SearchStrategy[dict[str, Any]]:
    """Any subset of the options, so that defaults are exercised too."""
    return st.fixed_dictionaries({}, optional=dict(options))


def weights() -> SearchStrategy[dict[str, float]]:
    return st.dictionaries(st.sampled_from([*NAMES, *ROLES]), WEIGHTS, max_size=2)


def bonuses() -> SearchStrategy[dict[int, float]]:
    return st.dictionaries(st.integers(1, 6), SMALL, max_size=3)


CONSTANTS = {"constant": st.sampled_from([0, 0.5, 1])}
#: Normalizer → its options beside ``constant``; one that has none need not be named.
SCALE_OPTIONS: dict[str, dict[str, SearchStrategy[Any]]] = {
    "dbsf": {"clip": st.booleans()},
    "logistic": {
        "alpha": st.sampled_from([0.5, 2.0]),
        "beta": st.sampled_from([0.0, 1.5]),
        "base_rate": st.sampled_from([0.1, 0.5]),
    },
}
NAMED_SCALES = {
    name: st.fixed_dictionaries(
        {"method": st.just(name)}, optional=CONSTANTS | SCALE_OPTIONS.get(name, {})
    )
    for name in sorted({*normalizers.load_all()} - {"theoretical_min_max", "by_source"})
}
LOWS = st.sampled_from([dict.fromkeys(NAMES, -1e6), dict.fromkeys(NAMES, 0.0)])
NAMED_SCALES["theoretical_min_max"] = st.fixed_dictionaries(
    {"method": st.just("theoretical_min_max"), "lo": LOWS}
)
BY_SOURCE = st.fixed_dictionaries(
    {
        "method": st.just("by_source"),
        "sources": st.dictionaries(
            st.sampled_from([*NAMES[:2], *ROLES[:2]]),
            st.one_of(*NAMED_SCALES.values()),
            min_size=1,
            max_size=3,
        ),
    },
    optional={"default": st.one_of(*NAMED_SCALES.values())},
)
EVERY_SCALE = NAMED_SCALES | {"by_source": BY_SOURCE}
SCALES = st.one_of(*EVERY_SCALE.values())
#: Scales of log-odds pooling: probabilities, and now and then one that is refused.
PROBABILITIES = st.one_of(
    *(NAMED_SCALES[name] for name in ("logistic", "min_max", "dbsf", "rank", "none"))
)
K = st.sampled_from([1, 2, 10, 60, 60.5, 1000])
RRF = {
    "k": K | st.dictionaries(st.sampled_from([*NAMES, *ROLES]), K, max_size=2),
    "weights": weights(),
    "normalize": st.sampled_from(["none", "max_possible", "three_lists"]),
}
FUSIONS: dict[str, SearchStrategy[dict[str, Any]]] = {
    "rrf": partial(RRF),
    "rrf_v2": partial(
        RRF
        | {
            "bonus": bonuses(),
            "bonus_scope": st.sampled_from(["best_rank", "per_source", "question"]),
            "bonus_unit": st.sampled_from(["absolute", "relative"]),
        }
    ),
    "weighted_score": partial(
        {
            "weights": weights(),
            "alpha": ALPHAS,
            "normalize": SCALES,
            "missing": st.sampled_from(["skip", "zero", "min"]),
        }
    ),
    **dict.fromkeys(
        ["comb_sum", "comb_max", "comb_min", "comb_med", "comb_anz", "comb_mnz"],
        partial({"normalize": SCALES}),
    ),
    "comb_gmnz": partial({"normalize": SCALES, "gamma": st.sampled_from([0.0, 0.5, 2.0, 3.0])}),
    **dict.fromkeys(
        ["mixed", "wmnz", "max_score"], partial({"weights": weights(), "normalize": SCALES})
    ),
    "weighted_sum": partial(
        {
            "weights": weights(),
            "alpha": ALPHAS,
            "normalize": SCALES,
            "missing": st.sampled_from(["zero", "min"]),
        }
    ),
    "dbsf": partial({"weights": weights(), "clip": st.booleans()}),
    "tm2c2": partial({"weights": weights(), "alpha": ALPHAS, "lo": LOWS}),
    "log_odds": partial(
        {
            "weights": weights(),
            "normalize": PROBABILITIES,
            "exponent": st.sampled_from([0.0, 0.5, 1.0]),
            "gating": st.sampled_from(["none", "softplus"]),
        }
    ),
    "rbc": partial({"phi": st.sampled_from([0.1, 0.5, 0.9]), "weights": weights()}),
    "isr": partial({"weights": weights()}),
    "log_isr": partial({"weights": weights()}),
    "logn_isr": partial({"sigma": st.sampled_from([0.0, 0.01, 1.0]), "weights": weights()}),
    "borda": st.just({}),
    "weighted_borda": partial({"weights": weights()}),
    "condorcet": st.just({}),
    "weighted_condorcet": partial({"weights": weights()}),
    "softmax_rrf": partial(
        {
            "k": K | st.dictionaries(st.sampled_from([*NAMES, *ROLES]), K, max_size=2),
            "temperature": st.sampled_from([0.01, 0.8, 2.0]),
            "rank_decay": st.sampled_from([0.0, 0.02, 1.0]),
            "weights": weights(),
        }
    ),
}
RERANK = {
    "depth": st.integers(1, 9),
    "missing": st.sampled_from(["error", "zero", "below"]),
    "tail": st.sampled_from(["keep", "drop"]),
    "min_score": st.sampled_from([0.0, 0.3, 0.5, 1.0]),
    "always_rerank": st.booleans(),
    "skip_limit": st.integers(0, 6),
}
READINGS = {
    "retrieval": st.sampled_from(
        ["fused", "fused_max_possible", "fused_min_max", "reciprocal_rank"]
    )
}
BLENDS: dict[str, SearchStrategy[dict[str, Any]]] = {
    "none": st.just({}),
    "replace": partial(RERANK),
    "linear": partial(RERANK | READINGS | {"beta": st.sampled_from([0.0, 0.3, 0.7, 1.0])}),
    "position_aware": partial(
        RERANK
        | READINGS
        | {
            "tiers": st.dictionaries(st.integers(1, 9), st.sampled_from([0.0, 0.6, 0.75, 1.0])),
            "rest": st.sampled_from([0.0, 0.4, 1.0]),
        }
    ),
}
SPACES: dict[str, SearchStrategy[float]] = {
    "unit": st.sampled_from([0.0, 0.25, 0.5, 0.9, 1.0]),
    "logit": st.sampled_from([-800.0, -2.0, 0.0, 0.5, 3.0, 40.0]),
    "log_prob": st.sampled_from([-900.0, -2.5, -0.1, 0.0]),
    "unbounded": WIDE,
    "order": st.just(1.0),
}


@st.composite
def cases(
    draw: DrawFn,
    *,
    fusion: str,
    blend: str = "none",
    scores: SearchStrategy[float] = WIDE,
    scale: SearchStrategy[dict[str, Any]] | None = None,
) -> Case:
    """A dataset of one to four sources and a system on it."""
    fused = {"method": fusion} | draw(FUSIONS[fusion])
    if scale is not None:
        fused["normalize"] = draw(scale)
    is_pair = draw(st.booleans()) and ("alpha" in fused or fusion == "tm2c2")
    names = NAMES[: 2 if is_pair else draw(st.integers(1, 4))]
    roles = st.lists(st.sampled_from(ROLES), max_size=2).map(frozenset)
    held = {name: draw(roles) for name in names}
    if fusion == "rrf_v2":
        held[names[0]] |= {"question"}
    if is_pair:  # what alpha and the default lo of tm2c2 need
        held |= dict(zip(names, (frozenset({"semantic"}), frozenset({"keyword"})), strict=True))
    if "alpha" in fused:
        fused.pop("weights", None)
    space = draw(st.sampled_from(sorted(SPACES)))
    system: dict[str, Any] = {
        "fusion": fused,
        **draw(
            partial(
                {
                    "depth": st.one_of(
                        st.integers(1, 6),
                        st.dictionaries(st.sampled_from(names), st.integers(1, 6)),
                    ),
                    "top_k": st.integers(1, 9),
                    "min_relevance": st.sampled_from([-1.0, 0.0, 0.02, 0.3, 1.5]),
                }
            )
        ),
    }
    if blend != "none":
        system["blend"] = {"method": blend, "reranker": "r"} | draw(BLENDS[blend])
    known = {*names, *(role for name in names for role in held[name])}
    normalize = fused.get("normalize")
    by_source = normalize.get("sources") if isinstance(normalize, dict) else None
    by_key: list[Any] = [fused.get("weights"), fused.get("k"), by_source]
    for where in by_key:
        for stranger in set(where) - known if isinstance(where, dict) else ():
            del where[stranger]
    if by_source == {}:
        by_source[names[0]] = {"method": "min_max"}
    return Case(
        {name: draw(rows(scores)) for name in names},
        held,
        draw(rows(SPACES[space], least=draw(st.sampled_from([0, 9])))),
        space,
        system,
        draw(st.sampled_from(["trec", "first_seen"])),
    )


def slow(case: Case) -> dict[str, list[tuple[str, float]]]:
    sources = [
        oracle.Source(name, case.roles[name], oracle.read(rows)) for name, rows in case.rows.items()
    ]
    reranks = oracle.read(case.reranks)
    return {
        query: oracle.rank(
            case.system,
            sources,
            query,
            rerank=reranks.get(query),
            space=case.space,
            ties=case.ties,
        )
        for query in QUERIES
    }


def fast(case: Case) -> dict[str, list[tuple[str, float]]]:
    runs = [as_run(name, rows, case.roles[name]) for name, rows in case.rows.items()]
    aligned = align(
        Qrels.from_dict({query: {"d1": 1} for query in QUERIES}),
        runs,
        rerankers=[as_run("r", case.reranks)],
        ties="trec" if case.ties == "trec" else "first_seen",
        spaces={"r": case.space},  # type: ignore[dict-item]
    )
    system = System.model_validate({"name": "s", "runs": tuple(case.rows), **case.system})
    ranking = rank_candidates(system, aligned)
    view = ranking.runs
    lists: dict[str, list[tuple[str, float]]] = {}
    for q, query in enumerate(view.queries):
        mine = [n for n in range(view.offsets[q], view.offsets[q + 1]) if ranking.positions[n]]
        mine.sort(key=lambda n: int(ranking.positions[n]))
        assert [int(ranking.positions[n]) for n in mine] == list(range(1, len(mine) + 1))
        lists[query] = [
            (view.vocabulary[view.documents[n]], float(ranking.scores[n])) for n in mine
        ]
    return lists


def as_run(
    name: str,
    rows: Sequence[oracle.Row],
    roles: frozenset[str] = frozenset(),
    **options: str | bool,
) -> Run:
    queries, documents, scores, ranks = zip(*rows, strict=True)
    return Run.from_rows(
        name,
        queries,
        documents,
        scores,
        ranks=ranks,
        roles=roles,
        read_options=ReadOptions(**options),  # type: ignore[arg-type]
    )


def exact(case: Case) -> bool:
    fusion = case.system["fusion"]
    if fusion["method"] in CURVED_FUSIONS or uses_curve(fusion.get("normalize")):
        return False
    return "blend" not in case.system or case.space not in {"logit", "log_prob"}


def uses_curve(scale: object) -> bool:
    """Whether a normalizer, or one that it holds for a source, is a curve."""
    if not isinstance(scale, dict):
        return False
    parts = [*scale.get("sources", {}).values(), scale.get("default")]
    return scale["method"] in CURVES or any(map(uses_curve, parts))


def assert_same(case: Case) -> None:
    try:
        expected = slow(case)
    except oracle.RefusedError:
        with pytest.raises(FusionBenchError):
            fast(case)
        return
    found = fast(case)
    for query, ranked in expected.items():
        assert [d for d, _ in found[query]] == [d for d, _ in ranked]
        for (_, mine), (_, theirs) in zip(found[query], ranked, strict=True):
            if exact(case):
                assert mine == theirs
            else:
                assert math.isclose(mine, theirs, rel_tol=1e-12, abs_tol=1e-300)


def test_the_strategies_know_every_method() -> None:
    methods = fusions.load_all()
    trained = {name for name, method in methods.items() if issubclass(method, Trainable)}
    assert set(FUSIONS) == set(oracle.FUSE)
    meant = {fusions.find_model(name).model_fields["method"].default for name in FUSIONS}
    assert meant == set(methods) - trained
    assert {*trained_methods.TRAINED, *trained_methods.TESTED_IN} == trained
    assert set(BLENDS) == set(blends.load_all())
    others = {"rank", "borda", "theoretical_min_max", "by_source"}
    assert {*oracle.SCALES, *others} == set(EVERY_SCALE) == set(normalizers.load_all())


@pytest.mark.parametrize(("method", "file"), trained_methods.TESTED_IN.items())
def test_a_trained_method_without_an_oracle_has_a_test_of_its_own(method: str, file: str) -> None:
    assert f'"{method}"' in Path(file).read_text("utf-8")


@EXAMPLES
@given(cases(fusion="rrf"))
def test_rrf(case: Case) -> None:
    assert_same(case)


@EXAMPLES
@given(cases(fusion="rrf_v2"))
def test_rrf_v2(case: Case) -> None:
    assert_same(case)


@EXAMPLES
@given(cases(fusion="weighted_score"))
def test_weighted_score(case: Case) -> None:
    assert_same(case)


@EXAMPLES
@given(cases(fusion="weighted_score", scores=FEW))
def test_weighted_score_with_many_ties(case: Case) -> None:
    assert_same(case)


@pytest.mark.parametrize("blend", ["none", "linear"])
@pytest.mark.parametrize("fusion", [*rank_methods.METHODS])
def test_methods_of_ranks_and_votes(fusion: str, blend: str) -> None:
    @settings(EXAMPLES, max_examples=examples(10 if blend == "none" else 5))
    @given(cases(fusion=fusion, blend=blend, scores=FEW))
    def same(case: Case) -> None:
        assert_same(case)

    same()


@pytest.mark.parametrize("blend", ["none", "linear"])
@pytest.mark.parametrize("fusion", [*score_methods.METHODS])
def test_methods_of_scores(fusion: str, blend: str) -> None:
    @settings(EXAMPLES, max_examples=examples(10 if blend == "none" else 5))
    @given(cases(fusion=fusion, blend=blend, scores=MIXED))
    def same(case: Case) -> None:
        assert_same(case)

    same()


@pytest.mark.parametrize("scale", EVERY_SCALE)
def test_normalizers(scale: str) -> None:
    @settings(EXAMPLES, max_examples=examples(12 if scale == "by_source" else 6))
    @given(cases(fusion="comb_sum", scores=MIXED, scale=EVERY_SCALE[scale]))
    def same(case: Case) -> None:
        assert_same(case)

    same()


@pytest.mark.parametrize("clip", [True, False])
def test_dbsf_of_a_score_more_than_three_standard_deviations_above(*, clip: bool) -> None:
    rows = [("q1", f"d{n}", 1000.0 if n == 0 else float(n % 3), n) for n in range(20)]
    system = {"fusion": {"method": "dbsf", "clip": clip}}
    case = Case(
        {"bm25": rows}, {"bm25": frozenset()}, [("q1", "d1", 0.0, 0)], "unit", system, "trec"
    )
    assert_same(case)
    assert (slow(case)["q1"][0][1] > 1) is not clip


@pytest.mark.parametrize("blend", ["replace", "linear", "position_aware"])
@pytest.mark.parametrize("fusion", ["rrf", "rrf_v2", "weighted_score"])
def test_blends(fusion: str, blend: str) -> None:
    @EXAMPLES_OF_A_PAIR
    @given(cases(fusion=fusion, blend=blend, scores=FEW))
    def same(case: Case) -> None:
        assert_same(case)

    same()


@EXAMPLES
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["q1", "q2"]), st.sampled_from(DOCUMENTS), WIDE, st.integers(0, 99)
        ),
        min_size=1,
        max_size=20,
        unique_by=lambda row: (row[0], row[3]),
    ),
    st.sampled_from(["score", "column"]),
    st.sampled_from(["trec", "file"]),
    st.sampled_from(["error", "best_rank"]),
    st.booleans(),
)
def test_reading_a_run(
    given_rows: list[oracle.Row], rank_from: str, ties: str, duplicate: str, drop: bool
) -> None:
    options: dict[str, Any] = {
        "rank_from": rank_from,
        "source_ties": ties,
        "on_duplicate": duplicate,
        "drop_zero_scores": drop,
    }
    try:
        expected = oracle.read(given_rows, **options)
    except oracle.RefusedError:
        with pytest.raises(DataError, match="appears twice"):
            as_run("a", given_rows, **options)
        return
    run = as_run("a", given_rows, **options)
    found = {
        query: {
            run.vocabulary[run.documents[n]]: oracle.Entry(int(run.ranks[n]), float(run.scores[n]))
            for n in range(run.offsets[q], run.offsets[q + 1])
        }
        for q, query in enumerate(run.queries)
    }
    assert found == expected
    assert [list(ranked) for ranked in found.values()] == [list(r) for r in expected.values()]
    assert run.zero_scores == sum(row[2] == 0 for row in given_rows)
    kept = sum(len(ranked) for ranked in expected.values())
    assert run.duplicates == len(given_rows) - kept - (run.zero_scores if drop else 0)
