"""What every dialect promises, and docs/reference/engines.md says of it."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from fusion_bench.data.aligned_runs import Ties
from fusion_bench.data.alignment import align
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.run import Run
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.dialect import Dialect, dialects
from fusion_bench.experiment.system import System
from fusion_bench.ranking import system_ranking as ranking
from tests.engines.cases import ROLES, ranked_lists

EVERY = pytest.mark.parametrize("dialect", dialects.load_built_in().values(), ids=lambda d: d.name)


@EVERY
def test_says_what_it_is_as_does_its_section(dialect: type[Dialect]) -> None:
    assert dialect.title
    assert dialect.version
    assert dialect.source.startswith("http")
    assert dialect.rank_base in {0, 1, None}
    for method in dialect.methods:
        assert method.formula
        assert method.source
    text = section(dialect)
    assert f"Dialect `{dialect.name}`" in text
    assert dialect.version in text
    assert f"checked {dialect.checked}" in text
    assert dialect.source in text


@EVERY
def test_a_system_of_each_method_is_built_from_what_it_writes(dialect: type[Dialect]) -> None:
    for method in dialect.methods:
        name = method.model_fields["method"].default
        system = System("s", ["a", "b"], dialect=dialect.name, fusion=name)
        assert type(system.fusion) is method
        written = system.model_dump(mode="json")
        assert written["dialect"] == dialect.name
        again = System.model_validate(written)
        assert again == system
        assert type(again.fusion) is method


def test_the_first_method_and_the_engines_defaults_hold_where_nothing_is_said() -> None:
    system = System("s", ["a", "b"], dialect="elasticsearch")
    assert system.fusion.model_dump() == {"method": "rrf", "rank_constant": 60, "weights": {}}
    assert (system.depth, system.top_k) == (10, 10)
    wide = System("s", ["a", "b"], dialect="elasticsearch", depth=100, top_k=None)
    assert (wide.depth, wide.top_k) == (100, None)
    assert "dialect" not in System("s", ["a"]).resolved_config


LISTS = {"dense": {"q": {"a": 0.5}}, "bm25": {"q": {"b": 0.5}}}


@pytest.mark.parametrize("ties", ["trec", "first_seen"])
@EVERY
def test_ties_are_broken_as_the_engine_breaks_them(dialect: type[Dialect], ties: Ties) -> None:
    sources = [Run.from_dict(name, run, roles=ROLES[name]) for name, run in LISTS.items()]
    runs = align(Qrels.from_dict({"q": {"a": 1}}), sources, ties=ties)
    orders = {"trec": ["b", "a"], "first_seen": ["a", "b"]}  # by id, or by the first list
    for method in dialect.methods:
        name = method.model_fields["method"].default
        system = System("s", list(LISTS), dialect=dialect.name, fusion=name)
        found = ranked_lists(system, runs)["q"]
        if len(set(found.values())) == 1 and len(found) == 2:
            assert list(found) == orders[method.ties or ties]
            _, lists = ranking.ranked_lists(system, runs)
            plain = ranking.rank_candidates(system, runs)
            assert lists.positions.tolist() == plain.ranks_before_cut.tolist()


def test_stable_sorts_keep_the_order_of_appearance() -> None:
    known = {
        dialect.name: [method.ties for method in dialect.methods]
        for dialect in dialects.load_built_in().values()
    }
    for name in ("conv-07-05", "adr-005", "qmd", "langchain", "llamaindex", "haystack", "chroma"):
        assert set(known[name]) == {"first_seen"}, name
    assert known["elasticsearch"] == ["first_seen", None]
    assert set(known["pgvector"]) == {"trec"}


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"dialect": "elastisearch"}, r"s\.dialect: unknown dialect"),
        ({"dialect": {"name": "qdrant"}}, r"s\.dialect: the name"),
        ({"dialect": "elasticsearch", "fusion": "borda"}, "fusion method of"),
        ({"dialect": "elasticsearch", "fusion": {"k": 3}}, r"fusion\.k: unknown key 'k'"),
        (
            {"dialect": "elasticsearch", "fusion": {"rank_constant": 0}},
            r"fusion\.rank_constant:",
        ),
    ],
)
def test_what_a_dialect_does_not_know(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        System("s", ["a", "b"], **keys)


PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "engines.md").read_text(encoding="utf-8")


def section(dialect: type[Dialect]) -> str:
    parts = re.split(r"^###? (.+)$", PAGE, flags=re.MULTILINE)
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    assert dialect.title in sections, (
        f"docs/reference/engines.md has no section '## {dialect.title}'"
    )
    return str(sections[dialect.title])


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


def systems(dialect: type[Dialect]) -> list[dict[str, Any]]:
    """The systems of a section's blocks, and of their lines ``# or fusion: …``."""
    written = []
    for block in blocks(section(dialect), "yaml"):
        system = yaml.safe_load(block)
        others = re.findall(r"^# or (fusion: .*)$", block, flags=re.MULTILINE)
        written += [system, *({**system, **yaml.safe_load(other)} for other in others)]
    return written


@EVERY
def test_its_yaml_spells_out_the_defaults(dialect: type[Dialect]) -> None:
    written = systems(dialect)
    for system in written:
        assert System.model_validate({"name": "s", **system}).dialect == dialect.name
    keys = {**written[0], "runs": ["bm25", "dense"], "name": "s"}
    plain = System.model_validate({"name": "s", "dialect": dialect.name, "runs": ["bm25", "dense"]})
    assert System.model_validate(keys) == plain
    assert set(dialect.defaults) <= set(written[0])
    by_method = {system["fusion"]["method"]: system["fusion"] for system in reversed(written)}
    for method in dialect.methods:
        defaults = method.model_validate({}).model_dump(mode="json")
        spelled = by_method[defaults["method"]]
        assert set(spelled) == {key for key, value in defaults.items() if value is not None}
        assert method.model_validate(spelled).model_dump(mode="json") == defaults
