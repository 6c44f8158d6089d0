"""Neither shards nor threads change a value, to the last bit."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.errors import AlignmentError, ConfigError
from fusion_bench.experiment.system import System
from fusion_bench.io.dataset_cache import open_arrays, write_arrays
from fusion_bench.io.load_records import ALIGNED_FIELDS
from fusion_bench.measures import parse_measure
from fusion_bench.ranking import system_scores
from fusion_bench.ranking.system_scores import ShardLimits, evaluate_systems
from tests.contract.cases import DATASETS, aligned
from tests.data.cases import assert_same
from tests.examples import examples
from tests.ranking.test_fused_systems import MEASURES, SOURCES, configs, judged, views

#: A shard a query.
SINGLE = ShardLimits(candidates=1)
BLENDED = {"method": "linear", "reranker": "reranker", "missing": "below"}


def systems(fusions: list[dict[str, Any]], sources: tuple[str, ...]) -> list[System]:
    return [
        System.model_validate({"name": f"s{i}", "runs": sources, "fusion": fusion})
        for i, fusion in enumerate(fusions)
    ]


@pytest.mark.parametrize("method", ["rrf", "rrf_v2", "weighted_score"])
def test_any_shards_any_threads_any_order_of_sources(method: str) -> None:
    @settings(max_examples=examples(10))
    @given(st.data())
    def same(data: st.DataObject) -> None:
        view = data.draw(views())
        every = st.lists(configs(view.sources, method), min_size=1, max_size=3)
        given = systems(data.draw(every), view.sources)
        expected = evaluate_systems(given, view, MEASURES)
        limits = ShardLimits(
            data.draw(st.integers(1, 40)), data.draw(st.sampled_from([0, 1 << 40]))
        )
        order = view.sources
        if view.ties == "trec":
            order = tuple(data.draw(st.permutations(view.sources)))
        turned = [system.model_copy(update={"runs": order}) for system in given]
        threads = data.draw(st.integers(1, 4))
        found = evaluate_systems(turned, view, MEASURES, threads=threads, limits=limits)
        for one, other in zip(expected, found, strict=True):
            assert one.values.tobytes() == other.values.tobytes()
            assert one.queries == other.queries

    same()


@pytest.mark.parametrize("threads", [1, 3])
def test_blends_types_and_mapped_arrays(threads: int, tmp_path: Path) -> None:
    view = judged(aligned(DATASETS[0]))
    options: list[dict[str, Any]] = [
        {"blend": BLENDED},
        {"fusion": "weighted_score", "weights_by_type": {"hybrid": {"keyword": 1.0}}},
        {"fusion": "rrf_v2", "depth": 2, "top_k": 2, "min_relevance": 0.02},
    ]
    given = [
        System.model_validate({"name": f"s{i}", "runs": SOURCES} | extra)
        for i, extra in enumerate(options)
    ]
    expected = evaluate_systems(given, view, MEASURES)
    write_arrays(tmp_path / "a", "k", {}, {name: getattr(view, name) for name in ALIGNED_FIELDS})
    arrays: dict[str, Any] = dict(open_arrays(tmp_path / "a", "k").arrays)
    mapped = replace(view, **arrays)
    assert len(list(system_scores.shards(mapped, SINGLE))) == len(view.queries)
    for runs in (view, mapped):
        found = evaluate_systems(given, runs, MEASURES, threads=threads, limits=SINGLE)
        for one, other in zip(expected, found, strict=True):
            assert one.values.tobytes() == other.values.tobytes()


def test_a_shard_is_the_subset_without_a_copy() -> None:
    view = judged(aligned(DATASETS[0]))
    start = 0
    for shard in system_scores.shards(view, ShardLimits(candidates=5)):
        stop = start + len(shard.queries)
        kept = np.arange(len(view.queries))
        assert_same(shard, view.subset((kept >= start) & (kept < stop)))
        assert np.shares_memory(shard.scores, view.scores)
        start = stop
    assert start == len(view.queries)
    assert start > 1


def test_shards_are_made_once_unless_they_are_too_many() -> None:
    view = judged(aligned(DATASETS[0]))

    def are_same(limits: ShardLimits) -> bool:
        pairs = zip(
            system_scores.shards(view, limits), system_scores.shards(view, limits), strict=True
        )
        return all(first is second for first, second in pairs)

    assert are_same(ShardLimits(candidates=5))
    assert not are_same(ShardLimits(candidates=5, cached_candidates=0))
    assert [shard is view for shard in system_scores.shards(view)] == [True]


def test_no_more_shards_are_begun_than_threads_and_one(monkeypatch: pytest.MonkeyPatch) -> None:
    view = judged(aligned(DATASETS[0]))
    made: list[int] = []
    between = AlignedRuns.between

    def counted(runs: AlignedRuns, start: int, stop: int) -> AlignedRuns:
        made.append(start)
        return between(runs, start, stop)

    monkeypatch.setattr(AlignedRuns, "between", counted)
    found = system_scores.over_shards(lambda shard: shard.queries, view, 1, SINGLE)
    assert next(found) == view.queries[:1]
    assert made == [0]
    assert [*found] == [(query,) for query in view.queries[1:]]


def test_an_error_in_a_thread_is_that_of_the_first_query() -> None:
    view = judged(aligned(DATASETS[0]))
    lacking = {"method": "weighted_score", "normalize": {"method": "max"}}
    given = systems([lacking], view.sources)
    negative = AlignedRuns(**{**vars_of(view), "scores": -np.abs(view.scores) - 1})
    messages = []
    for threads in (1, 3):
        with pytest.raises(AlignmentError, match=r"^system 's0': ") as caught:
            evaluate_systems(given, negative, MEASURES, threads=threads, limits=SINGLE)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


def vars_of(view: AlignedRuns) -> dict[str, Any]:
    names = AlignedRuns.__dataclass_fields__
    return {name: getattr(view, name) for name in names if name != "cache"}


def test_measures_of_ir_measures_see_all_queries_at_once() -> None:
    view = aligned(DATASETS[0])
    given = systems([{"method": "rrf"}], view.sources)
    measures = [parse_measure("Bpref"), parse_measure("RR")]
    (expected,) = evaluate_systems(given, view, measures)
    (found,) = evaluate_systems(given, view, measures, threads=2, limits=SINGLE)
    assert found.values.tobytes() == expected.values.tobytes()


def test_the_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(system_scores.THREADS, raising=False)
    assert system_scores.threads_of(None) >= 1
    assert system_scores.threads_of(3) == 3
    monkeypatch.setenv(system_scores.THREADS, "5")
    assert system_scores.threads_of(None) == 5
    assert system_scores.threads_of(2) == 2
    for text in ("0", "-1", "two", "²"):
        monkeypatch.setenv(system_scores.THREADS, text)
        with pytest.raises(
            ConfigError, match=rf"^{system_scores.THREADS}: .* whole number from 1 to"
        ):
            system_scores.threads_of(None)
    with pytest.raises(ConfigError, match=r"^threads: '0' is not"):
        system_scores.threads_of(0)
