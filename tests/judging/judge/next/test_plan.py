"""What could still change a comparison, and when nothing could."""

import json
import math
import re
from itertools import permutations, product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusion_bench.cli import main
from fusion_bench.errors import ConfigError, UnknownNameError
from fusion_bench.judging import terminal
from fusion_bench.judging.judge_work import JudgeTask
from fusion_bench.judging.next_documents import plan_judging
from fusion_bench.judging.options import OrderName
from fusion_bench.judging.pools import (
    ORDERS,
    JudgedSystems,
    Pair,
    PooledDocument,
    build_pool,
    disagreement,
    move_to_front,
    order_queries,
    read_judged_systems,
)
from fusion_bench.judging.terminal import JudgingSession
from tests import counts_project, tiny, unjudged_project
from tests.examples import examples

Capture = pytest.CaptureFixture[str]


def read(root: Path, **options: object) -> JudgedSystems:
    folders = [root / "datasets"]
    [experiment] = root.glob("experiments/*.yaml")
    return read_judged_systems(experiment, folders=folders, **options)  # type: ignore[arg-type]


@pytest.fixture
def judged(tmp_path: Path) -> JudgedSystems:
    return read(unjudged_project.make(tmp_path))


def test_the_ends_by_hand(judged: JudgedSystems) -> None:
    """On odd queries `new` above the relevant one, on even ones `new` and `newer`."""
    plan = plan_judging(judged, {}, greatest=1, candidate="fresh", baseline="pooled")
    assert plan.difference == pytest.approx(-(1 / 6 + 1 / 2) / 2)
    assert plan.low == pytest.approx(plan.difference)
    assert plan.high == pytest.approx((1 / 2 + 0) / 2)
    assert (plan.answer, plan.low_answer, plan.high_answer) == ("worse", "worse", "better")
    assert plan.is_exact
    assert not plan.is_decided
    effects = {document.pair: effect for document, effect in plan.documents}
    assert effects["q0", "new0"] == pytest.approx(1 - 1 / 3)
    assert effects["q0", "newer0"] == pytest.approx(1 / 2 - 1 / 3)
    assert effects["q1", "new1"] == pytest.approx(1 / 2)
    assert len(effects) == 90
    assert [effect for _, effect in plan.documents] == sorted(effects.values(), reverse=True)


def test_nothing_is_left_once_both_ends_agree(judged: JudgedSystems) -> None:
    grades: dict[Pair, int] = {}
    for _ in range(100):
        plan = plan_judging(judged, grades, greatest=1, candidate="fresh", baseline="pooled")
        if plan.is_decided:
            break
        grades |= {document.pair: 0 for document, _ in plan.documents[:5]}
    assert plan.is_decided
    assert plan.documents == ()
    assert plan.answer == plan.low_answer == plan.high_answer == "worse"
    assert 10 < len(grades) < 90  # fewer than all suffice


def test_equal_ends_decide_nothing_where_the_answer_of_now_differs(
    judged: JudgedSystems, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mean of now lies between the ends; its variance may be less than at both."""
    answers = iter(["better", "not shown", "not shown"])
    monkeypatch.setattr("fusion_bench.judging.next_documents.answer_of", lambda *_: next(answers))
    plan = plan_judging(judged, {}, greatest=1, candidate="fresh", baseline="pooled")
    assert not plan.is_decided
    assert len(plan.documents) == 90


def test_a_decided_answer_holds_in_every_completion(tmp_path: Path) -> None:
    """The tiny project: every grade of every unjudged document in turn."""
    tiny.make(tmp_path)
    path = tmp_path / "experiments/e.yaml"
    judged = read_judged_systems(path, folders=[tmp_path / "datasets"])
    pairs = [("q2", "d4"), ("q2", "d8"), ("q4", "d5")]
    values = []
    for grades in product(range(3), repeat=3):
        known = dict(zip(pairs, grades, strict=True))
        values.append(plan_judging(judged, known, greatest=2, measure="nDCG@10").difference)
    plan = plan_judging(judged, {}, greatest=2, measure="nDCG@10")
    assert (plan.low, plan.high) == pytest.approx((min(values), max(values)), abs=1e-12)
    assert plan.is_decided
    assert plan.answer == "identical"


def test_the_best_other_system_is_the_candidate(judged: JudgedSystems) -> None:
    plan = plan_judging(judged, {}, greatest=1)
    assert (plan.baseline, plan.candidate) == ("pooled", "fresh")
    plan = plan_judging(judged, {}, greatest=1, baseline="fresh")
    assert plan.candidate == "pooled"


def test_what_cannot_be_compared(judged: JudgedSystems, tmp_path: Path) -> None:
    alone = read(tmp_path, systems=["pooled"])
    with pytest.raises(UnknownNameError, match=r"--candidate: .* 'fres'"):
        plan_judging(judged, {}, greatest=1, candidate="fres")
    cases: list[tuple[JudgedSystems, dict[str, Any], str]] = [
        (judged, {"candidate": "pooled"}, "'pooled' .* itself"),
        (judged, {"measure": "Judged@10"}, "Judged@10 .* nDCG, RR"),
        (judged, {"measure": "RR(rel=3)@10"}, "--max-grade 3"),
        (alone, {}, "'pooled' .* itself"),
    ]
    for systems, options, message in cases:
        with pytest.raises(ConfigError, match=message):
            plan_judging(systems, {}, greatest=1, **options)


@pytest.mark.parametrize("name", ["nDCG@10", "P@3", "R@3", "Success@1", "AP@10", "RR@10"])
def test_every_measure_has_a_plan(judged: JudgedSystems, name: str) -> None:
    plan = plan_judging(judged, {}, greatest=1, measure=name)
    assert plan.low <= plan.difference <= plan.high
    assert plan.is_decided or plan.documents


def test_a_sitting_ends_with_what_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    asked = []

    def judge_all(task: JudgeTask, *_texts: object) -> JudgingSession:
        session = JudgingSession(task)
        while (document := session.current) is not None:
            asked.append(document.pair)
            session.give_grade(0)
        return session

    monkeypatch.chdir(unjudged_project.make(tmp_path))
    monkeypatch.setattr(terminal, "require_terminal", lambda: None)
    monkeypatch.setattr(terminal, "judge_in_terminal", judge_all)
    assert main(["judge", unjudged_project.EXPERIMENT, "--next", "60"]) == 0
    out = capsys.readouterr().out
    assert len(asked) == 60
    assert "60 documents judged, 0 skipped" in out
    assert "the answer: worse." in out
    assert "Next: fusion-bench" in out
    assert main(["judge", unjudged_project.EXPERIMENT, "--next", "60"]) == 0
    assert "Nothing left" in capsys.readouterr().out
    assert len(asked) == 60


def test_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(unjudged_project.make(tmp_path))
    words = ["judge", unjudged_project.EXPERIMENT, "--next", "3"]
    assert main([*words, "--list"]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[:2] == ["query\tdocument\tbest_rank\teffect", "q0\tnew0\t1\t0.6667"]
    assert len(out.splitlines()) == 4
    assert "-0.3333 over 60 queries (worse)." in err
    assert "-0.3333 (worse) to +0.2500 (better)." in err
    assert "90 documents could" in err
    assert main([*words, "--export", "sheet.csv"]) == 0
    sheet = (tmp_path / "sheet.csv").read_text(encoding="utf-8")
    assert sheet.count("\n") == 4
    (tmp_path / "sheet.csv").write_text(sheet.replace(",,,\n", ",,0,\n"), encoding="utf-8")
    capsys.readouterr()
    assert main([*words[:2], "--import", "sheet.csv"]) == 0
    assert "3 grades read" in capsys.readouterr().out
    assert main([*words, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["plan"]["documents"] == 87
    assert {row["query"] for row in record["documents"]}.isdisjoint({"q0", "q2", "q4"})


def test_queries_without_judgments_keep_it_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """The tiny project is decided; without the judgments of one evaluated query it is not."""
    monkeypatch.chdir(tiny.make(tmp_path))
    words = ["judge", tiny.EXPERIMENT, "--judge", "ann", "--next", "5"]
    assert main([*words, "--measure", "nDCG@10", "--list"]) == 0
    err = capsys.readouterr().err
    assert "answer: not shown." in err
    assert "Without any judgment" not in err
    tiny.edit(tmp_path, "datasets/tiny/qrels.txt", "q4 0 d4 1\n", "")
    assert main([*words, "--measure", "nDCG@10", "--list"]) == 0
    err = capsys.readouterr().err
    assert "out: 1 of 3 queries." in err
    command = f"fusion-bench judge {tiny.DATASET} --judge ann"
    assert f"Judge them first: {command}\n" in re.sub(r"\s*\\?\n +", " ", err)
    assert "Nothing left could" not in err
    assert "2 compared queries" in err
    assert main([*words, "--measure", "nDCG@10", "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)["plan"]
    assert (plan["is_decided"], plan["ignored_queries"]) == (False, 1)
    (tmp_path / "s.csv").write_text("query,document,grade\nq4,d4,1\n", encoding="utf-8")
    assert main([*words[:4], "--import", "s.csv"]) == 0
    assert f"pool: 4 documents, for {command}\n" in capsys.readouterr().out
    assert main([*words, "--measure", "nDCG@10", "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)["plan"]
    assert (plan["is_decided"], plan["ignored_queries"]) == (True, 0)


def test_pool_and_plan_read_the_trials_that_each_system_has(tmp_path: Path) -> None:
    """A fusion of 3 and 2 files has two trials: the third file of the one list is not its own."""
    counts_project.make(tmp_path / "unequal")
    counts_project.make(tmp_path / "equal", a=counts_project.RANKS["a"][:2])
    several, equal = (read(tmp_path / name) for name in ("unequal", "equal"))
    options: dict[str, Any]
    for pair in (("b", "ab"), ("abc", "c"), ("c", "b")):
        options = {"greatest": 1, "baseline": pair[0], "candidate": pair[1]}
        plan = plan_judging(several, {}, **options)
        assert plan == plan_judging(equal, {}, **options)
    assert plan_judging(several, {}, greatest=1, baseline="c", candidate="a").low < 0
    with pytest.raises(ConfigError, match="a 3 and b 2"):
        plan_judging(several, {}, greatest=1, baseline="a", candidate="b")
    places = [{each.pair: each.ranks for each in build_pool(s, 5)} for s in (several, equal)]
    index = list(several.systems).index("a")
    for pair, ranks in places[1].items():
        mine = places[0][pair]
        assert mine[:index] + mine[index + 1 :] == ranks[:index] + ranks[index + 1 :]


# ── orders of a pool: complete, the same for the same seed, and as their slow definitions say


@st.composite
def pools(draw: st.DrawFn) -> list[PooledDocument]:
    """The first ranks of up to three systems."""
    lists = draw(st.lists(st.permutations("abcdef"), min_size=1, max_size=3))
    depth = draw(st.integers(1, 6))
    ranks = {
        document: tuple(
            place if (place := ids.index(document) + 1) <= depth else 0 for ids in lists
        )
        for document in "abcdef"
    }
    return [PooledDocument("q", document, r) for document, r in ranks.items() if any(r)]


def ids(documents: list[PooledDocument]) -> str:
    return "".join(each.document for each in documents)


@pytest.mark.parametrize("name", ORDERS)
@settings(max_examples=examples(25))
@given(pool=pools(), seed=st.integers(0, 3), relevant=st.sets(st.sampled_from("abcdef")))
def test_each_order_holds_every_document_once_and_goes_by_names(
    name: OrderName, pool: list[PooledDocument], seed: int, relevant: set[str]
) -> None:
    known = {("q", document): True for document in relevant}
    order = ORDERS[name](pool, known, seed)
    assert sorted(ids(order)) == sorted(ids(pool))
    assert ORDERS[name](pool[::-1], known, seed) == order


def slow_move_to_front(pool: list[PooledDocument], relevant: dict[Pair, bool]) -> str:
    """One document at a time, everything looked up anew."""
    systems = range(len(pool[0].ranks))
    priority, reached, taken = [0 for _ in systems], [0 for _ in systems], ""
    while len(taken) < len(pool):
        best: tuple[int, int] | None = None
        for s in systems:
            is_left = any(each.ranks[s] > reached[s] for each in pool)
            if is_left and (best is None or priority[s] > best[0]):
                best = priority[s], s
        assert best is not None
        s = best[1]
        reached[s] += 1
        (document,) = (each for each in pool if each.ranks[s] == reached[s])
        if document.document in taken:
            continue
        taken += document.document
        priority[s] = 0 if relevant.get(document.pair) else priority[s] - 1
    return taken


@given(pool=pools(), relevant=st.sets(st.sampled_from("abcdef")))
def test_move_to_front_equals_the_slow_loop(pool: list[PooledDocument], relevant: set[str]) -> None:
    known = {("q", document): document in relevant for document in "abcdef"}
    assert ids(move_to_front(pool, known, 0)) == slow_move_to_front(pool, known)


@settings(max_examples=examples(25))
@given(pool=pools())
def test_uncertainty_is_the_variance_of_discounts(pool: list[PooledDocument]) -> None:
    def slow(each: PooledDocument) -> float:
        weights = [1 / math.log2(1 + rank) if rank else 0.0 for rank in each.ranks]
        pairs = [(a - b) ** 2 for a in weights for b in weights]
        return sum(pairs) / (2 * len(weights) ** 2)

    for each in pool:
        assert disagreement(each) == pytest.approx(slow(each), abs=1e-15)
    order = ORDERS["uncertainty"](pool, {}, 0)
    values = [disagreement(each) for each in order]
    assert values == sorted(values, reverse=True)


def test_the_orders_of_one_small_pool_and_of_its_queries() -> None:
    ranks = {"a": (1, 3), "b": (2, 0), "c": (0, 1), "d": (3, 2)}
    pool = [PooledDocument("q", document, places) for document, places in ranks.items()]
    assert ids(ORDERS["pool"](pool, {}, 0)) == "acdb"
    assert ids(ORDERS["system"](pool, {}, 0)) == "abdc"
    queries = [f"q{n}" for n in range(20)]
    assert order_queries(queries, "pool", 0) == queries
    assert order_queries(queries, "random", 0) != queries
    assert sorted(order_queries(queries, "random", 0)) == sorted(queries)


def test_random_orders_depend_on_the_seed_and_on_nothing_else() -> None:
    pool = [PooledDocument("q", document, (1,)) for document in "abcdef"]
    orders = {ids(ORDERS["random"](pool, {}, seed)) for seed in range(20)}
    assert len(orders) > 10
    whole = ids(ORDERS["random"](pool, {}, 0))
    for gone in permutations("abc", 1):
        left = [each for each in pool if each.document not in gone]
        assert ids(ORDERS["random"](left, {}, 0)) == whole.replace(gone[0], "")
