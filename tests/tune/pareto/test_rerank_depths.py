"""Settings at other depths and with other rerankers stay settings of the same space."""

from __future__ import annotations

import pytest

from fusion_bench.tune.pareto import (
    at_depth,
    depth_ladder,
    max_rerank_depth,
    reranker_names,
    set_in_blends,
)
from tests.tune.cases import aligned
from tests.tune.problems import BLEND, problem, system

TYPED = {"by_query_type": {"a": BLEND, "b": "none", "hybrid": {**BLEND, "depth": 3}}}


def test_another_depth_changes_the_depth_and_nothing_else() -> None:
    base = problem(system(blend=BLEND))
    params = at_depth(base, base.default_params, 7)
    assert params is not None
    found = base.build_system(params)
    assert found.blend.model_dump() == {**base.system.blend.model_dump(), "depth": 7}
    assert max_rerank_depth(found) == 7
    same = at_depth(base, base.default_params, max_rerank_depth(base.system))
    assert same is not None
    values = base.evaluate_params([base.default_params, same])
    assert (values[0] == values[1]).all()


def test_depth_zero_is_without_a_reranker() -> None:
    base = problem(system(blend=BLEND))
    params = at_depth(base, base.default_params, 0)
    assert params is not None
    assert base.build_system(params).blend.method == "none"
    assert not [path for path in params if path.startswith("blend.") and "method" not in path]
    assert max_rerank_depth(base.build_system(params)) == 0


def test_a_setting_without_a_reranker_has_no_other_depth() -> None:
    base = problem()
    assert at_depth(base, base.default_params, 5) is None
    assert at_depth(base, base.default_params, 0) == base.default_params


def test_every_query_type_that_reranks_gets_the_depth() -> None:
    base = problem(system(blend=TYPED), runs=aligned(types=["a", "b"] * 12))
    params = at_depth(base, base.default_params, 4)
    assert params is not None
    found = base.build_system(params)
    assert found.by_query_type is not None
    own = {name: one.blend for name, one in found.by_query_type.items()}
    assert own["a"].model_dump()["depth"] == own["hybrid"].model_dump()["depth"] == 4
    assert own["b"].method == "none"
    none = at_depth(base, base.default_params, 0)
    assert none is not None
    assert max_rerank_depth(base.build_system(none)) == 0


def test_a_depth_in_the_space_is_replaced_under_whatever_name() -> None:
    ranges = {"blend.depth": {"choices": (2, 6)}, "blend.beta": "own"}
    base = problem(system(blend=BLEND), ranges)
    params = at_depth(base, {"blend.depth": 2, "blend.beta": 0.5}, 6)
    assert params == {"blend.depth": 6, "blend.beta": 0.5}


def test_another_reranker_is_another_reranker() -> None:
    base = problem(system(blend=BLEND))
    found = base.build_system(set_in_blends(base, base.default_params, "reranker", "other"))
    assert found.blend.reranker_name == "other"
    ranges = {"blend.reranker": {"choices": ("sharp", "other")}}
    assert reranker_names(problem(system(blend=BLEND), ranges)) == ("other", "sharp")
    assert reranker_names(problem()) == ()


@pytest.mark.parametrize(
    ("ranges", "expected"),
    [
        (None, (0, 1, 2, 3, 5, 7, 10)),
        ({"blend.depth": {"choices": (2, 6)}}, (0, 2, 5, 6, 8)),
        ({"blend.depth": {"low": 4, "high": 7, "int": True}}, (0, 4, 5, 6, 7, 8)),
        ({"blend.depth": {"low": 2, "high": 8, "int": True, "step": 3}}, (0, 2, 5, 8)),
    ],
)
def test_depths_are_those_of_the_space_and_none_beyond_the_pool(
    ranges: dict[str, dict[str, object]] | None, expected: tuple[int, ...]
) -> None:
    base = problem(system(blend=BLEND), ranges)
    also = [max_rerank_depth(base.system)] if ranges is None else [5, 8]
    assert depth_ladder(base, None, also) == expected


def test_depths_that_are_asked_for_win() -> None:
    base = problem(system(blend=BLEND))
    assert depth_ladder(base, (4, 200, 300), [5, 500]) == (0, 4, 5, 200)
