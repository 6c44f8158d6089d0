"""Thresholds of an experiment's signals: which queries count, what is promised, what is refused."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fusion_bench.data.ordering import FloatArray
from fusion_bench.errors import ConfigError, DataError
from fusion_bench.evaluation.thresholds import (
    ThresholdCollection,
    ThresholdSettings,
    measure_thresholds,
)
from fusion_bench.experiment.experiment import read_experiment
from fusion_bench.report.threshold_page import build_threshold_page
from fusion_bench.stats.thresholds import allowed_answers
from tests.threshold_project import EXPERIMENT, make_project


def measure(root: Path, *systems: str, **settings: Any) -> ThresholdCollection:  # noqa: ANN401
    experiment, source = read_experiment(root / EXPERIMENT)
    report = measure_thresholds(
        experiment,
        source,
        ThresholdSettings(**settings),
        folders=[root / "datasets"],
        systems=systems,
    )
    build_threshold_page(report)
    return report.collections[0]


def test_declared_queries_are_the_unanswerable_ones(tmp_path: Path) -> None:
    found = measure(make_project(tmp_path))
    assert (found.answerable, found.unanswerable, found.is_masked) == (90, 90, False)
    by_label = {each.label: each for each in found.signals}
    assert [*by_label] == [
        "top:a",
        "top:b",
        "fused top of plain",
        "fused margin of plain",
        "agreement of plain",
        "rerank top of reranked",
    ]
    assert by_label["rerank top of reranked"].usability == "usable"
    assert by_label["top:a"].usability == "cannot carry a threshold"
    for signal in found.signals:
        assert signal.false_answers <= allowed_answers(90, 0.10) / 90


def test_the_signal_that_keeps_most_on_one_half_is_calibrated_on_the_other(tmp_path: Path) -> None:
    chosen = measure(make_project(tmp_path)).chosen
    assert chosen is not None
    assert (chosen.system, chosen.signal, chosen.is_stated) == ("reranked", "rerank top", False)
    assert chosen.calibrating == chosen.kept.queries == 45


def test_a_named_signal_is_calibrated_on_all_queries(tmp_path: Path) -> None:
    found = measure(make_project(tmp_path), "reranked", signal="rerank top")
    assert found.chosen is not None
    assert (found.chosen.is_stated, found.chosen.calibrating) == (True, 90)
    assert found.chosen.threshold == found.signals[0].threshold


def test_too_few_to_choose_is_said(tmp_path: Path) -> None:
    found = measure(make_project(tmp_path, unanswerable=40))
    assert found.chosen is None
    assert found.reason.startswith("to choose a signal takes half of the queries, and 20 without")


@pytest.mark.parametrize(("count", "groups"), [(28, False), (56, True)])
def test_too_few_without_an_answer_are_refused(tmp_path: Path, count: int, groups: bool) -> None:
    root = make_project(tmp_path, unanswerable=count, groups=groups)
    with pytest.raises(DataError, match=r"28 .* 10% .* needs 29"):
        measure(root)


def test_a_group_calibrates_once(tmp_path: Path) -> None:
    found = measure(make_project(tmp_path, groups=True), signal="rerank top")
    assert found.chosen is not None
    assert found.chosen.calibrating == 45
    assert found.units == 90


def test_without_a_declared_query_the_error_names_the_ways(tmp_path: Path) -> None:
    root = make_project(tmp_path)
    queries = root / "datasets/mine/queries.jsonl"
    queries.write_text(queries.read_text("utf-8").replace(', "answerable": false', ""), "utf-8")
    with pytest.raises(ConfigError, match="try --mask"):
        measure(root)
    dataset = root / "datasets/mine/dataset.yaml"
    text = dataset.read_text("utf-8").replace("groups: declared", "without_relevant: unanswerable")
    dataset.write_text(text, "utf-8")
    assert measure(root, signal="rerank top").unanswerable == 45  # those that are judged


def test_a_declared_query_with_a_relevant_document_is_refused(tmp_path: Path) -> None:
    root = make_project(tmp_path)
    qrels = root / "datasets/mine/qrels.txt"
    qrels.write_text(qrels.read_text("utf-8").replace("q91 0 d91_0 0", "q91 0 d91_0 1"), "utf-8")
    with pytest.raises(DataError, match=r"'q91' .*'answerable: false'"):
        measure(root)


def test_masked_queries_are_on_one_side_only(tmp_path: Path) -> None:
    found = measure(make_project(tmp_path, answerable=120), mask=True)
    assert found.is_masked
    assert found.answerable + found.unanswerable == 120
    assert found.unanswerable > 40
    reranker = found.signals[-1]
    assert reranker.signal == "rerank top"
    assert reranker.auc > 0.5


def test_signals_of_ones_own(tmp_path: Path) -> None:
    root = make_project(tmp_path)
    functions = {"length": lambda runs: np.diff(runs.offsets)}
    found = measure(root, functions=functions, signal="length")
    assert [(each.system, each.label, each.auc) for each in found.signals] == [("", "length", 0.5)]
    assert found.chosen is not None
    assert found.chosen.kept.share == 0.0

    def fail(_: object) -> list[float]:
        raise KeyError("score")

    with pytest.raises(ConfigError, match="'mine': KeyError: 'score'"):
        measure(root, functions={"mine": fail})
    with pytest.raises(ConfigError, match=r"shape \(180,\), not \(2,\)"):
        measure(root, functions={"mine": lambda _: [1.0, 2.0]})


def test_equal_labels_change_nothing_in_the_order_of_systems(tmp_path: Path) -> None:
    root = make_project(tmp_path)
    first, second = measure(root, "plain", "reranked"), measure(root, "reranked", "plain")
    assert first.chosen is not None
    assert second.chosen is not None
    assert first.chosen.threshold == second.chosen.threshold
    assert {each.signal for each in first.signals} == {each.signal for each in second.signals}


def test_both_thresholds_of_crag_are_fitted_on_its_own_scale(tmp_path: Path) -> None:
    root = make_project(tmp_path)
    dataset = root / "datasets/mine/dataset.yaml"
    dataset.write_text(dataset.read_text("utf-8").replace("unbounded", "logit"), "utf-8")
    experiment = root / EXPERIMENT
    experiment.write_text(f"crag: {{}}\n{experiment.read_text('utf-8')}", "utf-8")
    found = measure(root, "reranked", signal="crag score")
    raw = measure(root, "reranked", signal="rerank top")
    assert found.chosen is not None
    assert raw.chosen is not None
    assert raw.chosen.threshold is not None
    assert found.chosen.threshold is not None
    assert found.chosen.threshold == pytest.approx(1 / (1 + np.exp(-raw.chosen.threshold)))
    parsed, source = read_experiment(experiment)
    report = measure_thresholds(
        parsed,
        source,
        ThresholdSettings(signal="crag score"),
        folders=[root / "datasets"],
        systems=["reranked"],
    )
    headline = build_threshold_page(report).headline
    assert headline is not None
    [line] = [each for each in headline.details if each.startswith("Write crag: {upper: ")]
    upper, lower = map(float, re.findall(r"er: ([\d.]+)", line))
    assert 0 < upper - found.chosen.threshold <= 1e-6
    # Few answerable queries are 'incorrect'; as no score ties, one more would be too many.
    scores = np.sort(answerable_scores(root))
    allowed = allowed_answers(90, 0.1)
    assert found.chosen.crag_lower == pytest.approx(scores[allowed])
    assert (scores <= lower).sum() in {allowed, (scores <= upper).sum()}
    assert lower == min(upper, np.ceil(scores[allowed] * 1e6 - 1) / 1e6)


def answerable_scores(root: Path) -> FloatArray:
    """The best score of the reranker for each answerable query, on the unit scale."""
    best: dict[str, float] = {}
    for row in (root / "datasets/mine/rr.trec").read_text("utf-8").splitlines():
        query, score = row.split()[0], float(row.split()[4])
        best[query] = max(best.get(query, score), score)
    logits = np.array([best[f"q{n}"] for n in range(90)])
    return np.asarray(1 / (1 + np.exp(-logits)))


def test_the_chosen_signal_is_compared_with_the_second_best(tmp_path: Path) -> None:
    root = make_project(tmp_path, answerable=200, unanswerable=200)
    experiment, source = read_experiment(root / EXPERIMENT)
    report = measure_thresholds(
        experiment, source, ThresholdSettings(), folders=[root / "datasets"]
    )
    chosen = report.collections[0].chosen
    assert chosen is not None
    against = chosen.against
    assert against is not None
    others = [each for each in report.collections[0].signals if each.signal != chosen.signal]
    assert against.signal in {each.signal for each in others}
    assert chosen.kept.share is not None
    assert 0.5 < against.difference <= chosen.kept.share
    assert against.p < 0.001
    assert "second best is" in " ".join(
        line
        for line in build_threshold_page(report).headline.details  # type: ignore[union-attr]
    )
    named = measure(root, "reranked", signal="rerank top").chosen
    assert named is not None
    assert named.against is None
