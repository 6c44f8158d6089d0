"""What every per-query policy promises, whatever its rule."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.method_table import list_methods
from fusion_bench.experiment.system import System
from fusion_bench.methods.policies import TrainablePolicy, Variant, policies
from fusion_bench.ranking.plain_systems import choose_variants, fit_system
from tests.contract.cases import (
    DATASETS,
    ORDERS,
    QUERIES,
    SOURCES,
    aligned,
    equal,
    policy_examples,
    snapshot,
    training_runs,
)

EVERY = pytest.mark.parametrize("config", policy_examples(), ids=str)
UNTRAINED = pytest.mark.parametrize(
    "config",
    [
        config
        for config in policy_examples()
        if not issubclass(policies.find_model(config), TrainablePolicy)
    ],
    ids=str,
)


def system_with(config: dict[str, Any], order: tuple[str, ...] = SOURCES) -> System:
    """A system with the policy; a trained one is fitted to queries of its own."""
    blend = {"method": "replace", "reranker": "reranker", "missing": "below"}
    return fit_system(System("s", order, blend=blend, policy=config), training_runs())


def choices(system: System, runs: AlignedRuns) -> dict[str, Variant]:
    """Query → the variant of it, weights in order of the sources' names."""
    codes, variants = choose_variants(system, runs)
    assert codes.shape == (len(runs.queries),)
    return {query: variants[code] for query, code in zip(runs.queries, codes.tolist(), strict=True)}


@EVERY
def test_round_trips_through_json(config: dict[str, Any]) -> None:
    policy = policies.build(config)
    assert equal(type(policy).model_validate(policy.model_dump(mode="json")), policy)
    assert equal(policies.build(policy.model_dump(mode="json")), policy)


@EVERY
def test_refuses_unknown_keys(config: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="unknown key 'colour'"):
        policies.build({**config, "colour": 1})


@EVERY
def test_says_what_it_is(config: dict[str, Any]) -> None:
    policy = policies.build(config)
    assert policy.method == config["method"]
    [entry] = [e for e in list_methods()["policy"] if e["method"] == policy.method]
    assert entry["formula"]
    assert entry["source"], "name where the rule comes from in the class's 'source'"


@EVERY
def test_declares_parameters_that_it_has(config: dict[str, Any]) -> None:
    policy = policies.build(config)
    paths = {parameter.path for parameter in policy.space(SOURCES)}
    assert paths <= set(type(policy).model_fields)
    assert all(set(preset) <= paths for preset in policy.presets())


@EVERY
def test_the_choice_of_a_query_depends_on_no_other(config: dict[str, Any]) -> None:
    system = system_with(config)
    for dataset in DATASETS:
        together = choices(system, aligned(dataset))
        for query in QUERIES:
            assert choices(system, aligned(dataset, queries=(query,)))[query] == together[query]


@EVERY
def test_judgments_change_no_choice(config: dict[str, Any]) -> None:
    system = system_with(config)
    for dataset in DATASETS:
        runs = aligned(dataset)
        other = replace(runs, grades=1 - runs.grades, judged=np.ones_like(runs.judged))
        assert choices(system, runs) == choices(system, other)


@EVERY
def test_inputs_stay_as_they_are(config: dict[str, Any]) -> None:
    runs = aligned(DATASETS[0])
    before = snapshot(runs)
    choices(system_with(config), runs)
    assert snapshot(runs) == before


@UNTRAINED
def test_the_order_of_sources_changes_no_choice(config: dict[str, Any]) -> None:
    for dataset in DATASETS:
        expected = choices(system_with(config), aligned(dataset))
        for order in ORDERS:
            assert choices(system_with(config, order), aligned(dataset, order=order)) == expected
