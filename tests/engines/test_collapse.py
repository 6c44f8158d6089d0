"""Collapsing to documents in an engine: what a request can say, and what is said where none can."""

from collections.abc import Mapping
from typing import Any

import pytest

from fusion_bench.experiment.dialect import Translation, dialects
from fusion_bench.experiment.system import System
from tests.engines.cases import ROLES
from tests.engines.reading import read_system

ENGINES = dialects.load_built_in()
MAX = {"by": "parent", "score": "max"}
REPLACE = {"method": "replace", "reranker": "ce", "depth": 20, "tail": "drop"}


def translate(engine: str, collapse: Mapping[str, Any], **settings: object) -> Translation:
    keys = {"fusion": {"method": "rrf", "k": 59}, "depth": 50, "top_k": 10, **settings}
    system = System.model_validate(
        {"name": "s", "runs": ["bm25", "dense"], "collapse": collapse, **keys}
    )
    return ENGINES[engine].translate(system, ROLES)


@pytest.mark.parametrize(
    ("engine", "keep", "fidelity"),
    [
        ("elasticsearch", 1, "approximate"),
        ("elasticsearch", 3, "approximate"),
        ("opensearch", 1, "approximate"),
        ("pgvector", 1, "exact"),
        ("pgvector", 4, "exact"),
        ("weaviate", 3, "approximate"),
    ],
)
def test_a_request_keeps_the_best_chunks_of_each_document(
    engine: str, keep: int, fidelity: str
) -> None:
    collapse = {"by": {"field": 'do"c'}, "keep": keep}
    translation = translate(engine, collapse)
    assert translation.fidelity == fidelity
    # Only the first chunks of a window are collapsed, unless the statement has all of them.
    window = any("the first 50 fused chunks" in reason for reason in translation.reasons)
    assert window == (fidelity == "approximate")
    assert translation.system is not None
    configuration = ENGINES[engine].write_by_role(translation.system, ROLES)
    again = read_system(ENGINES[engine], configuration.files)
    assert again.collapse == translation.system.collapse
    assert again.top_k == translation.system.top_k == 10
    assert any(note.startswith('do"c: the field or column') for note in configuration.notes)
    sorts = any(note.startswith("Sort the chunks") for note in configuration.notes)
    assert sorts == (keep > 1 and engine != "pgvector")


@pytest.mark.parametrize("collapse", [MAX, {**MAX, "score": "sum"}, {**MAX, "orphans": "own"}])
@pytest.mark.parametrize("engine", sorted(ENGINES))
def test_every_engine_writes_it_or_says_who_has_to_collapse(
    engine: str, collapse: Mapping[str, Any]
) -> None:
    translation = translate(engine, collapse)
    if translation.system is None:  # fuses nothing like it
        return
    written = engine in {"elasticsearch", "opensearch", "pgvector", "weaviate"} and collapse == MAX
    told = [reason for reason in translation.reasons if "in the application, and cut" in reason]
    assert len(told) == (not written)
    assert translation.system.collapse is not None
    configuration = ENGINES[engine].write_by_role(translation.system, ROLES)
    again = read_system(ENGINES[engine], configuration.files)
    assert (again.collapse is not None) == written
    if not written:  # all chunks are fetched
        assert translation.fidelity != "exact"
        assert (translation.system.top_k or 50) >= 50 or engine == "semche"


def test_chunks_are_fused_before_an_engine_collapses_them() -> None:
    translation = translate("pgvector", {**MAX, "place": "each list"})
    assert translation.system is not None
    assert translation.system.collapse is not None
    assert translation.system.collapse.place == "fused"
    [reason] = translation.reasons
    assert reason.startswith("collapse.place: fused")


def test_rows_of_one_id_are_merged_by_no_engine() -> None:
    collapse = {"by": "id", "place": "each list", "score": "max"}
    for engine in ("elasticsearch", "pgvector", "chroma"):
        translation = translate(engine, collapse)
        assert translation.system is None
        assert "collapse: by: id" in translation.reasons[0]


@pytest.mark.parametrize(
    ("engine", "place", "blend", "expected"),
    [
        ("elasticsearch", "fused", REPLACE, "reranked"),
        ("opensearch", "fused", REPLACE, "reranked"),
        ("opensearch", "reranked", REPLACE, "reranked"),
        ("pgvector", "reranked", REPLACE, "fused"),  # the application reranks documents
        ("pgvector", "reranked", "none", "reranked"),  # both are one without a reranker
        ("qmd", "fused", {"method": "position_aware", "reranker": "ce"}, "reranked"),
    ],
)
def test_the_place_is_the_one_that_the_engine_has(
    engine: str, place: str, blend: object, expected: str
) -> None:
    translation = translate(engine, {**MAX, "place": place}, blend=blend)
    assert translation.system is not None
    assert translation.system.collapse is not None
    assert translation.system.collapse.place == expected
    told = f"collapse.place: {expected} instead of {place}" in translation.reasons
    assert told == (place != expected)


def test_opensearch_collapses_between_the_reranker_and_the_cut() -> None:
    translation = translate("opensearch", {**MAX, "place": "reranked"}, blend=REPLACE)
    assert translation.system is not None
    files = ENGINES["opensearch"].write_by_role(translation.system, ROLES).files
    pipeline = files["search-pipeline.json"]
    order = [pipeline.index(f'"{step}"') for step in ("rerank", "collapse", "truncate_hits")]
    assert order == sorted(order)
    assert '"size": 20' in files["search.json"]  # as many as the reranker reads
