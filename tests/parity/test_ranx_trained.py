"""Trained fusion equals ranx's per document where ranx is right; elsewhere the reason stands.

Both learn from the same six queries and score six others.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from fusion_bench.methods.fuse import Trainable, fusions
from tests.methods.fuse.trained_cases import Lists, make_judgments, make_lists, make_runs
from tests.parity.test_ranx import Ranx, assert_close, by_document

Scores = dict[str, dict[str, float]]
TRAIN = [f"q{q:02}" for q in range(6)]
TEST = [f"q{q:02}" for q in range(6, 12)]
LISTS, JUDGMENTS = make_lists(5, depth=12, even=True), make_judgments(5)


@pytest.fixture(scope="module")
def ranx() -> Ranx:
    return Ranx()


def ranx_scores(
    ranx: Ranx,
    method: str,
    lists: Mapping[str, Lists] = LISTS,
    judgments: Mapping[str, Mapping[str, int]] = JUDGMENTS,
    *,
    train: tuple[Any, ...] = (),
    fuse: tuple[Any, ...] = (),
) -> Scores:
    """What ranx gives the documents of the test queries."""
    module = ranx.module.fusion
    qrels = ranx.module.Qrels({q: dict(judgments[q]) for q in TRAIN if q in judgments})
    known = list(qrels.keys())
    seen = [ranx.run(name, {q: lists[name][q] for q in known}) for name in lists]
    unseen = [ranx.run(name, {q: lists[name][q] for q in TEST}) for name in lists]
    learned = getattr(module, f"{method}_train")(qrels, seen, *train)
    fused = getattr(module, method)(unseen, learned, *fuse)
    return {query: dict(documents) for query, documents in fused.to_dict().items()}


def our_scores(
    config: Mapping[str, Any],
    lists: Mapping[str, Lists] = LISTS,
    judgments: Mapping[str, Mapping[str, int]] = JUDGMENTS,
) -> Scores:
    fusion = fusions.build(dict(config))
    assert isinstance(fusion, Trainable)
    runs = make_runs(lists, judgments)
    view = runs.subset(np.isin(runs.queries, TEST))
    return by_document(view, fusion.fit(runs.subset(np.isin(runs.queries, TRAIN))).fuse(view))


@pytest.mark.parametrize("segments", [1, 3, 5, 20])
def test_prob_fuse(ranx: Ranx, segments: int) -> None:
    theirs = ranx_scores(ranx, "probfuse", train=(segments,))
    assert_close(our_scores({"method": "prob_fuse", "segments": segments}), theirs)


@pytest.mark.parametrize("window", [0, 2, 30])
def test_slide_fuse(ranx: Ranx, window: int) -> None:
    theirs = ranx_scores(ranx, "slidefuse", fuse=(window,))
    assert_close(our_scores({"method": "slide_fuse", "window": window}), theirs)


def test_pos_fuse(ranx: Ranx) -> None:
    assert_close(our_scores({"method": "pos_fuse"}), ranx_scores(ranx, "posfuse"))


def test_map_fuse(ranx: Ranx) -> None:
    assert_close(our_scores({"method": "map_fuse"}), ranx_scores(ranx, "mapfuse"))


def test_bayes_fuse(ranx: Ranx) -> None:
    assert_close(our_scores({"method": "bayes_fuse"}), ranx_scores(ranx, "bayesfuse"))


def test_seg_fuse_on_lists_of_one_segment(ranx: Ranx) -> None:
    lists = make_lists(5, depth=5, even=True)
    ours = our_scores({"method": "seg_fuse", "normalize": "none"}, lists)
    assert_close(ours, ranx_scores(ranx, "segfuse", lists))


# Differences ------------------------------------------------------------------------------------


def test_ranx_takes_the_sizes_of_segments_for_their_ends(ranx: Ranx) -> None:
    # The paper: 10·2^(k−1) − 5 documents in segment k, so that segment 2 is ranks 6 to 20. In ranx
    # segment 2 ends at rank 15.
    documents = [f"d{n}" for n in range(20)]
    ranked = dict(zip(documents, np.arange(20.0, 0.0, -1.0).tolist(), strict=True))
    lists = {"a": dict.fromkeys((*TRAIN, *TEST), ranked)}
    judgments = {q: {"d0": 1, "d6": 1} for q in (*TRAIN, *TEST)}
    ours = our_scores({"method": "seg_fuse", "normalize": "none"}, lists, judgments)
    theirs = ranx_scores(ranx, "segfuse", lists, judgments)
    for place, document in enumerate(documents):
        score = ranked[document] + 1
        chance, their_chance = (
            (1 / 5, 1 / 5) if place < 5 else (1 / 15, 1 / 10 if place < 15 else 0.0)
        )
        assert ours[TEST[0]][document] == pytest.approx(score * chance)
        assert theirs[TEST[0]][document] == pytest.approx(score * their_chance)


def test_ranx_ranks_a_rare_hit_below_no_hit_at_all(ranx: Ranx) -> None:
    # ranx writes .001 for a precision of 0 and leaves smaller precisions: one hit in ranks 501 to
    # 1000 of six queries (1/3000) speaks against a document, and none does not. Ours is at least
    # .001 throughout.
    ranked = {f"d{n}": float(1000 - n) for n in range(1000)}
    lists = {"a": dict.fromkeys((*TRAIN, *TEST), ranked)}
    judgments: dict[str, dict[str, int]] = {q: {"d0": 1} for q in (*TRAIN, *TEST)}
    judgments[TRAIN[0]] = {"d0": 1, "d600": 1}
    theirs = ranx_scores(ranx, "bayesfuse", lists, judgments)[TEST[0]]
    ours = our_scores({"method": "bayes_fuse"}, lists, judgments)[TEST[0]]
    assert theirs["d600"] == pytest.approx(np.log(1 / 2999))
    assert theirs["d600"] < theirs["d300"] == pytest.approx(np.log(0.001 / 0.999))
    assert ours["d600"] == ours["d300"] == pytest.approx(np.log(0.001 / 0.999))


def test_ranx_has_no_odds_beyond_rank_1000(ranx: Ranx) -> None:
    # ranx reads behind the end of its table there (compiled, whatever stands in memory); ours
    # takes the last segment.
    ranked = {f"d{n}": float(1001 - n) for n in range(1001)}
    lists = {"a": dict.fromkeys((*TRAIN, *TEST), ranked)}
    judgments = {q: {"d0": 1} for q in (*TRAIN, *TEST)}
    with pytest.raises(IndexError):
        ranx_scores(ranx, "bayesfuse", lists, judgments)
    ours = our_scores({"method": "bayes_fuse"}, lists, judgments)[TEST[0]]
    assert ours["d1000"] == ours["d999"]


def test_ranx_scores_what_it_learned_from(ranx: Ranx) -> None:
    fused = ranx.module.fusion.posfuse(
        [ranx.run(name, LISTS[name]) for name in LISTS],
        ranx.module.fusion.posfuse_train(
            ranx.module.Qrels({q: dict(JUDGMENTS[q]) for q in JUDGMENTS}),
            [ranx.run(name, LISTS[name]) for name in LISTS],
        ),
    )
    assert set(fused.keys()) == set(JUDGMENTS)  # nothing tells it that it saw all of these
    runs = make_runs(LISTS, JUDGMENTS)
    fusion = fusions.build("pos_fuse")
    assert isinstance(fusion, Trainable)
    with pytest.raises(Exception, match="it was fitted on"):
        fusion.fit(runs).fuse(runs)
