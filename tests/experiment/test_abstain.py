"""When a system says that it has no answer, in its configuration."""

from typing import Any

import pytest

from fusion_bench.errors import ConfigError
from fusion_bench.experiment.system import System, resolve_named_stages


def build(**abstain: float | str) -> System:
    return System("s", ["bm25", "dense"], abstain=abstain)


def test_a_system_writes_what_was_given_and_nothing_without_it() -> None:
    assert "abstain" not in System("s", ["bm25"]).resolved_config
    assert build(signal="agreement", above=0.25).resolved_config["abstain"] == {
        "signal": "agreement",
        "above": 0.25,
    }


@pytest.mark.parametrize(
    ("abstain", "problem"),
    [
        ({"signal": "fused top"}, "'above' and"),
        (
            {"signal": "fused top", "above": 1.0, "false_answers": 0.1},
            "'above' and",
        ),
        ({"signal": "fused top", "above": float("inf")}, "finite number"),
        ({"signal": "fused top", "false_answers": 1.0}, "less than 1"),
        (
            {"signal": "fused top", "false_answers": 0.1, "calibrated_on": "0" * 64},
            "'calibrated_on' belongs",
        ),
        ({"signal": "rerank top", "above": 0.5}, "no signal"),
        ({"signal": "top:splade", "above": 0.5}, "no signal"),
    ],
)
def test_what_is_no_threshold_is_refused(abstain: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError) as error:
        build(**abstain)
    assert problem in str(error.value)


def test_a_reranker_of_one_query_type_gives_its_signal() -> None:
    by_type = {
        "hybrid": {},
        "local": {"blend": {"method": "replace", "reranker": "rr", "missing": "below"}},
    }
    abstain = {"signal": "rerank top", "above": 0.5}
    system = System("s", ["bm25"], by_query_type=by_type, abstain=abstain)
    assert system.of_class("local").abstain == system.abstain


def test_a_threshold_that_is_not_known_yet_has_a_remedy() -> None:
    system = build(signal="agreement", false_answers=0.1)
    assert system.abstain is not None
    with pytest.raises(ConfigError, match="fusion-bench threshold"):
        system.abstain.find_threshold("s")


def test_a_stage_does_not_abstain() -> None:
    inner = {"runs": ["bm25"], "abstain": {"signal": "top:bm25", "above": 3.0}}
    named = resolve_named_stages({"a": inner, "b": {"runs": ["a"], "stages": {"a": "a"}}})
    assert named["b"]["stages"]["a"] == {"runs": ["bm25"]}
    with pytest.raises(ConfigError, match="stage 'x': remove 'abstain'"):
        System("s", ["x"], stages={"x": inner})
