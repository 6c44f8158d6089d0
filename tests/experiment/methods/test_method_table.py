"""What can be written after ``method:``."""

from __future__ import annotations

import json
from typing import Any

from fusion_bench.config.registry import MethodRegistry
from fusion_bench.experiment.method_table import list_methods
from fusion_bench.methods.blend import blends
from fusion_bench.methods.fuse import fusions
from fusion_bench.methods.normalize import normalizers
from fusion_bench.methods.policies import policies


def test_every_method_is_listed_with_its_formula() -> None:
    found = list_methods()
    registries: dict[str, MethodRegistry[Any]] = {
        "fusion": fusions,
        "blend": blends,
        "normalize": normalizers,
        "policy": policies,
    }
    assert set(found) == set(registries)
    for kind, registry in registries.items():
        assert [entry["method"] for entry in found[kind]] == sorted(registry.load_all())
        for entry in found[kind]:
            assert entry["formula"], entry
            assert "\n" not in entry["formula"]
            assert "method" not in entry["parameters"]


def test_parameters_have_their_defaults_as_json() -> None:
    found = {entry["method"]: entry for entry in list_methods()["fusion"]}
    assert found["rrf"]["parameters"] == {
        "weights": "{}",
        "k": "60",
        "normalize": '"none"',
        "alpha": "null",
    }
    assert json.loads(found["rrf_v2"]["parameters"]["bonus"]) == {"1": 0.05, "3": 0.02}
    assert found["weighted_score"]["parameters"]["normalize"] == "none"


def test_what_has_no_default_is_required() -> None:
    found = {entry["method"]: entry for entry in list_methods()["blend"]}
    assert found["replace"]["parameters"]["reranker"] == "required"
    assert found["none"]["parameters"] == {}
    scaled = {entry["method"]: entry for entry in list_methods()["normalize"]}
    assert scaled["theoretical_min_max"]["parameters"]["lo"] == "required"


def test_what_is_listed_can_be_given_to_json() -> None:
    assert json.loads(json.dumps(list_methods())) == list_methods()
