"""What a dataset holds, and what speaks against it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from fusion_bench.checks.collection_warnings import (
    IGNORED_QUERIES,
    find_grade_warnings,
    warn_ignored,
)
from fusion_bench.checks.dataset_facts import dataset_notices, describe_dataset, unjudged_shares
from fusion_bench.checks.query_warnings import (
    describe_near_duplicates,
    find_near_duplicates,
    list_grades,
    write_found_groups,
)
from fusion_bench.cli import main
from fusion_bench.data.qrels import Qrels
from fusion_bench.errors import AlignmentError
from fusion_bench.io.dataset import load_dataset
from fusion_bench.report.data_warnings import find_report_warnings
from tests import tiny, unjudged_project
from tests.io.test_dataset_groups import write_dataset
from tests.io.test_outputs import beside
from tests.report.cases import collection, report, system
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


def test_what_is_not_there_is_described_as_nothing(tmp_path: Path) -> None:
    root = tiny.make(tmp_path)
    edit(root, DATASET, "queries: queries.jsonl\n", "")
    facts = describe_dataset(load_dataset(root / DATASET))
    assert (facts["splits"], facts["types"], facts["groups"]) == ({}, {}, 0)
    root = tiny.make(tmp_path, a="q1 Q0 d1 1 0 a\n")
    edit(root, DATASET, "roles: [keyword]", "drop_zero_scores: true")
    runs = describe_dataset(load_dataset(root / DATASET))["runs"]
    assert isinstance(runs, list)
    assert runs[0]["lowest_score"] is runs[0]["highest_score"] is None
    assert runs[0]["median_depth"] == 0


def test_near_duplicate_queries_alone_are_noticed_in_a_clean_dataset(tmp_path: Path) -> None:
    assert found(tiny.make(tmp_path)) == []
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
            "a has no result",
            "'q9'",
            "a has 2 rows",
            "r has no result",
            "a had 1 duplicate row",
            "1 judged query without",
        ),
        strict=True,
    ):
        assert part in notice


def test_shares_and_relevance_are_what_the_dataset_says(tmp_path: Path) -> None:
    root = tiny.make(tmp_path)
    # of a: d8 and d5, of b: d4 (for q2) and d9
    shares = unjudged_shares(load_dataset(root / DATASET))
    assert shares == {"a": pytest.approx(2 / 7), "b": pytest.approx(2 / 6)}
    edit(root, DATASET, "name: tiny\n", "name: tiny\njudgments: complete\n")
    assert unjudged_shares(load_dataset(root / DATASET)) == {"a": 0, "b": 0}
    root = tiny.make(tmp_path)
    edit(root, DATASET, "name: tiny\n", "name: tiny\nbinary_relevance: 2\n")
    [note] = found(root)
    assert note.startswith("3 judged queries ")


@pytest.mark.parametrize("name", ["a", "r"])
def test_a_list_of_another_dataset_is_refused(name: str, tmp_path: Path) -> None:
    root = tiny.make(tmp_path, **{name: "x Q0 d1 1 0.5 a\n"})
    with pytest.raises(AlignmentError, match=f"'{name}' and the qrels "):
        found(root)


def test_doubtful_ids_scores_and_records_are_pointed_out(tmp_path: Path) -> None:
    root = tiny.make(tmp_path, b="q1 Q0 D1 1 0.9 b\n", r="q1 Q0 x1 1 0.9 r\n")
    found = dataset_notices(load_dataset(root / DATASET))
    assert " of b is judged" in " ".join(found)
    assert " of r is judged" in " ".join(found)
    root = tiny.make(tmp_path)
    edit(root, DATASET, "score_space: unit", "score_space: logit")
    [notice] = [n for n in dataset_notices(load_dataset(root / DATASET)) if "logit" in n]
    assert notice.endswith("score_space: unit.")
    beside(tiny.make(tmp_path))
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


# ── grades that cannot tell systems apart


def test_grades_are_those_of_the_chosen_queries() -> None:
    qrels = Qrels.from_dict({"a": {"d": 2, "e": 0}, "b": {"d": 1}, "c": {"d": 3, "e": 2}})
    assert list_grades(qrels, ["c", "a"]) == (0, 2, 3)
    assert list_grades(qrels, ["b"]) == (1,)
    assert list_grades(qrels, []) == ()


@pytest.mark.parametrize(
    ("grades", "is_machine", "keys"),
    [
        ((0, 1, 2), True, []),
        ((0, 1), False, ["nothing relevant"]),
        ((2,), False, []),
        ((2,), True, ["one grade"]),
        ((0,), True, ["nothing relevant", "one grade"]),
        ((), True, []),
    ],
)
def test_what_is_named(grades: tuple[int, ...], is_machine: bool, keys: list[str]) -> None:
    warnings = find_grade_warnings(grades, 2, is_machine=is_machine)
    assert [each.key for each in warnings] == keys


# ── queries of the queries file that lists answer and nobody judged


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tiny.make(tmp_path))
    return tmp_path


def evaluate(root: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    """The count of the report, what the terminal shows, and the Markdown page."""
    assert main(["eval", tiny.EXPERIMENT, "-v", "--out", "report"]) == 0
    (record,) = json.loads((root / "report/report.json").read_text(encoding="utf-8"))["collections"]
    page = (root / "report/report.md").read_text(encoding="utf-8")
    return record["ignored_queries"], capsys.readouterr().out, page


def test_eval_names_them(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tiny.edit(root, "datasets/tiny/qrels.txt", "q4 0 d4 1\n", "")
    count, shown, page = evaluate(root, capsys)
    assert count == 1
    for text in (" ".join(shown.split()), page):
        assert "1 query of the " in text
        assert "2 queries of 3." in text


def test_tune_and_the_gate_name_them(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(unjudged_project.make(root / "other"))
    tiny.edit(Path(), unjudged_project.DATASET, "runs:", "queries: queries.jsonl\nruns:")
    names = "".join(f'{{"id": "q{q}"}}\n' for q in range(unjudged_project.QUERIES))
    Path("datasets/mine/queries.jsonl").write_text(names, encoding="utf-8")
    qrels = Path("datasets/mine/qrels.txt")
    rows = qrels.read_text(encoding="utf-8").splitlines(keepends=True)
    qrels.write_text("".join(row for row in rows if not row.startswith("q7 ")), encoding="utf-8")
    gate = ["gate", unjudged_project.EXPERIMENT, "--no-html"]
    tune = ["tune", unjudged_project.EXPERIMENT, "--no-plots", "--no-html"]
    assert main([*gate, "--update", "--reason", "first"]) == 0
    for words, keys in ((tune, ("data", "warnings")), (gate, ("data_warnings",))):
        capsys.readouterr()
        assert main([*words, "--json"]) in {0, 3}  # unjudged documents decide what is tuned
        found = json.loads(capsys.readouterr().out)
        for key in keys:
            found = found[key]
        (text,) = [each["text"] for each in found if each["key"] == IGNORED_QUERIES]
        assert "59 queries of 60." in text


def test_several_are_counted() -> None:
    (warning,) = warn_ignored(11, 4)
    assert warning.text.startswith("11 queries of the ")
    assert "describe 4 queries of 15." in warning.text
    assert list(warn_ignored(0, 4)) == []


# ── the record of near-duplicate queries, its sentence, and where it is left out


def test_copies_are_counted(tmp_path: Path) -> None:
    record = find_near_duplicates(load_dataset(write_dataset(tmp_path)))
    assert record is not None
    assert record.model_dump() == {
        "dataset": "tiny",
        "queries": 12,
        "linked": 2,
        "groups": 1,
        "largest": 2,
        "links": {"same text": 1},
        "is_too_large": False,
        "withholds": True,
    }
    text = describe_near_duplicates(record)
    assert "2 of 12 queries" in text
    assert "'groups: auto'" in text
    assert "at least 20 groups " in text
    found = collection(system("base", 0.5, 0.4), near_duplicates=record)
    [warnings] = find_report_warnings(report(found)).values()
    assert [each.key for each in warnings] == ["near-duplicate queries"]


def test_large_groups_and_lists_without_a_file_get_other_advice(tmp_path: Path) -> None:
    dataset = replace(load_dataset(write_dataset(tmp_path)), has_file=False)
    record = find_near_duplicates(dataset)
    assert record is not None
    assert record.dataset is None
    text = describe_near_duplicates(record)
    assert "--save DIR" in text
    assert "check tiny" not in text
    record = find_near_duplicates(load_dataset(write_dataset(tmp_path, copies=4)))
    assert record is not None
    assert record.is_too_large
    assert "33.3 %" in describe_near_duplicates(record)


@pytest.mark.parametrize(("copies", "withholds"), [(3, False), (4, True)])
def test_from_a_tenth_of_the_queries_on_nothing_is_shipped(
    tmp_path: Path, copies: int, withholds: bool
) -> None:
    path = write_dataset(tmp_path, copies=0, queries=40)
    rows = [
        row
        for row in (tmp_path / "qrels.txt").read_text().splitlines()
        if int(row.split()[0][1:]) >= copies
    ]
    (tmp_path / "qrels.txt").write_text("\n".join([*rows, *(f"q{i} 0 d 1" for i in range(copies))]))
    record = find_near_duplicates(load_dataset(path))
    assert record is not None
    assert record.links == {"same relevant documents": copies - 1}
    assert record.withholds == withholds
    assert ("no 'ship'" in describe_near_duplicates(record)) == withholds
    file = tmp_path / "groups.jsonl"
    file.write_text('{"id": "q9", "group": "g"}')
    path.write_text(f"{path.read_text()}groups: groups.jsonl\n")
    record = find_near_duplicates(load_dataset(path))
    assert record is not None
    assert not record.withholds


def test_only_the_evaluated_queries_are_searched_and_identical_ones_are_in_the_file(
    tmp_path: Path,
) -> None:
    dataset = load_dataset(write_dataset(tmp_path, queries=40))
    assert find_near_duplicates(dataset) is None
    assert write_found_groups(dataset, tmp_path / "groups.jsonl")["queries"] == 2
    dataset = load_dataset(write_dataset(tmp_path))
    assert find_near_duplicates(dataset, [f"q{i}" for i in range(1, 12)]) is None
    assert find_near_duplicates(dataset, min_share=0.2) is None


@pytest.mark.parametrize("groups", ["auto", "none", "declared"])
def test_a_dataset_that_settled_its_groups_is_not_searched(tmp_path: Path, groups: str) -> None:
    dataset = load_dataset(write_dataset(tmp_path, f"groups: {groups}"))
    assert find_near_duplicates(dataset) is None


def test_the_groups_that_are_written_are_those_of_auto(tmp_path: Path) -> None:
    path = write_dataset(tmp_path)
    file = tmp_path / "groups.jsonl"
    assert write_found_groups(load_dataset(path), file) == {
        "file": str(file),
        "groups": 1,
        "queries": 2,
    }
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert lines == [
        {"id": "q0", "group": "q0", "linked_to": "q1", "reason": "same text"},
        {"id": "q1", "group": "q0", "linked_to": "q0", "reason": "same text"},
    ]
    path.write_text(path.read_text() + "groups: groups.jsonl\n")
    dataset = load_dataset(path)
    assert find_near_duplicates(dataset) is None
    assert dataset.queries["q1"].group == "q0"
