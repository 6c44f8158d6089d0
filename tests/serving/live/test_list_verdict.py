"""CRAG's verdict of a live query is the one that ``eval`` reports."""

import asyncio
from pathlib import Path

import pytest

from fusion_bench import Pipeline, Query
from fusion_bench.data.records import ScoreSpace
from fusion_bench.errors import ConfigError
from fusion_bench.evaluation.run_experiment import run_experiment
from fusion_bench.experiment.experiment import read_experiment
from fusion_bench.io.dataset import Dataset, load_dataset
from fusion_bench.serving.live.final_list import LiveResult
from tests import tiny
from tests.evaluation.test_crag import SYSTEMS, R

SYSTEM = {"runs": ["a"], "blend": {"method": "replace", "reranker": "r"}}
LISTS = {"a": [("d1", 2.0), ("d2", 1.0)], "r": [("d1", 0.2), ("d2", 0.3)]}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    tiny.make(tmp_path, r=R)
    path = tmp_path / tiny.EXPERIMENT
    text = path.read_text(encoding="utf-8")
    path.write_text(text[: text.index("  two:")] + SYSTEMS, encoding="utf-8")
    return tmp_path


def lists_of(dataset: Dataset, query: str) -> dict[str, list[tuple[str, float]]]:
    runs = {**dataset.runs, **dataset.rerankers}
    return {
        name: [
            (run.vocabulary[run.documents[row]], float(run.scores[row]))
            for n in [run.queries.index(query)]
            for row in range(run.offsets[n], run.offsets[n + 1])
        ]
        for name, run in runs.items()
    }


def search(
    spaces: dict[str, ScoreSpace], query: str | Query = "q", **options: object
) -> LiveResult:
    pipeline = Pipeline(SYSTEM, score_spaces=spaces, **options)  # type: ignore[arg-type]
    with pipeline:
        return pipeline.search_sync(query, LISTS)


def test_the_verdicts_of_eval(root: Path) -> None:
    experiment, source = read_experiment(root / tiny.EXPERIMENT)
    report = run_experiment(experiment, source, folders=[root / "datasets"])
    [collection] = report.collections
    dataset = load_dataset(root / tiny.DATASET)

    async def go() -> list[LiveResult]:
        async with Pipeline.from_experiment(root / tiny.EXPERIMENT, "two") as pipeline:
            return [
                await pipeline.search(query, lists_of(dataset, query))
                for query in collection.queries
            ]

    verdicts = [result.crag for result in asyncio.run(go())]
    assert None not in verdicts
    judged = collection.crag[0]
    assert tuple(each.relevance for each in verdicts if each) == judged.verdicts
    assert tuple(each.confidence for each in verdicts if each) == judged.scores
    assert sum(each.needs_web_search for each in verdicts if each) == judged.needs_web_search


def test_a_refined_query_is_a_field_of_the_query() -> None:
    query = Query("q", "text", fields={"refined_query": "better text"})
    found = search({"r": "unit"}, query, crag={})
    assert found.crag is not None
    assert (found.crag.relevance, found.crag.confidence) == ("incorrect", 0.3)
    assert found.crag.refined_query == "better text"
    assert found.to_dict()["crag"]["needs_web_search"] is True
    sure = search({"r": "unit"}, query, crag={"upper": 0.25, "lower": 0.1})
    assert sure.crag is not None
    assert (sure.crag.relevance, sure.crag.refined_query) == ("correct", None)


def test_no_verdict_where_none_can_be_given_or_thresholds_are_wrong() -> None:
    assert search({"r": "unit"}).crag is None
    assert search({"r": "unbounded"}, crag={}).crag is None
    with Pipeline(SYSTEM, score_spaces={"r": "unit"}, crag={}, enabled=False) as pipeline:
        assert pipeline.search_sync("q", {"a": LISTS["a"]}).crag is None
    with pytest.raises(ConfigError, match=r"crag.*0\.9 is above.*0\.7"):
        Pipeline(SYSTEM, crag={"lower": 0.9})
    with pytest.raises(ConfigError, match=r"crag\.credit: unknown"):
        Pipeline(SYSTEM, crag={"credit": 0.75})
