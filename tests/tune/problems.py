"""Small problems for the tests of the search."""

from typing import Any

from fusion_bench.config.parameters import Parameter
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.experiment.settings import ParameterRange
from fusion_bench.experiment.system import System
from fusion_bench.io.fingerprints import Fingerprint
from fusion_bench.measures import parse_measure
from fusion_bench.tune.objective import TuningObjective
from fusion_bench.tune.space import build_search_space
from tests.tune.cases import aligned

RRF = {"method": "rrf"}
BLEND = {"method": "linear", "reranker": "sharp", "depth": 5}


def system(fusion: Any = RRF, blend: Any = "none", **rest: Any) -> System:  # noqa: ANN401 - as YAML
    data = {"name": "tuned", "runs": ["good", "bad"], "fusion": fusion, "blend": blend, **rest}
    return System.model_validate(data)


def roles_of(runs: AlignedRuns) -> dict[str, frozenset[str]]:
    return dict(zip(runs.sources, runs.roles, strict=True))


def problem(
    default: System | None = None,
    ranges: dict[str, Any] | None = None,
    *,
    runs: AlignedRuns | None = None,
    measure: str = "nDCG@10",
    parameters: tuple[Parameter, ...] | None = None,
) -> TuningObjective:
    default, runs = default or system(), runs or aligned()
    asked = None
    if ranges is not None:
        asked = {p: one if one == "own" else ParameterRange(**one) for p, one in ranges.items()}
    return TuningObjective(
        default,
        runs,
        parse_measure(measure),
        parameters or build_search_space(default, asked, roles_of(runs)),
        contents=Fingerprint({}),
    )
