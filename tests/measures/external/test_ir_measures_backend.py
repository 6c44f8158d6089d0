import re
import shutil
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from fusion_bench.data.alignment import align
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.run import Run
from fusion_bench.errors import ConfigError
from fusion_bench.measures import Measure, compute_measures, parse_measure
from fusion_bench.measures.external_measures import parse_with_ir_measures
from tests.measures.cases import Built, Case, all_measures, build, cases

ir_measures: Any = pytest.importorskip("ir_measures")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("INST", "it needs max_rel: INST(max_rel=…)"),
        ("BPM", "it needs cutoff and max_rel: BPM(max_rel=…)@…"),
        ("IPrec", "it needs recall: IPrec@…"),
    ],
)
def test_a_missing_option_is_named(name: str, text: str) -> None:
    with pytest.raises(ConfigError) as error:
        parse_measure(name)
    assert text in str(error.value)


@pytest.mark.parametrize(
    ("name", "provider", "package"),
    [
        ("INST(max_rel=3)", "cwl_eval", "pip install ir-measures[cwl_eval]"),
        ("alpha_nDCG@10", "pyndeval", "pip install ir-measures[pyndeval]"),
    ],
)
def test_a_provider_that_is_not_installed_is_named(
    name: str, provider: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(getattr(ir_measures, provider), "_is_available", False)
    with pytest.raises(ConfigError) as error:
        parse_measure(name)
    assert package in str(error.value)


def provided(measure: Measure) -> bool:
    if "exp-log2" in measure.name and (measure.cutoff is None or shutil.which("perl") is None):
        return False  # without a cutoff it is ranx that has it, which cannot read pandas 3
    if measure.method in {"Judged", "ERR", "RBP"} and measure.judged_only:
        return False  # not an option of these in ir_measures, which refuses to be asked
    if "max_grade" in measure.name or (measure.method == "ERR" and shutil.which("perl") is None):
        return False
    known = parse_with_ir_measures(measure.name)
    return bool(ir_measures.DefaultPipeline.supports(known))


DIRECT = [measure for measure in all_measures() if provided(measure)]


def per_query(name: str, built: Built) -> list[float]:
    """What ir_measures says when asked directly, with our order as falling scores.

    Never with a negative grade: pytrec_eval crashes on them.
    """
    runs = built.runs
    numbers = {query: str(q) for q, query in enumerate(runs.queries)}  # gdeval wants digits
    ranked: dict[str, dict[str, float]] = {}
    for n, place in enumerate(built.positions.tolist()):
        if place:
            query = numbers[runs.queries[runs.query_index[n]]]
            ranked.setdefault(query, {})[runs.vocabulary[runs.documents[n]]] = 1000.0 - place
    if not ranked:
        return [0.0] * len(runs.queries)
    judgments = {numbers[query]: grades for query, grades in built.qrels.to_dict().items()}
    metrics = ir_measures.iter_calc([parse_with_ir_measures(name)], judgments, ranked)
    found = {metric.query_id: metric.value for metric in metrics}
    return [found[numbers[query]] for query in runs.queries]


def tolerance(measure: Measure) -> float:
    """gdeval, which stands behind the exponential gain and ERR, prints five decimals."""
    is_printed = "exp-log2" in measure.name or measure.method == "ERR"
    return 5e-6 + 1e-12 if is_printed else 1e-12


def test_ir_measures_provides_most_of_ours() -> None:
    """RBP takes a package that few have, ERR a cutoff."""
    lacking = {measure.name for measure in all_measures()} - {measure.name for measure in DIRECT}
    options = ("judged_only", "exp-log2", "max_grade", "RBP")
    assert all(any(option in name for option in options) for name in lacking)
    assert {re.split("[(@]", name)[0] for name in lacking} <= {
        *("RR", "nDCG", "Judged", "ERR", "RBP")
    }


@pytest.mark.parametrize("name", ["ERR@20", "ERR", "RBP", "nDCG(dcg='exp-log2')@10", "P@5"])
def test_nothing_is_left_to_a_script(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("ir_measures was asked")

    monkeypatch.setattr(ir_measures, "iter_calc", fail)
    built = build(Case({"q": {"a": 1}}, {"q": {"a": 1.0}}))
    assert compute_measures([parse_measure(name)], built.runs, built.positions)[0, 0] > 0


@given(cases(lowest_grade=0))
def test_the_engine_agrees_with_ir_measures_on_every_query(case: Case) -> None:
    built = build(case)
    found = compute_measures(DIRECT, built.runs, built.positions)
    for m, measure in enumerate(DIRECT):
        near = tolerance(measure)
        assert found[m].tolist() == pytest.approx(per_query(measure.name, built), abs=near), measure


@pytest.mark.parametrize("levels", [2, 1000])
def test_the_engine_agrees_with_ir_measures_on_long_lists(levels: int) -> None:
    rng = np.random.default_rng(levels)
    ids = [f"d{i}" for i in range(150)]
    judgments = {
        f"q{q}": {d: int(g) for d, g in zip(ids, rng.integers(0, 4, 150), strict=True) if g != 2}
        for q in range(30)
    }
    scores: dict[str, dict[str, float | None]] = {
        query: {d: float(s) for d, s in zip(ids[40:], rng.integers(0, levels, 110), strict=True)}
        for query in list(judgments)[:25]
    }
    built = build(Case(judgments, scores))
    found = compute_measures(DIRECT, built.runs, built.positions)
    for m, measure in enumerate(DIRECT):
        near = tolerance(measure)
        assert found[m].tolist() == pytest.approx(per_query(measure.name, built), abs=near), measure


@given(cases(lowest_grade=0))
def test_other_names_are_what_ir_measures_says(case: Case) -> None:
    built = build(case)
    names = ["Rprec", "Bpref", "infAP", "SetR", "NumRet", "IPrec@0.5"]
    measures = [parse_measure(name) for name in (*names, "RR")]
    found = compute_measures(measures, built.runs, built.positions)
    for m, name in enumerate((*names, "RR")):
        assert found[m].tolist() == pytest.approx(per_query(name, built), abs=1e-12), name


@given(cases(lowest_grade=0))
def test_judged_only_done_here_is_that_of_ir_measures(case: Case) -> None:
    built = build(case)
    names = ["Rprec(judged_only=True)", "SetP(judged_only=True)", "IPrec(judged_only=True)@0.1"]
    measures = [parse_measure(name) for name in names]
    assert {measure.method for measure in measures} == {"ir_measures"}
    found = compute_measures(measures, built.runs, built.positions)
    for m, name in enumerate(names):
        # pytrec_eval has 0/0 where nothing judged is returned; with us an empty list has 0.
        expected = np.nan_to_num(per_query(name, built)).tolist()
        assert found[m].tolist() == pytest.approx(expected, abs=1e-12), name


def test_negative_grades_are_not_handed_over() -> None:
    """trec_eval takes them for "not judged"; pytrec_eval crashes on some."""
    names = ["Bpref", "Rprec", "SetP", "SetP(judged_only=True)", "NumRet"]
    measures = [parse_measure(name) for name in names]
    grades = {"a": 1, "b": 0, "z": 2}
    scores: dict[str, float | None] = {"u": 9.0, "n": 8.0, "a": 7.0, "v": 6.0, "b": 5.0}
    case = Case({"q": {**grades, "n": -1}, "r": {"n": -2}}, {"q": scores, "r": {"n": 1.0}})
    built = build(case)
    found = compute_measures(measures, built.runs, built.positions)
    without = build(Case({"q": grades}, {"q": scores}))
    assert found[:, 0].tolist() == [per_query(name, without)[0] for name in names]
    assert found[:, 1].tolist() == [0, 0, 0, 0, 1]


def test_judgments_of_every_query_are_needed() -> None:
    built = build(Case({"q": {"a": 1, "b": -1}}, {"q": {"a": 1.0}}))
    with pytest.raises(ConfigError, match=r"^infAP.*'pooled,"):
        compute_measures([parse_measure("infAP")], built.runs, built.positions)
    built = build(Case({"q": {"a": 1}}, {"q": {"a": 1.0}}))
    unjudged = replace(built.runs, qrels=None)
    with pytest.raises(ConfigError, match=r"^Bpref:.*ir_measures,.*qrels$"):
        compute_measures([parse_measure("Bpref")], unjudged, built.positions)
    qrels = Qrels.from_dict({"q1": {"a": 1}, "q2": {"a": 1}})
    runs = align(qrels, [Run.from_dict("r", {"q1": {"a": 1.0}})])
    runs = replace(runs, qrels=Qrels.from_dict({"q1": {"a": 1}}))
    with pytest.raises(ConfigError, match=r"^query 'q2'"):
        compute_measures([parse_measure("Bpref")], runs, np.ones(1, dtype=np.int64))


def test_providers_get_ids_without_blanks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some write files that are split at blanks; gdeval reads no query ids but numbers."""
    given: list[object] = []

    def record(_measures: object, *tables: object) -> list[object]:
        given.append(tables)
        return []

    monkeypatch.setattr(ir_measures, "iter_calc", record)
    built = build(Case({"q 1": {"a b": 3}}, {"q 1": {"c d": 2.0, "a b": 1.0}}))
    measures = [parse_measure("Bpref")]
    compute_measures(measures, built.runs, built.positions)
    assert given == [({"1": {"d0": 3}}, {"1": {"d1": 2.0, "d0": 1.0}})]


def test_what_is_returned_and_judged_is_handed_over() -> None:
    built = build(Case({"q": {"a": 1}}, {"q": {"a": None}}))
    found = compute_measures([parse_measure("Bpref")], built.runs, built.positions)
    assert found.tolist() == [[0.0]]
    built = build(Case({"q": {"a": 1, "b": 1, "c": 0}}, {"q": {"a": 1.0}}))
    found = compute_measures([parse_measure("SetR")], built.runs, built.positions)
    assert found.tolist() == [[0.5]]


def test_a_provider_that_fails_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("no such luck")

    monkeypatch.setattr(ir_measures, "iter_calc", fail)
    built = build(Case({"q": {"a": 1}}, {"q": {"a": 1.0}}))
    with pytest.raises(ConfigError, match=r"^Bpref:.*ir_measures.*:.*luck$"):
        compute_measures([parse_measure("Bpref")], built.runs, built.positions)
