"""A translation that claims an equal order has it, and what is written is read back."""

from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fusion_bench.engines.dialects._translation import EngineFusion
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.dialect import Dialect, dialects
from fusion_bench.experiment.system import System
from tests.engines.cases import (
    ROLES,
    align_lists,
    assert_same_order,
    random_lists,
    random_system,
    ranked_lists,
)
from tests.engines.reading import read_system
from tests.examples import examples

TRANSLATORS = {
    name: dialect for name, dialect in dialects.load_built_in().items() if dialect.methods
}
EVERY = pytest.mark.parametrize("dialect", TRANSLATORS.values(), ids=lambda d: d.name)
FEW = settings(
    max_examples=examples(8), suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
SEEDS = st.integers(0, 100_000)


@EVERY
@FEW
@given(SEEDS)
def test_an_equal_order_is_claimed_only_where_it_is_equal(
    dialect: type[Dialect], seed: int
) -> None:
    system = random_system(seed)
    translation = dialect.translate(system, ROLES)
    assert (translation.system is None) == (translation.fidelity == "unsupported")
    if translation.fidelity != "exact":
        assert translation.reasons
    if translation.system is None:
        return
    again = dialect.translate(translation.system, ROLES)
    assert again.fidelity == "exact"
    runs = align_lists(random_lists(seed))
    theirs = ranked_lists(translation.system, runs)
    assert again.system is not None
    assert ranked_lists(again.system, runs) == theirs
    if translation.fidelity in {"exact", "rank-equivalent"}:
        assert_same_order(dialect, system, translation.system, runs)


def engine_system(seed: int) -> System:
    """A system of some dialect: a default of it, or what ours becomes there."""
    random = Random(seed)
    other = random.choice([*TRANSLATORS.values()])
    translated = other.translate(random_system(seed), ROLES).system
    if translated is not None and random.random() < 0.7:
        return translated
    method = random.choice(other.methods).model_fields["method"].default
    return System("s", ["bm25", "dense"], dialect=other.name, fusion=method, depth=None)


@EVERY
@FEW
@given(SEEDS)
def test_other_dialects_are_translated_as_carefully(dialect: type[Dialect], seed: int) -> None:
    system = engine_system(seed)
    translation = dialect.translate(system, ROLES)
    if translation.system is not None and translation.fidelity in {"exact", "rank-equivalent"}:
        runs = align_lists(random_lists(seed, most=0.99))
        assert_same_order(dialect, system, translation.system, runs)


@EVERY
@FEW
@given(SEEDS)
def test_what_is_written_is_read_back(dialect: type[Dialect], seed: int) -> None:
    translated = dialect.translate(random_system(seed), ROLES).system
    if translated is None:
        return
    files = dialect.write(translated).files
    again = read_system(dialect, files)
    runs = align_lists(random_lists(seed))
    assert ranked_lists(again, runs) == ranked_lists(translated, runs)
    assert dialect.write(again).files == files


@EVERY
def test_an_equal_order_is_claimed_of_some_system(dialect: type[Dialect]) -> None:
    """The test above would pass if a dialect never claimed anything."""
    if dialect.name in {"cosmos", "vespa"}:
        pytest.skip("ranks documents that a list lacks")
    fidelities = {dialect.translate(random_system(seed), ROLES).fidelity for seed in range(200)}
    assert fidelities & {"exact", "rank-equivalent"}
    assert "approximate" in fidelities


@EVERY
def test_stages_are_unsupported(dialect: type[Dialect]) -> None:
    stage = {"name": "both", "runs": ["dense", "hyde"]}
    for fusion in ("rrf", "convex"):
        staged = System("s", ["bm25", "both"], fusion, stages={"both": stage})
        translation = dialect.translate(staged, ROLES)
        assert (translation.fidelity, translation.system) == ("unsupported", None)


@EVERY
def test_untranslated_systems_are_not_written(dialect: type[Dialect]) -> None:
    plain = System("s", ["bm25", "dense"])
    with pytest.raises(ConfigError, match="translate it first"):
        dialect.write(plain)


@EVERY
@pytest.mark.parametrize("seed", range(3))
def test_terms_add_up_and_the_batch_engine_agrees(dialect: type[Dialect], seed: int) -> None:
    runs = align_lists(random_lists(seed, sources=("bm25", "dense"), most=0.99))
    everything = np.arange(len(runs.documents))
    for method in dialect.methods:
        name = method.model_fields["method"].default
        system = System("s", ["bm25", "dense"], dialect=dialect.name, fusion=name, depth=None)
        fused = system.fusion.fuse(runs)
        assert isinstance(system.fusion, EngineFusion)
        assert system.fusion.score_terms(runs).scores.tolist() == fused.tolist()
        form = system.fusion.engine_form(runs)
        assert form is not None
        assert form.scores(runs, everything).tolist() == fused.tolist()
