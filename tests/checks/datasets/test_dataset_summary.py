"""What a dataset holds, and what is worth knowing of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from fusion_bench.checks.dataset_facts import dataset_notices, describe_dataset, unjudged_shares
from fusion_bench.errors import AlignmentError
from fusion_bench.io.dataset import load_dataset
from tests import tiny
from tests.io.test_outputs import beside
from tests.tiny import DATASET, edit


def test_a_description_by_hand(tmp_path: Path) -> None:
    dataset = load_dataset(tiny.make(tmp_path) / DATASET)
    facts = describe_dataset(dataset)
    assert facts["judged_queries"] == 4
    assert facts["grades"] == {"0": 1, "1": 3, "2": 1}
    assert facts["splits"] == {"dev": 1, "test": 3}
    assert facts["types"] == {"global": 1, "local": 2, "relationship": 1}
    assert facts["groups"] == 3
    assert facts["fingerprint"] == dataset.fingerprint
    assert facts["runs"] == [
        {
            "name": "a",
            "roles": ["keyword"],
            "queries": 4,
            "median_depth": 2,
            "lowest_score": 2.0,
            "highest_score": 9.0,
        },
        {
            "name": "b",
            "roles": ["question", "semantic"],
            "queries": 4,
            "median_depth": 1,
            "lowest_score": 0.2,
            "highest_score": 0.9,
        },
    ]
    assert facts["rerank_lists"] == [
        {
            "name": "r",
            "roles": [],
            "queries": 4,
            "median_depth": 2,
            "lowest_score": 0.1,
            "highest_score": 0.9,
            "score_space": "unit",
        }
    ]


def test_without_queries_there_is_nothing_to_count(tmp_path: Path) -> None:
    root = tiny.make(tmp_path)
    edit(root, DATASET, "queries: queries.jsonl\n", "")
    facts = describe_dataset(load_dataset(root / DATASET))
    assert (facts["splits"], facts["types"], facts["groups"]) == ({}, {}, 0)


def test_a_list_of_which_nothing_is_left_is_described(tmp_path: Path) -> None:
    root = tiny.make(tmp_path, a="q1 Q0 d1 1 0 a\n")
    edit(root, DATASET, "roles: [keyword]", "drop_zero_scores: true")
    runs = describe_dataset(load_dataset(root / DATASET))["runs"]
    assert isinstance(runs, list)
    assert runs[0]["lowest_score"] is runs[0]["highest_score"] is None
    assert runs[0]["median_depth"] == 0


def test_a_clean_dataset_needs_no_notice(tmp_path: Path) -> None:
    assert found(tiny.make(tmp_path)) == []


def test_near_duplicate_queries_are_noticed(tmp_path: Path) -> None:
    [notice] = dataset_notices(load_dataset(tiny.make(tmp_path) / DATASET))
    assert notice.startswith("3 of 4 queries ")


def found(root: Path) -> list[str]:
    edit(root, DATASET, "name: tiny\n", "name: tiny\ngroups: declared\n")
    return dataset_notices(load_dataset(root / DATASET))


def test_what_is_allowed_but_worth_knowing(tmp_path: Path) -> None:
    root = tiny.make(tmp_path)
    edit(root, "datasets/tiny/a.trec", "q3 Q0 d1 1 5 a\n", "q9 Q0 d1 1 0 a\nq9 Q0 d1 2 0 a\n")
    edit(root, "datasets/tiny/r.trec", "q4 Q0 d4 1 0.7 r\nq4 Q0 d5 2 0.4 r\n", "")
    edit(root, DATASET, "roles: [keyword]", "roles: [keyword], on_duplicate: best_rank")
    edit(root, "datasets/tiny/qrels.txt", "q2 0 d3 2", "q2 0 d3 0")
    notices = found(root)
    assert len(notices) == 6
    for notice, part in zip(
        notices,
        (
            "a has no result for 1 judged query",
            "'q9'",
            "a has 2 rows with score 0",
            "r has no result for 1 judged query",
            "a had 1 duplicate row",
            "1 judged query without a relevant document",
        ),
        strict=True,
    ):
        assert part in notice


def test_the_unjudged_share_by_hand(tmp_path: Path) -> None:
    root = tiny.make(tmp_path)
    # of a: d8 and d5, of b: d4 (for q2) and d9
    shares = unjudged_shares(load_dataset(root / DATASET))
    assert shares == {"a": pytest.approx(2 / 7), "b": pytest.approx(2 / 6)}
    edit(root, DATASET, "name: tiny\n", "name: tiny\njudgments: complete\n")
    assert unjudged_shares(load_dataset(root / DATASET)) == {"a": 0, "b": 0}


def test_relevant_is_what_the_dataset_calls_relevant(tmp_path: Path) -> None:
    root = tiny.make(tmp_path)
    edit(root, DATASET, "name: tiny\n", "name: tiny\nbinary_relevance: 2\n")
    [note] = found(root)
    assert note.startswith("3 judged queries ")


@pytest.mark.parametrize("name", ["a", "r"])
def test_a_list_of_another_dataset_is_refused(name: str, tmp_path: Path) -> None:
    root = tiny.make(tmp_path, **{name: "x Q0 d1 1 0.5 a\n"})
    with pytest.raises(AlignmentError, match=f"'{name}' and the qrels "):
        found(root)


def test_document_ids_of_two_kinds_are_pointed_out(tmp_path: Path) -> None:
    root = tiny.make(tmp_path, b="q1 Q0 D1 1 0.9 b\n", r="q1 Q0 x1 1 0.9 r\n")
    found = dataset_notices(load_dataset(root / DATASET))
    assert " of b is judged" in " ".join(found)
    assert " of r is in any run" in " ".join(found)


def test_probabilities_declared_logits_are_pointed_out(tmp_path: Path) -> None:
    root = tiny.make(tmp_path)
    edit(root, DATASET, "score_space: unit", "score_space: logit")
    [found] = [n for n in dataset_notices(load_dataset(root / DATASET)) if "logit" in n]
    assert found.endswith("score_space: unit.")


def test_a_degraded_list_is_noticed(tmp_path: Path) -> None:
    root = tiny.make(tmp_path)
    beside(root)
    [notice] = [
        text for text in dataset_notices(load_dataset(root / DATASET)) if "degraded" in text
    ]
    assert "2 queries" in notice
    assert "cohere/m" in notice


def test_lists_whose_order_is_doubtful_are_named(tmp_path: Path) -> None:
    root = tiny.make(tmp_path)
    opposed = "".join(f"q{q} Q0 d{d} {d} {-1 / d} a\n" for q in (1, 2, 3) for d in (3, 2, 1))
    (root / "datasets/tiny/a.trec").write_text(opposed, encoding="utf-8")
    notices = found(root)
    assert sum(" column of a " in text and " in 3 of" in text for text in notices) == 1
    assert sum("below 0 in a:" in text for text in notices) == 1
    constant = "".join(f"q1 Q0 d{d} {d} 1 a\n" for d in (3, 2, 1))
    (root / "datasets/tiny/a.trec").write_text(constant, encoding="utf-8")
    notices = dataset_notices(load_dataset(root / DATASET))
    assert any(text.startswith("a gives all ") and " 1 judged" in text for text in notices)
