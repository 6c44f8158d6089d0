"""Any system in any engine: an answer or a refusal, its changes, its files."""

import ast
import json
import runpy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import fusion_bench as fb
from fusion_bench.data.alignment import align
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.run import Run
from fusion_bench.engines.export import (
    ListChanges,
    Precision,
    choose_class,
    find_changes,
    rank_lists,
    suggest_engine,
    translate_system,
)
from fusion_bench.errors import ConfigError, UnknownNameError
from fusion_bench.evaluation.export_records import write_files
from fusion_bench.experiment.dialect import Dialect, dialects
from fusion_bench.experiment.system import System
from fusion_bench.methods.fuse import fusions
from tests.engines.reading import read_system

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
        again = read_system(dialect, configuration.files)
        assert sorted(again.runs) == sorted(translation.system.runs)


@pytest.mark.parametrize("name", ["elasticsearch", "opensearch"])
@pytest.mark.parametrize(("top_k", "is_noted"), [(None, True), (10, False)])
def test_a_window_that_cuts_the_fused_list_is_noted(
    name: str, top_k: int | None, is_noted: bool
) -> None:
    system = System("s", ["bm25", "dense"], top_k=top_k)
    reasons = translate_system(ENGINES[name], system, ROLES).reasons
    assert any("fused documents" in text for text in reasons) is is_noted


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
    assert set(read_system(dialect, configuration.files).runs) == set(HOSTILE)


def test_names_and_query_types_have_to_be_known() -> None:
    translation = translate_system(ENGINES["elasticsearch"], System("s", ["a", "b"]), {})
    assert translation.system is not None
    weighted = System("s", ["a", "b"], {"method": "rrf", "weights": {"keyword": 2.0}})
    with pytest.raises(ConfigError, match=r"system 's': .*keyword"):
        translate_system(ENGINES["elasticsearch"], weighted, {})
    system = System("s", ["a", "b"], {"method": "rrf", "k": {"by_query_type": {"hybrid": 3}}})
    assert choose_class(system, None, None) is system
    assert choose_class(system, "hybrid", None).query_classes is None
    with pytest.raises(UnknownNameError, match=r"'local'.*known: hybrid"):
        choose_class(system, "local", None)


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


def compare(
    first: Mapping[str, float],
    second: Mapping[str, float],
    *,
    top: int = 10,
    precision: Precision = "float32",
    cut: int | None = None,
) -> ListChanges:
    """Compare two lists of one query, document → score, each the only list of its system."""
    lists = {"a": first, "b": second}
    runs = [Run.from_dict(name, {"q": dict(scores)}) for name, scores in lists.items()]
    aligned = align(Qrels.from_dict({"q": {"d1": 1}}), runs)
    fusion = {"method": "weighted_score", "normalize": "none"}
    systems = [System(name, [name], fusion, top_k=k) for name, k in (("a", None), ("b", cut))]
    before, after = (rank_lists(system, aligned, top) for system in systems)
    return find_changes(before, after, precision)


@pytest.mark.parametrize(
    ("second", "top", "changed", "other_set", "tied"),
    [
        ({"d1": 3.0, "d2": 2.0, "d3": 1.0}, 10, False, False, False),
        ({"d1": 9.0, "d2": 8.0, "d3": 7.0}, 10, False, False, False),
        ({"d2": 3.0, "d1": 2.0, "d3": 1.0}, 10, True, False, False),
        ({"d1": 3.0, "d2": 2.0, "d4": 1.0}, 10, True, True, False),
        ({"d1": 3.0, "d3": 2.0, "d2": 1.0}, 1, False, False, False),
        ({"d1": 3.0, "d3": 2.0, "d2": 1.0}, 2, True, True, False),
        ({"d1": 3.0, "d2": 2.0}, 10, True, True, False),
        ({"d2": 3.0000001, "d1": 3.0, "d3": 1.0}, 10, False, False, True),
        ({"d2": 3.00001, "d1": 3.0, "d3": 1.0}, 10, True, False, False),
    ],
)
def test_one_query(
    second: dict[str, float], top: int, changed: bool, other_set: bool, tied: bool
) -> None:
    changes = compare({"d1": 3.0, "d2": 2.0, "d3": 1.0}, second, top=top)
    assert changes.is_changed.tolist() == [changed]
    assert changes.is_other_set.tolist() == [other_set]
    assert changes.is_tied.tolist() == [tied]


def test_ties_by_the_precision_and_documents_cut_off() -> None:
    first, second = {"d1": 2.0, "d2": 1.0}, {"d2": 1.0 + 1e-8, "d1": 1.0}
    assert compare(first, second).is_tied.tolist() == [True]
    assert compare(first, second, precision="float64").is_changed.tolist() == [True]
    scores = {"d1": 3.0, "d2": 2.0}
    assert compare(scores, scores, cut=1).is_other_set.tolist() == [True]
    assert not compare(scores, scores, cut=2).is_changed.any()


def test_all_are_checked_before_the_first_is_written(tmp_path: Path) -> None:
    (tmp_path / "b.json").write_text("mine")
    with pytest.raises(ConfigError, match=r"b\.json is .*--force"):
        write_files({"a.json": "1", "b.json": "2"}, tmp_path)
    assert not (tmp_path / "a.json").exists()
    written = write_files({"a.json": "1", "b.json": "2"}, tmp_path, force=True)
    assert [path.read_text() for path in written] == ["1", "2"]
    (tmp_path / "c.json").mkdir()
    with pytest.raises(ConfigError, match="is a folder"):
        write_files({"c.json": "1"}, tmp_path, force=True)
    [path] = write_files({"config/a.yml": "x"}, tmp_path / "new")
    assert path == tmp_path / "new/config/a.yml"


@pytest.mark.parametrize("name", ["../a", "/a", "a/../../b", "..\\a", ""])
def test_no_name_leads_out_of_the_folder(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="outside the folder"):
        write_files({name: "1"}, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("default", [None, 3.0, 1e12])
def test_without_a_search_api_chromas_lists_are_fused_alike_in_python(
    default: float | None, tmp_path: Path
) -> None:
    fusion = {"method": "rrf", "k": 5, "weights": {"a": 1.0, "b": 2.5}, "default": default}
    system = System("s", ["a", "b"], dialect="chroma", fusion=fusion, top_k=4)
    configuration = ENGINES["chroma"].write(system)
    assert "local.py" in " ".join(configuration.notes)
    (path,) = write_files({"local.py": configuration.files["local.py"]}, tmp_path)
    lists = {"a": ["d1", "d2", "d3", "d4"], "b": ["d5", "d3", "d1"]}
    runs = {name: {"q": {d: 9.0 - n for n, d in enumerate(ids)}} for name, ids in lists.items()}
    fused = fb.fuse(runs, system).to_dict()["q"]
    assert runpy.run_path(str(path))["fuse"](lists) == list(fused)
    assert len(fused) == (2 if default is None else 4)
