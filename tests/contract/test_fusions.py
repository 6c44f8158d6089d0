"""What every fusion method promises, whatever its formula."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, positions
from fusion_bench.errors import AlignmentError, ConfigError
from fusion_bench.experiment.method_table import list_methods
from fusion_bench.experiment.system import System
from fusion_bench.methods.fuse import CandidateScores, Fusion, fusions
from fusion_bench.ranking.system_ranking import rank_candidates
from tests.contract.cases import (
    DATASETS,
    ORDERS,
    QUERIES,
    ROLES,
    SOURCES,
    aligned,
    equal,
    fusion_examples,
    own_fusions,
    per_query,
    ranked,
    ready_fusion,
    snapshot,
    with_weights,
)

EVERY = pytest.mark.parametrize("config", [*fusion_examples(), *own_fusions()], ids=str)
REGISTERED = pytest.mark.parametrize("config", fusion_examples(), ids=str)
WEIGHTED = pytest.mark.parametrize(
    "config", [c for c in fusion_examples() if with_weights(c, 1.0) is not None], ids=str
)


@EVERY
def test_round_trips_through_json(config: dict[str, Any]) -> None:
    fusion = fusions.build(config)
    assert equal(type(fusion).model_validate(fusion.model_dump(mode="json")), fusion)
    assert equal(type(fusion).model_validate_json(fusion.model_dump_json()), fusion)
    assert equal(fusions.build(fusion.model_dump(mode="json")), fusion), (
        "a report writes the method's fields: building it from them must give the same method"
    )


@EVERY
def test_refuses_unknown_keys(config: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"key 'colour' \(known: .*method"):
        fusions.build({**config, "colour": 1})


@REGISTERED
def test_says_what_it_is(config: dict[str, Any]) -> None:
    fusion = fusions.build(config)
    assert fusion.method == config["method"]
    [entry] = [e for e in list_methods()["fusion"] if e["method"] == fusion.method]
    assert entry["formula"], "say what it computes: in the docstring, or in the class's 'formula'"
    assert entry["source"], "name where the formula comes from in the class's 'source'"
    assert fusion.method in (type(fusion).__doc__ or ""), "begin the docstring with the method"


@EVERY
def test_order_of_sources_changes_nothing(config: dict[str, Any]) -> None:
    for dataset, order in product(DATASETS, ORDERS[1::2]):
        other = per_query(ranked(dataset, config, order=tuple(order)))
        assert per_query(ranked(dataset, config)) == other, (
            f"order {order} of the sources changes a score or a position: add terms with "
            "data.ordering.sum_terms, which rounds once"
        )


@EVERY
def test_no_query_depends_on_another(config: dict[str, Any]) -> None:
    for dataset in DATASETS:
        together = per_query(ranked(dataset, config))
        for query in QUERIES:
            alone = per_query(ranked(dataset, config, queries=(query,)))
            assert alone[query] == together[query], (
                "another query changes a score or a position: compute per query, by runs.offsets"
            )


@EVERY
def test_inputs_stay_and_what_comes_out_is_read_only(config: dict[str, Any]) -> None:
    for dataset in DATASETS:
        runs = aligned(dataset)
        before = snapshot(runs)
        scores = ready_fusion(config).fuse(runs)
        assert snapshot(runs) == before, "fuse must not write to the arrays it is given"
        assert scores.shape == runs.documents.shape, "fuse returns one score a candidate, (N,)"
        assert scores.dtype == np.float64, "fuse returns float64"
        assert np.isfinite(scores).all(), (
            "every candidate needs a finite score: ranks are 0 and scores NaN where a source did "
            "not return the document"
        )
        ranking = ranked(dataset, config)
        for array in (ranking.scores, ranking.tiers, ranking.sort_scores, ranking.ranks_before_cut):
            assert not array.flags.writeable
        assert all(
            not v.flags.writeable for v in vars(ranking.runs).values() if isinstance(v, np.ndarray)
        )


@EVERY
def test_no_score_exceeds_the_greatest_possible(config: dict[str, Any]) -> None:
    for dataset in DATASETS:
        runs = aligned(dataset)
        fusion = ready_fusion(config)
        shown = fusion.display_scores(fusion.fuse(runs))
        top = fusion.max_possible(runs)
        assert top.shape == (len(runs.queries),), "max_possible returns one number a query, (Q,)"
        assert (shown <= top[runs.query_index] * (1 + 1e-12)).all(), (
            "a score exceeds max_possible: correct it, or leave it out (the default is infinity)"
        )


@EVERY
def test_a_single_list_keeps_its_order_exactly_where_declared(config: dict[str, Any]) -> None:
    fitting = {"dense", *ROLES["dense"]}
    alone = config | {
        field: {key: config[field][key] for key in config[field] if key in fitting}
        for field in ("weights", *fusions.build(config).per_source)
        if isinstance(config.get(field), dict)
    }
    if "normalize" in alone and "sources" in alone["normalize"]:
        scales = alone["normalize"]["sources"]
        kept = {key: scales[key] for key in scales if key in fitting}
        alone["normalize"] = {**alone["normalize"], "sources": kept}
    # Scores so far apart that a saturating scale makes the first two equal, or the last with all
    # the others: then the id decides.
    crowds = [{f"n{i:02}": 0.0 for i in range(size)} for size in (40, 4_000)]
    saturated = [
        ({"dense": {"q1": crowd | {"a": 1.0, "y": 1.1e13, "z": 1e13}}}, {"q1": crowd})
        for crowd in crowds
    ]
    views = [ranked(dataset, alone, order=("dense",)) for dataset in (*DATASETS, *saturated)]
    keeps = [np.array_equal(view.positions, view.runs.ranks[0]) for view in views]
    declared = ready_fusion(config).keeps_single_list
    assert all(keeps[: len(DATASETS)]) if declared else not all(keeps), (
        f"keeps_single_list is {declared}, but of {len(keeps)} data sets with one list (the last "
        f"two with scores so far apart that a scale saturates) {sum(keeps)} kept their order: "
        f"declare {not declared}"
    )


@WEIGHTED
def test_scaling_all_weights_changes_no_rank_exactly_where_declared(config: dict[str, Any]) -> None:
    keeps = []
    for dataset, factor in product(DATASETS, (0.001, 0.25, 3.0, 1000.0)):
        runs = aligned(dataset)
        fused = [
            positions(fusions.build(with_weights(config, f)).fuse(runs), runs.offsets)
            for f in (1.0, factor)
        ]
        keeps.append(np.array_equal(fused[0], fused[1]))
    declared = fusions.build(with_weights(config, 1.0)).weight_scale_invariant
    assert all(keeps) if declared else not all(keeps), (
        f"weight_scale_invariant is {declared}, but multiplying all weights by one number kept the "
        f"ranks in {sum(keeps)} of {len(keeps)} trials: declare {not declared}"
    )


@WEIGHTED
def test_scaling_all_weights_does_to_scores_what_is_declared(config: dict[str, Any]) -> None:
    factor = 3.0
    one, other = (fusions.build(with_weights(config, f)) for f in (1.0, factor))
    powers: set[int] = {0, 1}
    for dataset in DATASETS:
        runs = aligned(dataset)
        plain, scaled = (
            np.concatenate([f.display_scores(f.fuse(runs)), f.max_possible(runs)])
            for f in (one, other)
        )
        powers = {p for p in powers if np.allclose(scaled, factor**p * plain, 1e-12, 0)}
    assert powers == (set() if one.weight_homogeneity is None else {one.weight_homogeneity}), (
        f"weight_homogeneity is {one.weight_homogeneity}, but multiplying all weights by {factor} "
        f"multiplied the scores and max_possible by {factor} to the power of "
        f"{sorted(powers) or 'no one number'}: declare that (None = no such power)"
    )
    assert one.weight_scale_invariant or one.weight_homogeneity is None, (
        "scores that scale with the weights keep their order: declare weight_scale_invariant"
    )


def test_what_is_declared_not_to_hold_does_not() -> None:
    alone = ({"dense": {"q1": {"d1": 2.0, "d2": 1.0}}}, {"q1": {"d1": 1.0}})
    inverted = {"method": "weighted_score", "normalize": "min_max_inverted"}
    assert per_query(ranked(alone, inverted, order=("dense",)))["q1"]["d2"][0] == 1
    growing = {"method": "rrf_v2", "bonus": {1: 0.0, 2: 0.5}}
    assert per_query(ranked(alone, growing, order=("dense",)))["q1"]["d2"][0] == 1
    assert not fusions.build("rrf_v2").weight_scale_invariant
    assert fusions.build({"method": "rrf_v2", "bonus": {1: 0.0}}).weight_scale_invariant


class MeanReciprocalRank(Fusion):
    """``mean_reciprocal_rank``: a method that overrides nothing but ``fuse``."""

    method: str = "mean_reciprocal_rank"

    def fuse(self, runs: AlignedRuns) -> FloatArray:
        values: FloatArray = np.zeros(runs.ranks.shape)
        np.divide(1.0, runs.ranks, out=values, where=runs.ranks > 0)
        return np.asarray(np.sort(values, axis=0).mean(axis=0))


class ClampedMeanReciprocalRank(MeanReciprocalRank):
    """``mean_reciprocal_rank``: shown only up to 0.5."""

    def display_scores(self, scores: FloatArray) -> FloatArray:
        return np.minimum(scores, 0.5)


def test_a_method_whose_shown_scores_are_others_says_itself_how_it_is_counted() -> None:
    assert ClampedMeanReciprocalRank().engine_form(aligned(DATASETS[0])) is None


def test_a_method_needs_fuse_alone() -> None:
    fusion = MeanReciprocalRank()
    assert (fusion.space(SOURCES), fusion.presets(), fusion.weight_homogeneity) == ((), (), None)
    for dataset in DATASETS:
        runs = aligned(dataset)
        scores = fusion.fuse(runs)
        np.testing.assert_array_equal(fusion.score_terms(runs).scores, scores)
        np.testing.assert_array_equal(fusion.display_scores(scores), scores)
        assert np.isinf(fusion.max_possible(runs)).all()
        form = fusion.engine_form(runs)
        assert isinstance(form, CandidateScores)
        np.testing.assert_array_equal(form.all_scores(runs), scores)
        system = System(name="s", runs=runs.sources, fusion=fusion)
        view = rank_candidates(system, runs)
        np.testing.assert_array_equal(view.positions, positions(scores, runs.offsets))


def test_weights_whose_sum_is_no_number_are_an_error() -> None:
    weights = dict.fromkeys(SOURCES, 1e308)
    lists = {name: {q: {"d1": 2.0, "d2": 1.0} for q in QUERIES} for name in SOURCES}
    with pytest.raises(AlignmentError, match="greater than any number"):
        ranked((lists, {}), {"method": "weighted_sum", "normalize": "min_max", "weights": weights})


@pytest.mark.filterwarnings("error")
def test_scores_as_far_apart_as_numbers_can_be_have_a_softmax() -> None:
    lists = {name: {q: {"d1": 1.7e308, "d2": -1.7e308} for q in QUERIES} for name in SOURCES}
    found = per_query(ranked((lists, {}), {"method": "softmax_rrf"}))
    assert [found["q1"][document][0] for document in ("d1", "d2")] == [1, 2]
