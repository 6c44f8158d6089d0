"""ADR-005's numbers, by hand from its decisions.

The source's ranks count from 0: 2/(60 + rank + 1) for the question, 1/(60 + rank + 1) for HyDE and
BM25, +0.05 at rank 0, +0.02 at ranks 1 and 2; shares .75 up to rank 2, .60 up to 9, .40 beyond.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from fusion_bench.engines.dialects.rank_bonus import Adr005
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.experiment import replace_v2
from fusion_bench.experiment.system import System
from tests.engines.blend_cases import final_scores
from tests.engines.cases import ROLES, scores

LISTS = {
    "dense": {"q": {"a": 0.9, "b": 0.8, "c": 0.7, "d": 0.6}},
    "hyde": {"q": {"a": 0.9, "e": 0.8}},
    "bm25": {"q": {"a": 9.0, "d": 8.0}},
}
RERANK = {"a": 0.1, "b": 0.9, "c": 0.2, "d": 0.8, "e": 1.0}


def system(**settings: Any) -> System:  # noqa: ANN401 - of any system
    return System("s", list(LISTS), **{"dialect": "adr-005", **settings})


def test_v2() -> None:
    fused = scores(system(), LISTS)
    assert fused["a"] == pytest.approx(0.1155737705)  # 4/61 + .05
    assert fused["b"] == pytest.approx(2 / 62 + 0.02)
    assert fused["d"] == pytest.approx(2 / 64 + 1 / 62 + 0.02)
    assert fused["e"] == pytest.approx(1 / 62 + 0.02)


def test_v1() -> None:
    assert scores(system(fusion="rrf"), LISTS)["a"] == pytest.approx(3 / 61)


def test_blend_of_raw_fused_scores() -> None:
    fused = scores(system(), LISTS)
    assert list(fused) == ["a", "d", "b", "c", "e"]
    blended = final_scores(system(blend={"reranker": "ce"}), LISTS, RERANK)
    assert blended["a"] == pytest.approx(0.75 * fused["a"] + 0.25 * 0.1)
    assert blended["e"] == pytest.approx(0.60 * fused["e"] + 0.40 * 1.0)
    assert next(iter(blended)) == "e"  # the fused score hardly counts


def test_the_switch_makes_it_v1() -> None:
    plain = replace_v2(system(blend={"reranker": "ce"}))
    assert (plain.fusion.method, plain.blend.method) == ("rrf", "replace")
    assert scores(plain.model_copy(update={"blend": system().blend}), LISTS)["a"] == pytest.approx(
        3 / 61
    )
    again = System.model_validate(plain.model_dump(mode="json"))
    assert final_scores(again, LISTS, RERANK) == final_scores(plain, LISTS, RERANK)


FUSED = {"method": "position_aware", "reranker": "ce", "retrieval": "fused", "tail": "drop"}
REPLACED = {"method": "replace", "reranker": "ce", "tail": "drop"}


@pytest.mark.parametrize(
    ("fusion", "blend", "fidelity", "method"),
    [
        ("rrf_v2", FUSED, "exact", "rrf_v2"),
        ({"method": "rrf_v2", "bonus": {1: 0.1}, "k": 20}, FUSED, "exact", "rrf_v2"),
        ({"method": "rrf_v2", "bonus_unit": "relative"}, FUSED, "exact", "rrf_v2"),
        ({"method": "rrf_v2", "normalize": "max_possible"}, FUSED, "approximate", "rrf_v2"),
        ("rrf_v2", REPLACED, "exact", "rrf_v2"),
        ("rrf_v2", {**FUSED, "method": "linear", "beta": 0.7}, "exact", "rrf_v2"),
        ("rrf_v2", {**FUSED, "retrieval": "reciprocal_rank"}, "approximate", "rrf_v2"),
        ("rrf", REPLACED, "approximate", "rrf"),  # what is beyond its depth is kept there
        ("rrf", {"method": "none"}, "exact", "rrf"),
        ({"method": "rrf", "weights": {"hyde": 0.5}}, FUSED, "exact", "rrf_v2"),
        ("rrf", FUSED, "exact", "rrf_v2"),
    ],
)
def test_translation_and_round_trip(
    fusion: Any,  # noqa: ANN401 - as YAML says it
    blend: Mapping[str, Any],
    fidelity: str,
    method: str,
) -> None:
    ours = System("s", list(LISTS), fusion, blend, depth=20, top_k=10)
    translation = Adr005.translate(ours, ROLES)
    assert translation.system is not None
    assert (translation.fidelity, translation.system.fusion.method) == (fidelity, method)
    files = Adr005.write(translation.system).files
    assert files[".env"] == f"RAG_FUSION_V2_ENABLED={'true' if method == 'rrf_v2' else 'false'}\n"
    again = System.model_validate({"name": "s", **Adr005.read(files)})
    assert final_scores(again, LISTS, RERANK) == final_scores(translation.system, LISTS, RERANK)
    if fidelity == "exact":
        expected = final_scores(ours, LISTS, RERANK)
        assert final_scores(again, LISTS, RERANK) == pytest.approx(expected)
        assert list(final_scores(again, LISTS, RERANK)) == list(expected)


def test_the_constants_are_json() -> None:
    written = Adr005.write(system(fusion={"weights": {"dense": 2}}, top_k=10)).files["fusion.ts"]
    (weights,) = [line for line in written.splitlines() if line.startswith("export const WEIGHTS")]
    assert json.loads(weights.partition("= ")[2].rstrip(";")) == {
        "dense": 2.0,
        "hyde": 1.0,
        "bm25": 1.0,
    }


def test_v2_needs_the_question() -> None:
    ours = System("s", ["bm25", "hyde"], {"method": "rrf", "weights": {"hyde": 2}})
    assert Adr005.translate(ours, ROLES).fidelity == "unsupported"


def test_what_cannot_be_written() -> None:
    for settings in (
        {"fusion": {"method": "rrf", "weights": {"dense": 2.0}}},
        {"fusion": "rrf", "blend": {"reranker": "ce"}},
        {"fusion": {"normalize": "three_lists", "weights": {"dense": 2.0}}},
        {},  # weights by role
    ):
        with pytest.raises(ConfigError):
            Adr005.write(system(**settings))
