"""How files are read: a key of dataset.yaml, an option and an argument give the same numbers."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pytest
import yaml

import fusion_bench as fb
from fusion_bench.cli import main
from fusion_bench.data.read_options import ReadOptions
from fusion_bench.errors import ConfigError, DataError, FusionBenchError, UnknownNameError

Capture = pytest.CaptureFixture[str]

QRELS = "q1 0 d1 2\nq1 0 d2 1\nq1 0 d3 0\nq2 0 d2 1\nq2 0 d4 2\nq3 0 d5 1\n"
RUN = {"q1": {"d1": 9.1, "d3": 8.0, "d2": 7.5}, "q2": {"d1": 5.0, "d4": 4.5, "d2": 1.0}}
RUN |= {"q3": {"d2": 3.0, "d5": 2.0}}
#: nDCG@10 of this run under these judgments, by hand and by pytrec_eval.
EXPECTED = 0.7503


class Case(NamedTuple):
    """A way to write judgments and a list that is read right with one key alone.

    Attributes:
        key: In ``dataset.yaml``.
        value: Its value.
        option: On the command line.
        is_of_qrels: Whether it is a key of the judgments.
        qrels: Their rows.
        rename: What the list calls a document of a query.
        sign: Of its scores.
    """

    key: str
    value: Any
    option: list[str]
    is_of_qrels: bool = False
    qrels: str = QRELS
    rename: Callable[[str], str] = str
    sign: float = 1

    @property
    def argument(self) -> Any:  # noqa: ANN401 - of any key
        if self.key in {"grades", "on_duplicate"}:
            return self.value
        return {"qrels" if self.is_of_qrels else "a": self.value}


WORDS = QRELS.replace(" 2\n", " Exact\n").replace(" 1\n", " Partial\n").replace(" 0\n", " No\n")
CASES = [
    Case("order", "lower", ["--order", "a=lower"], sign=-1),
    Case("ids", "decimal", ["--ids", "a=decimal"], rename=lambda d: f"{d}.0"),
    Case("ids", "lowercase", ["--ids", "a=lowercase"], rename=str.upper),
    Case("ids", "drop_prefix:x=", ["--ids", "a=drop_prefix:x="], rename=lambda d: f"x={d}"),
    Case("ids", "slash", ["--ids", "qrels=slash"], True, QRELS.replace(" 0 d1", " 0 d1/")),
    Case("drop_own_id", True, ["--drop-own-id", "a"]),
    Case(
        "grades",
        {"No": 0, "Partial": 1, "Exact": 2},
        ["--grades", "No=0,Partial=1", "--grades", "Exact=2"],
        True,
        WORDS,
    ),
    Case(
        "grades",
        {"0": 0, "0.5": 1, "1": 2},
        ["--grades", "0=0,0.5=1,1=2"],
        True,
        QRELS.replace(" 1\n", " 0.50\n").replace(" 2\n", " 1.0\n"),
    ),
    Case("on_duplicate", "max", ["--on-duplicate", "max"], True, f"{QRELS}q1 0 d1 0\n"),
    Case("on_duplicate", "min", ["--on-duplicate", "min"], True, f"{QRELS}q1 0 d1 3\n"),
    Case("on_duplicate", "first", ["--on-duplicate", "first"], True, f"{QRELS}q1 0 d1 9\n"),
    Case(
        *("on_duplicate", "mean", ["--on-duplicate", "mean"], True),
        f"{QRELS}q1 0 d1 3\nq1 0 d1 1\n",
    ),
]


def write(case: Case, folder: Path) -> dict[str, dict[str, float]]:
    lists: dict[str, dict[str, float]] = {}
    for query, scores in RUN.items():
        named = {case.rename(d): case.sign * score for d, score in scores.items()}
        lists[query] = ({query: 99.0} if case.key == "drop_own_id" else {}) | named
    rows = [(q, d, s) for q, scores in lists.items() for d, s in scores.items()]
    text = "".join(f"{q} Q0 {d} 1 {s} t\n" for q, d, s in rows)
    (folder / "a.trec").write_text(text)
    (folder / "qrels.txt").write_text(case.qrels)
    return lists


def value_of(record: Any) -> float:  # noqa: ANN401 - a report
    rows = record["collections"][0]["systems"]
    return float(next(row for row in rows if row["name"] == "a")["measures"]["nDCG@10"]["mean"])


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.key} {case.value}")
def test_key_option_and_argument_read_the_same(
    case: Case, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lists = write(case, tmp_path)
    # Without the key it is refused, or other numbers come out.
    try:
        plain = value_of(fb.compare("qrels.txt", {"a": "a.trec"}).report.model_dump(mode="json"))
    except FusionBenchError:
        plain = 0.0
    assert plain != pytest.approx(EXPECTED, abs=5e-5)

    given = {case.key: case.argument}
    for run in ("a.trec", lists, fb.Run.from_dict("other", lists)):
        found = fb.compare("qrels.txt", {"a": run}, **given)
        assert value_of(found.report.model_dump(mode="json")) == pytest.approx(EXPECTED, abs=5e-5)

    arguments = ["compare", "--qrels", "qrels.txt", "a.trec", *case.option, "--json"]
    assert main(arguments) == 0
    assert value_of(json.loads(capsys.readouterr().out)) == pytest.approx(EXPECTED, abs=5e-5)

    data: dict[str, Any] = {
        "name": "d",
        "qrels": {"path": "qrels.txt"},
        "runs": {"a": {"path": "a.trec"}},
    }
    (data["qrels"] if case.is_of_qrels else data["runs"]["a"])[case.key] = case.value
    (tmp_path / "dataset.yaml").write_text(yaml.safe_dump(data))
    found = fb.compare("dataset.yaml")
    assert value_of(found.report.model_dump(mode="json")) == pytest.approx(EXPECTED, abs=5e-5)
    facts = found.report.collections[0]
    assert facts.judgment_notes if case.is_of_qrels and case.key != "grades" else True
    assert bool(facts.runs[0].notes) == (not case.is_of_qrels)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.key} {case.value}")
def test_a_saved_comparison_has_the_key(
    case: Case, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(case, tmp_path)
    (tmp_path / "b.trec").write_text("q1 Q0 d1 1 1 t\n")
    arguments = ["--qrels", "qrels.txt", *case.option, "a.trec", "b.trec"]
    assert main(["try", *arguments, "--save", "mine", "--no-html"]) == 0
    assert main(["dataset", "new", "new", *arguments]) == 0
    capsys.readouterr()
    for folder in ("mine", "new"):
        spec = yaml.safe_load((tmp_path / folder / "dataset.yaml").read_text())
        place = spec["qrels"] if case.is_of_qrels else spec["runs"]["a"]
        assert place[case.key] == case.value
        assert main(["eval", f"{folder}/experiment.yaml", "--json", "--no-html"]) == 0
        assert value_of(json.loads(capsys.readouterr().out)) == pytest.approx(EXPECTED, abs=5e-5)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (["--order", "a=down"], "given 'down'"),
        (["--order", "lower"], "'lower' is not NAME=VALUE"),
        (["--order", "z=lower"], "order: unknown list 'z'"),
        (["--order", "a=lower", "--order", "a=higher"], "'a' appears twice"),
        (["--ids", "a=upper"], "'upper' (known: decimal"),
        (["--ids", "a=drop_prefix"], "text to drop"),
        (["--encoding", "cp0"], "'cp0' is no encoding"),
        (["--encoding", "base64"], "'base64' is no encoding"),
        (["--grades", "Exact"], "'Exact' is not VALUE=GRADE"),
        (["--grades", "a=1,a=2"], "'a' appears twice"),
        (["--on-duplicate", "last"], "'last' is not one"),
        (["--drop-own-id", "z"], "drop_own_id: unknown list 'z'"),
    ],
)
def test_a_bad_value_is_refused_in_a_line(
    option: list[str], message: str, tmp_path: Path, capsys: Capture
) -> None:
    write(CASES[0], tmp_path)
    files = ["--qrels", str(tmp_path / "qrels.txt"), f"a={tmp_path / 'a.trec'}"]
    assert main(["compare", *files, *option]) == 2
    err = capsys.readouterr().err
    assert message in " ".join(err.replace("│", " ").split())
    assert "Traceback" not in err


def test_the_hint_for_fractions_works(tmp_path: Path) -> None:
    case = CASES[7]
    write(case, tmp_path)
    with pytest.raises(DataError, match=r"--grades 0=0,0\.5=1,1=2 \(") as caught:
        fb.compare(tmp_path / "qrels.txt", {"a": tmp_path / "a.trec"})
    assert str(caught.value).startswith(f"{tmp_path / 'qrels.txt'}:2: grade '0.50'")
    with pytest.raises(DataError, match="--grades Exact=N,No=N,Partial=N"):
        fb.Qrels.from_dict({"q": {"a": "Exact", "b": "No", "c": "Partial"}})


def test_labels_that_the_scale_lacks_are_listed() -> None:
    judged = {"q": {"a": "Exact", "b": "Maybe"}}
    expected = r"grade 'Maybe' is not in 'grades' \(Exact; in the file: Exact, Maybe\): add it"
    with pytest.raises(DataError, match=expected):
        fb.compare(judged, {"a": {"q": {"a": 1.0}}}, grades={"Exact": 3})


def test_a_data_frame_may_judge_twice() -> None:
    frame = pd.DataFrame({"query_id": ["q"] * 3, "doc_id": ["a", "b", "a"], "grade": [1, 2, 2]})
    with pytest.raises(DataError, match="grades 1, 2 for query 'q'"):
        fb.compare(frame, {"a": {"q": {"a": 1.0}}})
    found = fb.compare(frame, {"a": {"q": {"a": 1.0, "b": 0.5}}}, on_duplicate="max")
    [note] = found.report.collections[0].judgment_notes
    assert note.endswith("'on_duplicate: max' decides")
    with pytest.raises(DataError, match="no whole grade"):
        fb.compare(frame, {"a": {"q": {"a": 1.0}}}, on_duplicate="mean")
    same = frame.assign(grade=[2, 1, 2])
    judged = fb.Qrels.from_dict(same)
    assert judged.to_dict() == {"q": {"a": 2, "b": 1}}
    assert [note[:12] for note in judged.notes] == ["1 identical "]


def test_two_ids_never_become_one() -> None:
    lists = {"q": {"1": 2.0, "1.0": 1.0}, "p": {"7": 1.0}}
    with pytest.raises(DataError, match=r"'decimal' makes '1' and '1\.0'"):
        fb.fuse({"a": lists, "b": lists}, ids={"a": "decimal"})
    apart = {"q": {"1": 2.0}, "p": {"1.0": 1.0}}
    fused = fb.fuse({"a": apart, "b": {"q": {"1": 1.0}}}, ids={"a": "decimal"})
    assert list(fused.to_dict()["p"]) == ["1"]
    with pytest.raises(DataError, match="one document"):  # judgments: not even of two queries
        fb.compare({"q": {"1": 1}, "p": {"1.0": 1}}, {"a": apart}, ids={"qrels": "decimal"})
    with pytest.raises(DataError, match="'drop_suffix:7' leaves"):
        fb.fuse({"a": lists, "b": lists}, ids={"a": "drop_suffix:7"})


def test_own_ids_leave_no_gap_in_a_rank_column(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("qid,docid,score,rank\nq,a,1,1\nq,q,3,2\nq,b,2,3\nq,c,9,5\n")
    data = {"name": "d", "runs": {"a": {"path": "a.csv", "rank_from": "column"}}}
    data["runs"]["a"]["drop_own_id"] = True  # type: ignore[index]
    (tmp_path / "dataset.yaml").write_text(yaml.safe_dump(data))
    run = fb.load_dataset(tmp_path / "dataset.yaml").runs["a"]
    assert run.ranks.tolist() == [1, 2, 4]
    assert list(run.to_dict()["q"]) == ["a", "b", "c"]


def test_what_is_read_already_takes_no_keys(tmp_path: Path) -> None:
    judged = fb.Qrels.from_dict({"q": {"a": 1}})
    with pytest.raises(ConfigError, match="on_duplicate: the Qrels"):
        fb.compare(judged, {"a": {"q": {"a": 1.0}}}, on_duplicate="max")
    write(CASES[0], tmp_path)
    data = {"name": "d", "qrels": "qrels.txt", "runs": {"a": {"path": "a.trec"}}}
    (tmp_path / "dataset.yaml").write_text(yaml.safe_dump(data))
    with pytest.raises(ConfigError, match="order: d is a dataset"):
        fb.compare(str(tmp_path / "dataset.yaml"), order={"a": "lower"})
    with pytest.raises(ConfigError, match="a: columns and encoding"):
        fb.compare(judged, {"a": {"q": {"a": 1.0}}}, encoding={"a": "cp1252"})
    with pytest.raises(UnknownNameError, match="unknown option 'ordr'"):
        fb.new_dataset(
            *(tmp_path / "new", {"a": tmp_path / "a.trec"}), qrels=tmp_path / "qrels.txt", ordr="x"
        )


def test_a_list_named_as_the_judgments_takes_no_keys_of_theirs(
    tmp_path: Path, capsys: Capture
) -> None:
    write(CASES[0], tmp_path)
    files = ["--qrels", str(tmp_path / "qrels.txt"), f"qrels={tmp_path / 'a.trec'}"]
    assert main(["compare", *files]) == 0
    capsys.readouterr()
    for command in (["compare", *files], ["fuse", *files[2:], "--out", str(tmp_path / "f.trec")]):
        assert main([*command, "--ids", "qrels=decimal"]) == 2
        err = " ".join(capsys.readouterr().err.split())
        assert "ids: 'qrels' means" in err
    lists = {"qrels": RUN, "b": RUN}
    with pytest.raises(ConfigError, match="on_duplicate: 'qrels' means"):
        fb.compare({"q1": {"d1": 1}}, lists, on_duplicate="max")


def test_distances_of_zero_are_not_dropped(tmp_path: Path) -> None:
    options = ReadOptions(order="lower", drop_zero_scores=True)
    with pytest.raises(DataError, match="drop_zero_scores: a"):
        fb.Run.from_dict("a", {"q": {"d": 0.0, "e": 1.0}}, read_options=options)
    write(CASES[0], tmp_path)
    data = {"name": "d", "qrels": "qrels.txt", "runs": {"a": {"path": "a.trec"}}}
    data["runs"]["a"] |= {"order": "lower", "drop_zero_scores": True}  # type: ignore[index]
    (tmp_path / "dataset.yaml").write_text(yaml.safe_dump(data))
    with pytest.raises(DataError, match=r"a\.trec: drop_zero_scores: a"):
        fb.load_dataset(tmp_path / "dataset.yaml")


def test_keys_are_in_the_fingerprint_and_later_ones_only_if_set(tmp_path: Path) -> None:
    write(CASES[0], tmp_path)

    def parts(**keys: Any) -> dict[str, str]:  # noqa: ANN401 - of a dataset.yaml
        data = {"name": "d", "qrels": "qrels.txt", "runs": {"a": {"path": "a.trec", **keys}}}
        (tmp_path / "dataset.yaml").write_text(yaml.safe_dump(data))
        return dict(fb.load_dataset(tmp_path / "dataset.yaml").contents.parts)

    plain, lower = parts(), parts(order="lower")
    assert "runs/a.order" not in plain
    assert lower["runs/a.order"] == '"lower"'
    assert plain["runs/a"] != lower["runs/a"]
    assert parts(ids="nfc")["runs/a.ids"] == '"nfc"'
    assert parts(drop_own_id=True)["runs/a.drop_own_id"] == "true"


def test_a_rerank_list_of_distances(tmp_path: Path) -> None:
    case = CASES[0]
    lists = write(case, tmp_path)
    plain = {q: {d: -s for d, s in scores.items()} for q, scores in lists.items()}
    blend = {"method": "replace", "reranker": "r", "depth": 3}
    first = {q: dict.fromkeys(scores, 1.0) for q, scores in lists.items()}
    expected = fb.fuse({"a": first}, "rrf", rerankers={"r": plain}, blend=blend)
    order = {"r": "lower"}
    found = fb.fuse({"a": first}, "rrf", rerankers={"r": lists}, order=order, blend=blend)
    assert [[*docs] for docs in found.to_dict().values()] == [
        [*docs] for docs in expected.to_dict().values()
    ]


def test_own_ids_are_proposed_with_both_numbers(tmp_path: Path, capsys: Capture) -> None:
    write(CASES[5], tmp_path)
    files = ["--qrels", str(tmp_path / "qrels.txt"), f"a={tmp_path / 'a.trec'}"]
    assert main(["compare", *files, "--json"]) == 0
    (collection,) = json.loads(capsys.readouterr().out)["collections"]
    (info,) = collection["runs"]
    assert info["own_id_queries"] == 3
    assert info["mean_without_own_ids"] == pytest.approx(EXPECTED, abs=5e-5)
    assert main(["compare", *files, "-v"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert f"→ {EXPECTED}" in out
    assert "--drop-own-id a" in out
    assert main(["compare", *files, "--drop-own-id", "a", "--json"]) == 0
    (collection,) = json.loads(capsys.readouterr().out)["collections"]
    assert collection["runs"][0]["own_id_queries"] == 0
    assert [note[:12] for note in collection["runs"][0]["notes"]] == ["3 documents "]
