"""What the aliases of an experiment became."""

from __future__ import annotations

from typing import Any

import pytest

from fusion_bench.config.models import parse_model
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.experiment import Experiment
from fusion_bench.experiment.method_table import describe_fusion_alias, list_alias_notes

REMARK = " (divides by Σ w: the same order)"
DATA: dict[str, Any] = {
    "dataset": "d",
    "measures": ["ndcg@10", "RR@10"],
    "baseline": "one",
    "systems": {
        "one": {"runs": ["a"]},
        "two": {"runs": ["a", "b"], "fusion": "convex"},
        "three": {
            "runs": ["a", "b"],
            "by_query_type": {"hybrid": {"fusion": {"method": "Convex", "normalize": "max"}}},
        },
        "four": {"runs": ["a", "b"], "fusion": "wsum"},
    },
    "tune": {"system": "one", "measure": "map"},
    "gate": {
        "checks": {"mrr@10": {"max_drop": 0.1}},
        "guards": [{"measure": "P_5", "max_loss": 1}],
    },
}


def test_lists_every_alias_once() -> None:
    assert list_alias_notes(DATA) == (
        "ndcg@10 → nDCG@10",
        "map → AP",
        "mrr@10 → RR@10",
        "P_5 → P@5",
        f"convex → weighted_score, normalize min_max, missing zero{REMARK}",
        f"Convex → weighted_score, normalize max, missing zero{REMARK}",
        "wsum → weighted_sum",
    )


def test_the_experiment_holds_canonical_names() -> None:
    experiment = parse_model(Experiment, DATA)
    assert experiment.measures == ("nDCG@10", "RR@10")
    assert experiment.tune is not None
    assert experiment.tune.measure == "AP"
    assert experiment.gate is not None
    assert experiment.gate.measures == ("RR@10", "P@5")
    assert experiment.systems["two"].fusion.method == "weighted_score"


def test_the_short_form_of_a_gate() -> None:
    data = {**DATA, "tune": None, "measures": ["AP"], "systems": {}}
    assert list_alias_notes({**data, "gate": {"p@5": {"max_drop": 0}}}) == ("p@5 → P@5",)


@pytest.mark.parametrize("given", ["rrf", {"method": "rrf", "k": 3}, {}, 3, None])
def test_no_note_without_an_alias(given: object) -> None:
    assert describe_fusion_alias(given) is None


def test_one_measure_under_two_names_is_refused() -> None:
    gate = {"checks": {"mrr@10": {"max_drop": 0.1}, "RR@10": {"max_drop": 0.2}}}
    with pytest.raises(ConfigError, match=r"gate\.checks:.*mrr@10.*RR@10.*RR@10"):
        parse_model(Experiment, {**DATA, "gate": gate})


def test_alpha_and_weights_by_type_exclude_each_other() -> None:
    system = {
        "runs": ["a", "b"],
        "fusion": {"method": "rrf", "alpha": 0.5},
        "weights_by_type": "conv-03-05",
    }
    with pytest.raises(ConfigError, match=r"weights_by_type.*fusion\.alpha"):
        parse_model(Experiment, {**DATA, "systems": {"one": system}})
