"""An exported configuration, read back, orders every query of JQaRA as the system does."""

from functools import cache

import pytest

from fusion_bench.data.alignment import align
from fusion_bench.experiment.dialect import Dialect, dialects
from fusion_bench.io.load_records import load_qrels, load_run
from tests.engines.export.round_trip import Original
from tests.parity.data import parity_data

pytestmark = pytest.mark.parity

ROLES = {
    "bm25": frozenset({"keyword"}),
    "bge-m3+dense": frozenset({"question", "semantic"}),
    "bge-m3+sparse": frozenset({"keyword"}),
}
ENGINES = dialects.load_built_in().values()


@cache
def jqara() -> Original:
    folder = parity_data("jqara")
    runs = [
        load_run(folder / "runs" / f"{name}.trec.gz", name=name, roles=roles)
        for name, roles in ROLES.items()
    ]
    return Original(align(load_qrels(folder / "qrels.txt"), runs, complete=True))


@pytest.mark.parametrize("dialect", ENGINES, ids=lambda dialect: dialect.name)
def test_every_query_keeps_its_order(dialect: type[Dialect]) -> None:
    for trip in jqara().round_trips(dialect):
        print(trip)  # noqa: T201 - pytest -rP shows how many queries differ among equal scores
        assert trip.queries == 1667
        assert trip.changed == 0, trip
