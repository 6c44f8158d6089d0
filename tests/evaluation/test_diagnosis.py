"""Why systems fail: kinds of failures, and which changes cure them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from fusion_bench.data.aligned_runs import AlignedRuns, Ties
from fusion_bench.data.alignment import align
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.records import Query, ScoreSpace
from fusion_bench.data.run import Run
from fusion_bench.evaluation.details.relevant_ranks import RelevantDocuments, list_relevant
from fusion_bench.evaluation.diagnosis import (
    Diagnosis,
    describe_system,
    diagnose_experiment,
    find_worst_failure,
)
from fusion_bench.evaluation.explanation import ScoreTrace, explain_ranking
from fusion_bench.evaluation.failures import (
    FUSED_TOP,
    KINDS,
    LAST,
    TOP,
    DiagnosedSystem,
    FailureKind,
    Failures,
    Scope,
    find_failures,
    rank_stages,
)
from fusion_bench.experiment.experiment import read_experiment
from fusion_bench.experiment.system import System
from fusion_bench.stats.intervals import estimate_mean
from tests.diagnose_cases import EXPERIMENT, make_project
from tests.examples import examples
from tests.tiny import edit

ROLES = {
    "bm25": frozenset({"keyword"}),
    "dense": frozenset({"question", "semantic"}),
    "title": frozenset({"question", "keyword"}),
}
SPACES: dict[str, ScoreSpace] = {"r": "unit"}
#: Query and document → documents above: relevant, not relevant, unjudged; whether it is tied.
Found = dict[tuple[str, str], tuple[int, int, int, bool]]


def diagnose_system(
    runs: AlignedRuns, qrels: Qrels, system: System, rel: int = 1
) -> tuple[RelevantDocuments, dict[FailureKind, Failures]]:
    relevant = list_relevant(runs, qrels, rel)
    return relevant, find_failures(runs, relevant, rank_stages(system, runs), rel)


def listed(runs: AlignedRuns, relevant: RelevantDocuments, failures: Failures) -> Found:
    return {
        (runs.queries[relevant.query[m]], relevant.documents[m]): (
            int(failures.relevant_above[m]),
            int(failures.not_relevant_above[m]),
            int(failures.unjudged_above[m]),
            bool(failures.is_tied[m]),
        )
        for m in np.flatnonzero(failures.is_failed).tolist()
    }


def align_one(
    lists: dict[str, dict[str, float]],
    grades: dict[str, int],
    rerank: dict[str, float] | None = None,
) -> tuple[AlignedRuns, Qrels]:
    qrels = Qrels.from_dict({"q": grades})
    sources = [Run.from_dict(n, {"q": scores}, roles=ROLES[n]) for n, scores in lists.items()]
    rerankers = [Run.from_dict("r", {"q": rerank})] if rerank else []
    return align(qrels, sources, rerankers=rerankers, spaces=SPACES), qrels


def find(
    lists: dict[str, dict[str, float]],
    grades: dict[str, int],
    *,
    rerank: dict[str, float] | None = None,
    rel: int = 1,
    **options: object,
) -> dict[FailureKind, Found]:
    runs, qrels = align_one(lists, grades, rerank)
    system = System.model_validate({"name": "s", "runs": list(lists), **options})
    relevant, failures = diagnose_system(runs, qrels, system, rel)
    return {kind: listed(runs, relevant, failures[kind]) for kind in failures}


def test_a_dilution_is_first_for_the_question_alone_and_not_in_the_fused_list() -> None:
    lists = {"dense": {"a": 3.0, "b": 2.0}, "bm25": {"b": 3.0, "c": 2.0}}
    grades = {"a": 1, "b": 0}
    assert find(lists, grades)["dilution"] == {("q", "a"): (0, 1, 0, False)}
    assert find(lists, {"a": 1})["dilution"] == {("q", "a"): (0, 0, 1, False)}
    assert find(lists, {"a": 1, "b": 2})["dilution"] == {("q", "a"): (1, 0, 0, False)}
    assert find(lists, {"a": 1, "b": 2}, rel=2)["dilution"] == {}
    weights = {"method": "rrf", "weights": {"question": 100}}
    assert find(lists, grades, fusion=weights)["dilution"] == {}
    unweighted = {"method": "rrf", "weights": {"dense": 0}}
    assert find(lists, {"a": 1}, fusion=unweighted)["dilution"] == {}
    assert find({"bm25": {"b": 3.0, "a": 2.0}}, {"a": 1})["dilution"] == {}
    lists = {"dense": {"a": 3.0, "b": 2.0}, "title": {"b": 3.0, "c": 2.0}}
    assert find(lists, {"a": 1})["dilution"] == {}
    lists["bm25"] = {"c": 9.0}
    assert find(lists, {"a": 1})["dilution"] == {("q", "a"): (0, 0, 2, False)}


MANY = {f"d{i:02}": 20.0 - i for i in range(15)}
SCORES = {name: i / 20 for i, name in enumerate(MANY)}  # the reverse of the fused order
REPLACE = {"method": "replace", "reranker": "r"}


def test_a_burial_falls_from_the_fused_top_3_below_the_top_10() -> None:
    grades = {"d02": 1, "d03": 1, "d12": 1, "d13": 0}
    found = find({"dense": MANY}, grades, rerank=SCORES, blend=REPLACE)
    assert found["burial"] == {("q", "d02"): (2, 1, 9, False)}
    raised = SCORES | {"d02": 0.21}  # above d00 to d04, so tenth
    assert find({"dense": MANY}, grades, rerank=raised, blend=REPLACE)["burial"] != {}
    raised = SCORES | {"d02": 0.26}
    assert find({"dense": MANY}, grades, rerank=raised, blend=REPLACE)["burial"] == {}


def test_burials_are_of_the_reranker_and_not_of_top_k() -> None:
    scores = SCORES | {"d01": 0.3}
    found = find({"dense": MANY}, {"d01": 1}, rerank=scores, blend=REPLACE, top_k=2)
    assert found["burial"] == {}
    assert find({"dense": MANY}, {"d01": 1}, rerank=SCORES, min_relevance=0.5)["burial"] == {}
    skipped = REPLACE | {"always_rerank": False, "skip_limit": 15}
    found = find({"dense": MANY}, {"d01": 1}, rerank=SCORES, blend=skipped, min_relevance=0.5)
    assert found["burial"] == {}


# The obvious slow loop: one query after another, over the traces that `explain` prints.


def search_failures(
    runs: AlignedRuns, qrels: Qrels, system: System, rel: int
) -> dict[FailureKind, Found]:
    found: dict[FailureKind, Found] = {"dilution": {}, "burial": {}, "miss": {}, "inversion": {}}
    for query, grades in qrels.to_dict().items():
        traces = explain_ranking(system, runs, query).traces
        for document, grade in grades.items():
            if grade >= rel:
                search_document(found, query, document, list(traces), system, rel)
    return found


def is_first(trace: ScoreTrace) -> bool:
    return any("question" in term.roles and term.rank == 1 for term in trace.terms)


def tie_start(own: ScoreTrace, traces: list[ScoreTrace]) -> int:
    """The best final rank that another order of ties could give a document."""

    def key(trace: ScoreTrace) -> tuple[str, ...]:
        return trace.tier, f"{trace.score:.11e}", f"{trace.fused_score:.11e}"

    return min(
        t.rank_before_cut for t in traces if t.rank_before_cut is not None and key(t) == key(own)
    )


def search_document(
    found: dict[FailureKind, Found],
    query: str,
    document: str,
    traces: list[ScoreTrace],
    system: System,
    rel: int,
) -> None:
    own = next((trace for trace in traces if trace.document == document), None)
    if own is None:
        found["miss"][query, document] = (0, 0, 0, False)
        return

    def above(ranks: dict[str, int], limit: float) -> list[ScoreTrace]:
        return [t for t in traces if t.document in ranks and ranks[t.document] < limit]

    def describe(others: list[ScoreTrace], *, tied: bool) -> tuple[int, int, int, bool]:
        relevant = sum(t.grade is not None and t.grade >= rel for t in others)
        irrelevant = sum(t.grade is not None and t.grade < rel for t in others)
        return relevant, irrelevant, len(others) - relevant - irrelevant, tied

    fused = {t.document: t.fused_rank for t in traces if t.fused_rank is not None}
    if is_first(own):
        others = above(fused, fused[document])
        displacing = [t for t in others if not is_first(t)]
        if displacing:
            tied = {f"{t.fused_score:.11e}" for t in displacing} == {f"{own.fused_score:.11e}"}
            found["dilution"][query, document] = describe(others, tied=tied)
    final = {t.document: t.rank_before_cut for t in traces if t.rank_before_cut is not None}
    place = final.get(document)
    in_fused_top = fused[document] <= FUSED_TOP
    if system.blend.reranker_name and in_fused_top and (place is None or place > TOP):
        tied = place is not None and tie_start(own, traces) <= TOP
        others = above(final, 1e9 if place is None else place)
        found["burial"][query, document] = describe(others, tied=tied)
    if own.rank is not None and own.rank <= TOP:
        others = above(final, own.rank)
        wrong = [t for t in others if t.grade is not None and t.grade < rel]
        if wrong:
            tied = all(final[t.document] >= tie_start(own, traces) for t in wrong)
            found["inversion"][query, document] = describe(others, tied=tied)


DOCUMENTS = [f"d{i:02}" for i in range(16)]
LIST = st.dictionaries(st.sampled_from(DOCUMENTS), st.integers(0, 20).map(float), min_size=1)
BLENDS = [
    {"method": "none"},
    REPLACE | {"missing": "below", "depth": 12},
    REPLACE | {"missing": "zero", "depth": 13, "min_score": 0.2},
    REPLACE | {"missing": "below", "depth": 2, "tail": "drop"},
    {
        "method": "position_aware",
        "reranker": "r",
        "retrieval": "reciprocal_rank",
        "missing": "zero",
    },
]
FUSIONS = [
    {"method": "rrf"},
    {"method": "rrf", "weights": {"dense": 0}},
    {"method": "rrf", "weights": {"dense": 0, "title": 0}},
    {"method": "rrf_v2", "weights": {"bm25": 1, "dense": 2, "title": 2}},
]
SYSTEMS = st.fixed_dictionaries(
    {
        "fusion": st.sampled_from(FUSIONS),
        "blend": st.sampled_from(BLENDS),
        "top_k": st.sampled_from([None, 3, 11]),
        "depth": st.sampled_from([None, 5]),
    }
)
GRADES = st.dictionaries(
    st.sampled_from([*DOCUMENTS, "absent"]), st.integers(-1, 2), min_size=1, max_size=12
)


@settings(max_examples=examples(25))
@given(
    lists=st.fixed_dictionaries({name: st.tuples(LIST, LIST) for name in ROLES}),
    grades=st.tuples(GRADES, GRADES),
    rerank=st.tuples(
        *[st.dictionaries(st.sampled_from(DOCUMENTS), st.floats(0, 1), min_size=1)] * 2
    ),
    config=SYSTEMS,
    rel=st.sampled_from([1, 2]),
    ties=st.sampled_from(get_args(Ties)),
)
def test_the_arrays_find_what_the_loop_finds(
    lists: dict[str, tuple[dict[str, float], ...]],
    grades: tuple[dict[str, int], ...],
    rerank: tuple[dict[str, float], ...],
    config: dict[str, Any],
    rel: int,
    ties: Ties,
) -> None:
    names = ("q1", "q2")
    qrels = Qrels.from_dict(dict(zip(names, grades, strict=True)))
    runs = align(
        qrels,
        [
            Run.from_dict(name, dict(zip(names, pair, strict=True)), roles=ROLES[name])
            for name, pair in lists.items()
        ],
        rerankers=[Run.from_dict("r", dict(zip(names, rerank, strict=True)))],
        spaces=SPACES,
        queries={"q1": Query("q1", type="local", confidence=0.9)},
        ties=ties,
    )
    system = System.model_validate({"name": "s", "runs": [*ROLES], **config})
    relevant, failures = diagnose_system(runs, qrels, system, rel)
    expected = search_failures(runs, qrels, system, rel)
    assert {kind: listed(runs, relevant, failures[kind]) for kind in failures} == expected


def test_weights_by_type_apply_to_the_queries_of_the_type() -> None:
    qrels = Qrels.from_dict({"q1": {"a": 1}, "q2": {"a": 1}, "q3": {"z": 1}})
    lists = {"q1": {"b": 2.0, "c": 1.0}, "q2": {"b": 2.0, "c": 1.0}}
    runs = align(
        qrels,
        [
            Run.from_dict("dense", {q: {"a": 3.0, "b": 2.0} for q in lists}, roles=ROLES["dense"]),
            Run.from_dict("bm25", lists, roles=ROLES["bm25"]),
        ],
        queries={
            "q1": Query("q1", type="local", confidence=1.0),
            "q2": Query("q2", type="global", confidence=1.0),
        },
    )
    weights = {
        "local": {"question": 1.0, "keyword": 0.0},
        "global": {"question": 0.0, "keyword": 1.0},
        "hybrid": {"question": 0.5, "keyword": 0.5},
    }
    system = System.model_validate(
        {"name": "s", "runs": ["dense", "bm25"], "weights_by_type": weights}
    )
    stages = rank_stages(system, runs)
    assert stages.has_question.tolist() == [True, False, True]
    relevant, failures = diagnose_system(runs, qrels, system)
    assert listed(runs, relevant, failures["dilution"]) == {}
    assert list(listed(runs, relevant, failures["miss"])) == [("q2", "a"), ("q3", "z")]


# ── what is cured and caused, against sets and loops


QUERIES = ("q0", "q1", "q2", "q3")
OWNERS = np.array([0, 0, 0, 1, 1, 3, 3])
SIZE = len(OWNERS)
GROUPS = np.array([0, 0, 1, 2])
RANKS = st.lists(st.sampled_from([1, 2, 7, 12, LAST]), min_size=SIZE, max_size=SIZE)
FLAGS = st.lists(st.booleans(), min_size=SIZE, max_size=SIZE)
BY_QUERY = st.lists(st.booleans(), min_size=len(QUERIES), max_size=len(QUERIES))


@st.composite
def systems(draw: DrawFn, name: str) -> DiagnosedSystem:
    has_question = np.array(draw(BY_QUERY))
    failed, nothing = np.array(draw(FLAGS)), np.zeros(SIZE, dtype=np.int64)
    failed &= has_question[OWNERS]  # a dilution needs a list of role question
    failures = Failures(failed, failed, np.zeros_like(failed), nothing, nothing, nothing)
    fused, final, returned = (np.array(draw(RANKS)) for _ in range(3))
    return DiagnosedSystem(
        name, dict.fromkeys(KINDS, failures), {}, fused, final, returned, has_question
    )


def make_scope() -> Scope:
    names = tuple(f"d{m}" for m in range(SIZE))
    grades = np.ones(SIZE, dtype=np.int64)
    relevant = RelevantDocuments(OWNERS, names, grades, np.arange(SIZE), np.arange(SIZE))
    return Scope(QUERIES, GROUPS, relevant, 0.1, top=3)


@given(system=systems("new"), baseline=systems("base"))
def test_cures_and_causes_are_differences_of_sets(
    system: DiagnosedSystem, baseline: DiagnosedSystem
) -> None:
    change = describe_system(system, baseline, make_scope()).count("dilution").change
    queries = [q for q in range(4) if system.has_question[q] and baseline.has_question[q]]
    if not queries:
        assert change is None
        return
    now, before = (
        {m for m in range(SIZE) if item.failures["dilution"].is_failed[m] and OWNERS[m] in queries}
        for item in (system, baseline)
    )
    assert change is not None
    assert (change.cures, change.causes) == (len(before - now), len(now - before))
    risen = {m for m in range(SIZE) if system.returned[m] < baseline.returned[m]}
    fallen = {m for m in range(SIZE) if system.returned[m] > baseline.returned[m]}
    assert change.cures_without_gain == len(before - now - risen)
    assert change.causes_without_loss == len(now - before - fallen)
    differences = [
        sum(OWNERS[m] == q for m in now) - sum(OWNERS[m] == q for m in before) for q in queries
    ]
    assert change.improved_queries == sum(d < 0 for d in differences)
    assert change.worsened_queries == sum(d > 0 for d in differences)
    mean = estimate_mean(np.array(differences, dtype=float), GROUPS[queries], alpha=0.1)
    assert (change.difference, change.queries) == (mean.mean, len(queries))
    ends = [None if np.isnan(end) else end for end in (mean.low, mean.high)]
    assert [change.low, change.high] == ends


@given(system=systems("new"), baseline=systems("base"))
def test_the_list_begins_with_the_worst(system: DiagnosedSystem, baseline: DiagnosedSystem) -> None:
    scope = make_scope()
    for kind in ("dilution", "burial"):
        count = next(c for c in describe_system(system, baseline, scope).counts if c.kind == kind)
        ranks = system.fused if kind == "dilution" else system.final
        failed = [m for m in range(SIZE) if system.failures["dilution"].is_failed[m]]
        worst = sorted(failed, key=lambda m: (-ranks[m], m))[: scope.top]
        assert [failure.document for failure in count.worst] == [f"d{m}" for m in worst]
        assert count.failures == len(failed)
        for failure, m in zip(count.worst, worst, strict=True):
            assert failure.rank == (None if system.returned[m] == LAST else system.returned[m])
            if kind == "burial":
                assert failure.is_caused == (not baseline.failures["burial"].is_failed[m])


# ── counts, changes and lists of a small experiment, by hand


Diagnose = Callable[..., Diagnosis]


@pytest.fixture
def diagnose(tmp_path: Path) -> Diagnose:
    root = make_project(tmp_path)
    parsed, source = read_experiment(root / EXPERIMENT)

    def run(**options: object) -> Diagnosis:
        return diagnose_experiment(parsed, source, folders=[root / "datasets"], **options)  # type: ignore[arg-type]

    return run


def test_counts_of_every_system(diagnose: Diagnose) -> None:
    [collection] = diagnose().collections
    counts = {
        system.name: [(c.failures, c.exposed) if c.not_applicable is None else None for c in counts]
        for system in collection.systems
        for counts in [system.counts]
    }
    assert counts == {
        "plain": [(3, 4), None, (1, 5), (1, 4)],
        "question": [(0, 4), None, (1, 5), (0, 4)],
        "buried": [(3, 4), (4, 4), (1, 5), (0, 0)],
        "keyword": [None, None, (1, 5), (1, 4)],
    }
    assert (collection.queries, collection.groups, collection.relevant) == (5, 3, 5)
    assert collection.missed_by_all == 1


def test_what_the_baseline_or_a_system_without_the_part_cannot_have(diagnose: Diagnose) -> None:
    [collection] = diagnose().collections
    plain, buried = (collection.system(name).count("burial") for name in ("plain", "buried"))
    assert plain.change is None
    assert plain.not_applicable is not None
    assert buried.change is not None
    assert (buried.change.cures, buried.change.causes, buried.change.difference) == (0, 4, 0.8)
    assert collection.system("keyword").count("burial").change is None
    count = collection.system("keyword").count("dilution")
    assert (count.not_applicable or "").endswith("role question")
    assert (count.change, count.worst) == (None, ())


STAGED = """\
  buried:
    runs: [inner]
    stages:
      inner:
        runs: [dense, bm25]
        fusion: {method: rrf, k: 1, weights: {bm25: 3}}
        blend: {method: replace, reranker: r, missing: below}
"""


@pytest.mark.parametrize("blend", ["", "    blend: {method: linear, reranker: r, beta: 0}\n"])
def test_a_reranker_in_a_stage_buries(blend: str, tmp_path: Path, diagnose: Diagnose) -> None:
    [plain] = diagnose().collections
    file = tmp_path / EXPERIMENT
    text = file.read_text()
    begin, end = text.index("  buried:"), text.index("  keyword:")
    file.write_text(text[:begin] + STAGED + blend + text[end:])
    parsed, source = read_experiment(file)
    [staged] = diagnose_experiment(parsed, source, folders=[tmp_path / "datasets"]).collections
    counts = [collection.system("buried").count("burial") for collection in (plain, staged)]
    for name in ("not_applicable", "failures", "exposed", "queries", "behind_relevant", "tied"):
        assert getattr(counts[0], name) == getattr(counts[1], name), name


@pytest.mark.parametrize(("rel", "relevant"), [(1, 5), (2, 0)])
def test_a_document_below_the_relevant_grade_can_invert(
    tmp_path: Path, rel: int, relevant: int
) -> None:
    root = make_project(tmp_path)
    edit(root, "datasets/mine/dataset.yaml", "runs:", f"binary_relevance: {rel}\nruns:")
    parsed, source = read_experiment(root / EXPERIMENT)
    [collection] = diagnose_experiment(parsed, source, folders=[root / "datasets"]).collections
    assert collection.relevant == relevant
    assert collection.system("plain").count("inversion").not_applicable is None
    assert collection.missed_by_all == int(relevant > 0)


def test_without_a_document_judged_not_relevant_nothing_inverts(tmp_path: Path) -> None:
    root = make_project(tmp_path)
    edit(root, "datasets/mine/qrels.txt", "q1 0 b 0\n", "q1 0 elsewhere 0\n")
    parsed, source = read_experiment(root / EXPERIMENT)
    [collection] = diagnose_experiment(parsed, source, folders=[root / "datasets"]).collections
    for system in collection.systems:
        count = system.count("inversion")
        assert (count.not_applicable or "").endswith("not relevant")
        assert count.change is None


def test_chosen_systems_and_their_failure_to_look_at_first(diagnose: Diagnose) -> None:
    [collection] = diagnose(systems=["question"]).collections
    assert [system.name for system in collection.systems] == ["plain", "question"]
    assert collection.system("plain").count("dilution").change is None
    [collection] = diagnose().collections
    worst = find_worst_failure(collection)
    assert worst is not None
    assert (*worst[:2], worst[2].query) == ("burial", "buried", "q4")
    dilution = find_worst_failure(collection, "dilution")
    assert dilution is not None
    assert dilution[1] == "buried"
    [alone] = diagnose(systems=["question"]).collections
    worst = find_worst_failure(alone)
    assert worst is not None
    assert worst[:2] == ("dilution", "plain")
    assert find_worst_failure(alone, "burial") is None
