"""What the formulas give at their edges; the oracle covers what lies between."""

from __future__ import annotations

import numpy as np
import pytest

from fusion_bench.data.alignment import align
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.run import Run
from fusion_bench.errors import AlignmentError, ConfigError
from fusion_bench.methods.normalize import normalizers

Config = dict[str, object]


def scaled(scores: list[float], config: Config) -> list[float]:
    """Normalized scores of one list, in the order given."""
    names = [f"d{n}" for n in range(len(scores))]
    run = Run.from_dict(
        "dense", {"q": dict(zip(names, scores, strict=True))}, roles=frozenset({"semantic"})
    )
    other = Run.from_dict("bm25", {"q": {"elsewhere": 1.0}})
    runs = align(Qrels.from_dict({"q": {"d0": 1}}), [run, other])
    values = normalizers.build(config).normalize_scores(runs)[0]
    by_name = {runs.vocabulary[d]: float(x) for d, x in zip(runs.documents, values, strict=True)}
    assert np.isnan(by_name["elsewhere"])
    return [by_name[name] for name in names]


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"method": "none"}, [4.0, 2.0, 0.0]),
        ({"method": "min_max"}, [1.0, 0.5, 0.0]),
        ({"method": "min_max_inverted"}, [0.0, 0.5, 1.0]),
        ({"method": "max"}, [1.0, 0.5, 0.0]),
        ({"method": "sum"}, [4 / 6, 2 / 6, 0.0]),
        ({"method": "z_score"}, [1.5**0.5, 0.0, -(1.5**0.5)]),
        ({"method": "l2"}, [4 / 20**0.5, 2 / 20**0.5, 0.0]),
        ({"method": "rank"}, [1.0, 2 / 3, 1 / 3]),
        ({"method": "borda"}, [1.0, 0.75, 0.5]),  # four candidates with the other source's
        ({"method": "sigmoid"}, [0.9820137900379085, 0.8807970779778823, 0.5]),
        ({"method": "arctan"}, [0.844041739245459, 0.7048327646991335, 0.0]),
        ({"method": "theoretical_min_max", "lo": {"dense": -1, "bm25": 0}}, [1.0, 0.6, 0.2]),
        ({"method": "dbsf"}, [8 / 12, 0.5, 4 / 12]),  # sample sd 2: from -4 to 8
    ],
    ids=lambda x: str(x.get("method")) if isinstance(x, dict) else "",
)
def test_formulas(config: Config, expected: list[float]) -> None:
    assert scaled([4.0, 2.0, 0.0], config) == pytest.approx(expected, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("constant", [0, 0.5, 1])
@pytest.mark.parametrize("scores", [[3.0, 3.0], [-7.0], [0.1, 0.1, 0.1]])
@pytest.mark.parametrize("method", ["min_max", "min_max_inverted", "sum", "z_score", "dbsf"])
def test_a_constant_list_becomes_the_constant(
    method: str, scores: list[float], constant: float
) -> None:
    found = scaled(scores, {"method": method, "constant": constant})
    assert found == [constant] * len(scores)


def test_constants_where_the_divisor_is_0() -> None:
    assert scaled([0.0, 0.0], {"method": "l2", "constant": 0.5}) == [0.5, 0.5]
    theoretical: Config = {"method": "theoretical_min_max", "lo": {"dense": 2.0, "bm25": 0.0}}
    assert scaled([2.0, 2.0], {**theoretical, "constant": 0.5}) == [0.5, 0.5]
    assert scaled([3.0, 3.0], theoretical) == [1.0, 1.0]


def test_constant_is_1_unless_said() -> None:
    assert normalizers.build("min_max").constant == 1


@pytest.mark.parametrize("scores", [[-1.0, -2.0], [0.0]])
def test_max_is_refused_where_it_means_nothing(scores: list[float]) -> None:
    with pytest.raises(
        AlignmentError,
        match=r"'dense': .* -?[01], .*; use min_max",
    ):
        scaled(scores, {"method": "max"})


@pytest.mark.parametrize(
    ("lo", "message"),
    [
        ({"bm25": 0.0}, "source 'dense': no value fits"),
        ({"dense": 0.0, "semantic": 0.0}, "source 'dense': dense, semantic all fit"),
        ({"semantic": 1.5}, r"score 1 below its declared lo 1\.5: lower 'lo' or use min_max"),
    ],
)
def test_theoretical_min_max_needs_one_true_lo(lo: dict[str, float], message: str) -> None:
    with pytest.raises(AlignmentError, match=message):
        scaled([2.0, 1.0], {"method": "theoretical_min_max", "lo": lo})


def test_theoretical_min_max_needs_a_lo_at_all() -> None:
    with pytest.raises(ConfigError, match="lo: is required"):
        normalizers.build("theoretical_min_max")
    with pytest.raises(ConfigError, match=r"lo: .* 1 item"):
        normalizers.build({"method": "theoretical_min_max", "lo": {}})


def test_dbsf_clips() -> None:
    found = scaled([100.0, *[0.0] * 30], {"method": "dbsf"})
    assert found[0] == 1.0
    assert 0.4 < found[1] < 0.5


def test_sigmoid_far_out_is_silent() -> None:
    assert scaled([800.0, -800.0], {"method": "sigmoid"}) == [1.0, 0.0]


def test_scales_see_the_list_after_the_cut() -> None:
    run = Run.from_dict("a", {"q": {"x": 4.0, "y": 3.0, "z": 0.0}})
    runs = align(Qrels.from_dict({"q": {"x": 1}}), [run]).restrict(["a"], {"a": 2})
    assert normalizers.build("min_max").normalize_scores(runs).tolist() == [[0.0, 1.0]]
    assert normalizers.build("rank").normalize_scores(runs).tolist() == [[0.5, 1.0]]


def test_a_source_that_answers_nothing_here() -> None:
    a, b = Run.from_dict("a", {"q": {"x": 1.0}}), Run.from_dict("b", {"r": {"x": 1.0}})
    runs = align(Qrels.from_dict({"q": {"x": 1}, "r": {"x": 1}}), [a, b])
    part = runs.subset(np.array([True, False]))
    found = normalizers.build("min_max").normalize_scores(part)
    assert found[0].tolist() == [1.0]
    assert np.isnan(found[1]).all()
