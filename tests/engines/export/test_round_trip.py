"""An exported configuration, read back, orders every query of attack as the system does."""

from pathlib import Path

import pytest

from fusion_bench.experiment.dialect import Dialect, dialects
from fusion_bench.io.dataset import load_dataset
from tests.engines.export.round_trip import Original

ATTACK = Path(__file__).parents[3] / "datasets/attack/dataset.yaml"
ENGINES = dialects.load_built_in().values()


@pytest.fixture(scope="module")
def attack() -> Original:
    dataset = load_dataset(ATTACK, cache=False)
    return Original(dataset.aligned(list(dataset.runs)))


@pytest.mark.parametrize("dialect", ENGINES, ids=lambda dialect: dialect.name)
def test_every_query_keeps_its_order(dialect: type[Dialect], attack: Original) -> None:
    for trip in attack.round_trips(dialect):
        assert trip.queries == 3182
        assert trip.changed == 0, trip
        assert trip.tied <= trip.queries // 4, trip


def test_an_equal_order_is_claimed_of_many_systems(attack: Original) -> None:
    engines = ("elasticsearch", "pgvector", "conv-07-05")
    claimed = {
        engine: {system.name for system, _ in attack.claims(dialects.find_plugin(engine))}
        for engine in engines
    }
    assert {"rrf", "rrf k=10", "rrf weighted", "convex"} <= claimed["elasticsearch"]
    assert "windows" in claimed["pgvector"]
    assert "score skip" in claimed["conv-07-05"]
