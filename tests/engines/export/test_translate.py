"""Any system in any engine: an answer or a refusal, and names that cannot break out."""

from __future__ import annotations

import ast
import json
from typing import Any

import pytest

from fusion_bench.engines.export import choose_class, read_back, suggest_engine, translate_system
from fusion_bench.errors import ConfigError, UnknownNameError
from fusion_bench.experiment.dialect import Dialect, dialects
from fusion_bench.experiment.system import System
from fusion_bench.methods.fuse import fusions

ENGINES = dialects.load_built_in()
EVERY = pytest.mark.parametrize("dialect", ENGINES.values(), ids=lambda dialect: dialect.name)
KEYWORD, VECTOR = frozenset({"keyword"}), frozenset({"semantic", "question"})
ROLES = {"bm25": KEYWORD, "dense": VECTOR}
HOSTILE = ("a\n\"\"\"'''; DROP TABLE x; -- */ ${x} <b>", "\u202e\x1b[31m # \\ ` {y} ユ")


def check_syntax(name: str, text: str) -> None:
    if name.endswith(".json"):
        json.loads(text)
    if name.endswith(".py"):
        ast.parse(text)


@EVERY
def test_every_method_has_an_answer(dialect: type[Dialect]) -> None:
    for method in fusions.load_built_in():
        system = System(method, ["bm25", "dense"], method)
        translation = translate_system(dialect, system, ROLES)
        if translation.system is None:
            assert translation.reasons
            continue
        configuration = dialect.write(translation.system)
        again = read_back(dialect, configuration, "again")
        assert sorted(again.runs) == sorted(translation.system.runs)


@pytest.mark.parametrize("name", ["elasticsearch", "opensearch"])
@pytest.mark.parametrize(("top_k", "is_noted"), [(None, True), (10, False)])
def test_a_window_that_cuts_the_fused_list_is_noted(
    name: str, top_k: int | None, is_noted: bool
) -> None:
    system = System("s", ["bm25", "dense"], top_k=top_k)
    reasons = translate_system(ENGINES[name], system, ROLES).reasons
    assert any("fused documents are returned" in text for text in reasons) is is_noted


@EVERY
def test_the_methods_of_other_engines_have_an_answer(dialect: type[Dialect]) -> None:
    for engine, other in ENGINES.items():
        for method in other.methods:
            name = method.model_fields["method"].default
            system = System(f"{engine} {name}", ["bm25", "dense"], dialect=engine, fusion=name)
            translation = translate_system(dialect, system, ROLES)
            assert (translation.system is None) == (translation.fidelity == "unsupported")


@EVERY
@pytest.mark.parametrize("fusion", ["rrf", "convex"])
def test_hostile_names_are_data(dialect: type[Dialect], fusion: str) -> None:
    roles = dict(zip(HOSTILE, (KEYWORD, VECTOR), strict=True))
    translation = translate_system(dialect, System(HOSTILE[0], HOSTILE, fusion), roles)
    if translation.system is None:
        return
    configuration = dialect.write(translation.system)
    for name, text in configuration.files.items():
        check_syntax(name, text)
    assert set(read_back(dialect, configuration, "again").runs) == set(HOSTILE)


def test_roles_that_are_not_known_are_none() -> None:
    translation = translate_system(ENGINES["elasticsearch"], System("s", ["a", "b"]), {})
    assert translation.system is not None
    weighted = System("s", ["a", "b"], {"method": "rrf", "weights": {"keyword": 2.0}})
    with pytest.raises(ConfigError, match=r"system 's': .*keyword"):
        translate_system(ENGINES["elasticsearch"], weighted, {})


@pytest.mark.parametrize(
    ("settings", "engine"),
    [
        ({"fusion": "rrf"}, "elasticsearch"),
        ({"fusion": {"method": "weighted_score", "normalize": "z_score"}}, "opensearch"),
        ({"fusion": {"method": "rrf", "weights": {"keyword": 2.0}}}, "elasticsearch"),
        ({"dialect": "qdrant"}, "qdrant"),
        ({"fusion": "pos_fuse"}, None),
    ],
)
def test_an_engine_is_suggested_that_can_do_it(
    settings: dict[str, Any], engine: str | None
) -> None:
    suggested = suggest_engine(System("s", ["a", "b"], **settings))
    assert (None if suggested is None else suggested.name) == engine


def test_nothing_is_suggested_for_one_list() -> None:
    assert suggest_engine(System("s", ["a"])) is None


def test_a_query_type_has_to_be_known() -> None:
    system = System("s", ["a", "b"], {"method": "rrf", "k": {"by_query_type": {"hybrid": 3}}})
    assert choose_class(system, None, None) is system
    assert choose_class(system, "hybrid", None).query_classes is None
    with pytest.raises(UnknownNameError, match=r"'local'.*known: hybrid"):
        choose_class(system, "local", None)
