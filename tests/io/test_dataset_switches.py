"""``when`` in a dataset.yaml, from the file to the numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fusion_bench.checks.dataset_facts import dataset_notices, describe_dataset
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.experiment import read_experiment
from fusion_bench.explain.explanation import explain_query
from fusion_bench.io.dataset import load_dataset
from fusion_bench.io.dataset_cache import Cache
from tests import tiny
from tests.tiny import DATASET, EXPERIMENT, edit

QUERIES = "datasets/tiny/queries.jsonl"
INTENTS = """\
{"id": "q1", "intent": "meta", "level": 2, "easy": true, "tags": ["x"]}
{"id": "q2", "intent": "rules", "level": 2.5, "easy": false, "note": null}
{"id": "q3", "intent": "meta", "level": 2}
{"id": "q4"}
"""


def make(root: Path, when: str, queries: str = INTENTS) -> Path:
    tiny.make(root, queries=queries)
    edit(root, DATASET, "roles: [keyword]", f"roles: [keyword], when: {when}")
    return root / DATASET


@pytest.mark.parametrize(
    ("when", "on"),
    [
        ("{intent: [meta]}", ["q1", "q3"]),
        ("{intent: meta}", ["q1", "q3"]),
        ("{intent: [meta, rules]}", ["q1", "q2", "q3"]),
        ("{level: [2]}", ["q1", "q3"]),
        ("{level: 2.5}", ["q2"]),
        ("{easy: true}", ["q1"]),
        ("{intent: meta, easy: [true, false]}", ["q1"]),
        ("{intent: [other]}", []),
    ],
)
def test_a_run_answers_the_queries_for_which_it_is_on(
    when: str, on: list[str], tmp_path: Path
) -> None:
    dataset = load_dataset(make(tmp_path, when))
    assert [query for query, ranked in dataset.runs["a"].to_dict().items() if ranked] == on
    runs = dataset.aligned(["a", "b"])
    assert [query for query, off in zip(runs.queries, runs.off[0], strict=True) if not off] == on
    assert not runs.off[1].any()


@pytest.mark.parametrize(
    ("when", "message"),
    [
        ("{intnet: [meta]}", r"yaml:5: runs\.a\.when: unknown field of the queries 'intnet'"),
        ("{tags: [x]}", "field 'tags' of"),
        ("{text: [x]}", "'text' is different"),
        ("{intent: []}", r"runs\.a\.when\.intent: .*at least 1 item"),
        ("{}", "at least 1 item"),
        ("{intent: [meta, meta]}", "'meta' is listed"),
        ("{intent: [{a: b}]}", "text is needed"),
        ("[meta]", "a mapping of"),
    ],
)
def test_bad_conditions_are_refused(when: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=message):
        load_dataset(make(tmp_path, when))


def test_a_condition_needs_queries(tmp_path: Path) -> None:
    path = make(tmp_path, "{intent: [meta]}")
    edit(tmp_path, DATASET, "queries: queries.jsonl\n", "")
    with pytest.raises(ConfigError, match=r"dataset\.yaml:4:.*runs\.a\.when:"):
        load_dataset(path)


def test_a_rerank_list_has_no_condition(tmp_path: Path) -> None:
    tiny.make(tmp_path)
    edit(tmp_path, DATASET, "score_space: unit", "score_space: unit, when: {intent: [meta]}")
    with pytest.raises(ConfigError, match="unknown key 'when'"):
        load_dataset(tmp_path / DATASET)


def test_a_fingerprint_tells_conditions_and_intents(tmp_path: Path) -> None:
    prints = {load_dataset(tiny.make(tmp_path / "0", queries=INTENTS) / DATASET).fingerprint}
    for n, when in enumerate(("{intent: [meta]}", "{intent: [rules]}", "{level: [2.5]}"), start=1):
        prints.add(load_dataset(make(tmp_path / str(n), when)).fingerprint)
    assert len(prints) == 3  # rules and level 2.5 are one query
    other = INTENTS.replace("rules", "faq")
    prints.add(load_dataset(make(tmp_path / "4", "{intent: [meta]}", other)).fingerprint)
    assert len(prints) == 4


def test_the_cache_keeps_alignments_apart(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache", max_bytes=10**7)
    path = make(tmp_path, "{intent: [meta]}")
    for when in ("[meta]", "[rules]"):
        for _ in range(2):
            dataset = load_dataset(path, cache=cache)
            stored = dataset.aligned(["a", "b"])
            fresh = load_dataset(path, cache=False).aligned(["a", "b"])
            assert np.array_equal(stored.ranks, fresh.ranks)
            assert np.array_equal(stored.off, fresh.off)
        if when == "[meta]":
            edit(tmp_path, DATASET, "{intent: [meta]}", "{intent: [rules]}")


def test_the_description_counts_the_queries_that_switch_it_on(tmp_path: Path) -> None:
    dataset = load_dataset(make(tmp_path, "{intent: [meta]}"))
    facts: dict[str, Any] = describe_dataset(dataset)
    first, second = facts["runs"]
    assert (first["when"], first["on_queries"], first["queries"]) == ("intent: meta", 2, 2)
    assert (second["when"], second["on_queries"]) == (None, 4)
    assert any("for 2 of 4" in text for text in dataset_notices(dataset))
    never = load_dataset(make(tmp_path / "never", "{intent: [other]}"))
    assert any("no judged query" in text for text in dataset_notices(never))


def test_an_explanation_says_why_a_source_is_off(tmp_path: Path) -> None:
    make(tmp_path, "{intent: [meta]}")
    experiment, source = read_experiment(tmp_path / EXPERIMENT)
    folders = [tmp_path / "datasets"]
    explanation = explain_query(experiment, source, "q2", folders=folders)
    assert explanation.switched_off == {"a": "intent is rules"}
    assert {term.source for trace in explanation.traces for term in trace.terms} == {"b"}
    on = explain_query(experiment, source, "q1", folders=folders)
    assert on.switched_off == {}
