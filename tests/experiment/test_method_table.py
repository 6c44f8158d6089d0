"""The table of methods: in the terminal, in the docs, and what aliases become."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from docs.website.page import list_pages
from fusion_bench.config.models import parse_model
from fusion_bench.config.registry import MethodRegistry
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.experiment import Experiment
from fusion_bench.experiment.method_table import (
    describe_fusion_alias,
    list_alias_notes,
    list_aliases,
    list_methods,
)
from fusion_bench.experiment.overrides import MOST_SYSTEMS
from fusion_bench.measures.aliases import ALIASES, resolve_alias
from fusion_bench.methods.blend import blends
from fusion_bench.methods.fuse import fusions
from fusion_bench.methods.normalize import normalizers


def test_every_method_is_listed_with_its_formula() -> None:
    found = list_methods()
    registries: dict[str, MethodRegistry[Any]] = {
        "fusion": fusions,
        "blend": blends,
        "normalize": normalizers,
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


# ── what the aliases of an experiment became


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


# ── ``docs/reference/formats.md`` names every alias, with what it stands for


FORMATS = (Path(__file__).parents[2] / "docs" / "reference" / "formats.md").read_text(
    encoding="utf-8"
)


def rows(title: str) -> list[list[list[str]]]:
    """The cells of a section's table, each as the names in it."""
    section = FORMATS.split(f"### {title}\n")[1].split("\n### ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| `")]
    return [[re.findall(r"`([^`]+)`", cell) for cell in line.split("|")[1:-1]] for line in lines]


def test_every_name_of_a_measure() -> None:
    documented = {name for names, _ in rows("Names of measures") for name in names}
    assert documented - {"ndcg"} == set(ALIASES)  # ndcg differs by its capitals alone
    for names, canonical in rows("Names of measures"):
        assert {resolve_alias(name) for name in names} == set(canonical)


@pytest.mark.parametrize("alias", list_aliases())
def test_every_name_of_a_fusion_method(alias: str) -> None:
    [cells] = [cells for cells in rows("Names of fusion methods") if alias in cells[0]]
    meant = list_aliases()[alias]
    assert [name for cell in cells[1:] for name in cell] == [*meant.values()]


def test_the_most_systems_of_a_sweep() -> None:
    assert f"may make {MOST_SYSTEMS} systems at most" in FORMATS


# ── the table of methods that people read names every method there is


ROOT = Path(__file__).parent.parent.parent
DOCS = list_pages()
PAGES = [ROOT / "README.md", *DOCS]


def listed_methods(page: Path, kind: str) -> list[str]:
    """Names in the second column of a page's rows that begin with the kind."""
    rows = re.findall(rf"^\| {kind} \|([^|]*)\|", page.read_text(encoding="utf-8"), re.MULTILINE)
    return re.findall(r"`([^`]+)`", "".join(rows))


@pytest.mark.parametrize(
    ("kind", "registry"), [("fusion", fusions), ("blend", blends), ("normalize", normalizers)]
)
def test_one_page_lists_every_method_once(kind: str, registry: MethodRegistry[Any]) -> None:
    [(page, names)] = [
        (page.name, names) for page in PAGES if (names := listed_methods(page, kind))
    ]
    wanted = sorted(registry.load_built_in())
    assert sorted(names) == wanted, (
        f"the table of methods in {page}: rows '| {kind} | `NAME` | …' must name every method "
        "of 'fusion-bench methods' once"
    )
