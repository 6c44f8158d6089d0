"""No real collection is stopped, except for rerank lists that only have an order."""

from pathlib import Path

import pytest

from fusion_bench.checks.lists import list_infos
from fusion_bench.checks.obstacles import find_obstacles
from fusion_bench.checks.records import Obstacle
from fusion_bench.data.read_options import ReadOptions
from fusion_bench.data.run import Run
from fusion_bench.evaluation.in_memory import make_dataset
from fusion_bench.evaluation.starter_systems import guess_score_space
from fusion_bench.io.dataset import load_dataset
from fusion_bench.io.load_records import load_qrels, load_run
from tests.parity.data import parity_data

DATASETS = Path(__file__).parents[2] / "datasets"
#: Folder → its judgments.
COLLECTIONS = {
    "codec": "qrels.txt",
    "jqara": "qrels.txt",
    "nfcorpus": "qrels/test.trec",
    "trec-cast-2021": "qrels.txt",
    "trec-covid-round2": "qrels.txt",
    "trec-dl-2019": "qrels.txt",
    "weaviate-agents/bright-biology": "qrels.txt",
    "weaviate-agents/bright-economics": "qrels.txt",
    "weaviate-agents/bright-robotics": "qrels.txt",
}


def read_lists(folder: Path) -> dict[str, Run]:
    """CODEC's lists name a few documents twice."""
    files = sorted(folder.iterdir()) if folder.is_dir() else []
    options = ReadOptions(on_duplicate="best_rank")
    return {path.name: load_run(path, name=path.name, read_options=options) for path in files}


def obstacles_of(collection: str) -> tuple[Obstacle, ...]:
    folder = parity_data(collection.partition("/")[0]) / collection.partition("/")[2]
    rerankers = read_lists(folder / "rerank")
    dataset = make_dataset(
        "real",
        load_qrels(folder / COLLECTIONS[collection]),
        read_lists(folder / "runs"),
        rerankers=rerankers,
        score_spaces={name: guess_score_space(run)[0] for name, run in rerankers.items()},
    )
    runs = dataset.align_repeats([*dataset.runs])
    return find_obstacles(dataset, list_infos([(dataset, runs)]))


@pytest.mark.parity
@pytest.mark.parametrize("collection", [name for name in COLLECTIONS if name != "trec-dl-2019"])
def test_no_real_collection_is_stopped(collection: str) -> None:
    assert obstacles_of(collection) == ()


@pytest.mark.parity
def test_the_listwise_reranks_of_trec_dl_are_found() -> None:
    """Their scores are those of the first stage in another order."""
    found = obstacles_of("trec-dl-2019")
    assert {each.key for each in found} == {"reused scores"}
    assert len(found) == 4


@pytest.mark.parametrize("name", ["attack", "dcg-example", "referee"])
def test_no_shipped_dataset_is_stopped(name: str) -> None:
    dataset = load_dataset(DATASETS / name / "dataset.yaml", cache=False)
    repeats = dataset.align_repeats([*dataset.runs]).repeats
    infos = list_infos([*zip(dataset.repeats, repeats, strict=True)])
    assert find_obstacles(dataset, infos) == ()
