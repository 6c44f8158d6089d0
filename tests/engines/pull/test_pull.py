"""A pull from functions: what is written, what is resumed, what is refused."""

import asyncio
import json
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import fusion_bench
from fusion_bench.cli import main
from fusion_bench.engines.pull import PulledDataset
from fusion_bench.errors import ConfigError, DataError, ProviderError
from fusion_bench.io.dataset import load_dataset
from tests.engines.pull import functions
from tests.engines.pull.cases import DENSE, KEYWORD, MODULE, pull, write_queries


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    functions.CALLS.clear()
    functions.HOOKS.clear()
    functions.STATE.update(version=1)
    yield
    functions.HOOKS.clear()


def fail_with(error: Exception, *texts: str) -> None:
    def raise_error(_: str, text: str) -> None:
        if text in texts:
            raise error

    functions.HOOKS.append(raise_error)


def leg(name: str) -> dict[str, str]:
    return {"function": f"{MODULE}:{name}"}


def test_each_leg_alone_and_the_fused_answer_become_a_dataset(tmp_path: Path) -> None:
    legs = {"bm25": KEYWORD, "dense": DENSE, "ids": leg("ids")}
    pulled = pull(tmp_path, legs, fused=leg("fused"), texts=True)
    dataset = load_dataset(tmp_path / "mine/dataset.yaml", every_query=True)
    lists = {name: run.to_dict() for name, run in dataset.runs.items()}
    assert lists["bm25"] == {"q1": {"a": 2.0, "b": 1.0}, "q2": {"c": 1.0, "d": 1.0}}
    assert list(lists["dense"]["q1"].items()) == [("b", 0), ("a", -1), ("c", -1), ("d", -2)]
    assert list(lists["ids"]["q1"].items()) == [("c", 1), ("a", 1 / 2), ("b", 1 / 3)]
    assert lists["engine-fused"]["q2"] == {"b": 0.5, "a": 0.25}
    roles = {name: sorted(run.roles) for name, run in dataset.runs.items()}
    assert roles == {"bm25": ["keyword"], "dense": [], "ids": [], "engine-fused": ["final"]}
    assert not dataset.is_judged
    assert dataset.queries["q1"].type == "local"
    documents = (tmp_path / "mine/documents.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(documents[0]) == {"id": "a", "text": "alpha one"}
    assert len(documents) == 4
    assert [note for note in pulled.notes if "unknown" not in note] == []  # of the index's size
    assert len(pulled.notes) == 1
    assert [each.queries for each in pulled.record.lists] == [2, 2, 2, 2]
    assert set(pulled.record.lists[0].latency_ms) == {"p50", "p95", "p99"}
    assert not (tmp_path / "mine/.pull").exists()
    assert main(["dataset", "check", str(tmp_path / "mine")]) == 0


def test_an_engine_that_lists_nothing_names_those_that_do(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"--all-texts: python .*chroma.*sqlite"):
        pull(tmp_path, {"bm25": KEYWORD}, all_texts=True)
    assert not (tmp_path / "mine").exists()


def test_the_experiment_runs_once_the_dataset_is_judged(tmp_path: Path) -> None:
    pull(tmp_path, {"bm25": KEYWORD, "dense": DENSE}, fused=leg("fused"))
    folder = tmp_path / "mine"
    experiment = str(folder / "experiment.yaml")
    assert main(["eval", experiment, "--no-plots", "--out", str(tmp_path / "r")]) == 2
    judge(folder)
    assert main(["eval", experiment, "--no-plots", "--out", str(tmp_path / "r")]) == 0


def test_equal_scores_keep_the_order_of_the_engine(tmp_path: Path) -> None:
    pull(tmp_path, {"dense": DENSE})
    spec = yaml.safe_load((tmp_path / "mine/dataset.yaml").read_text(encoding="utf-8"))
    assert spec["runs"]["dense"]["source_ties"] == "file"
    run = load_dataset(tmp_path / "mine/dataset.yaml", every_query=True).runs["dense"]
    assert [*run.to_dict()["q1"]] == ["b", "a", "c", "d"]  # a and c score the same


def test_scores_that_do_not_fall_leave_the_ranks_to_the_engine(tmp_path: Path) -> None:
    pulled = pull(tmp_path, {"mixed": leg("unsorted"), "far": leg("rising")})
    runs = load_dataset(tmp_path / "mine/dataset.yaml", every_query=True).runs
    assert [*runs["mixed"].to_dict()["q1"]] == ["a", "b", "c"]
    assert [*runs["far"].to_dict()["q1"]] == ["a", "b", "c"]
    mixed, far = pulled.notes
    assert "of mixed" in mixed
    assert "of far rise" in far


def test_depth_is_by_leg_and_hits_beyond_it_are_counted(tmp_path: Path) -> None:
    deep = {**leg("ids"), "depth": 2}
    pulled = pull(tmp_path, {"ids": deep, "all": leg("unsorted")}, depth=3)
    assert [(each.depth, each.hits) for each in pulled.record.lists] == [(2, 4), (3, 6)]


def test_an_interrupted_pull_asks_only_for_what_is_missing(tmp_path: Path) -> None:
    fail_with(ProviderError("down", kind="server"), "two")
    with pytest.raises(ProviderError, match=r"'q2': down \(.*same command"):
        pull(tmp_path, {"bm25": KEYWORD, "dense": DENSE}, concurrency=1)
    assert not (tmp_path / "mine/dataset.yaml").exists()
    functions.HOOKS.clear()
    pulled = pull(tmp_path, {"bm25": KEYWORD, "dense": DENSE}, concurrency=8)
    assert pulled.record.asked == 2
    assert functions.CALLS["bm25", "alpha one"] == 0
    assert functions.CALLS["keyword", "alpha one"] == functions.CALLS["dense", "alpha one"] == 1
    assert (functions.CALLS["keyword", "two"], functions.CALLS["dense", "two"]) == (2, 1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"legs": {"bm25": leg("keyword")}}, r"changed .*\(legs\).*--replace"),
        ({"fingerprint": f"{MODULE}:state"}, r"settings changed .*\(fingerprint\)"),
    ],
)
def test_other_settings_are_not_mixed(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    fail_with(ProviderError("down", kind="server"), "two")
    with pytest.raises(ProviderError):
        pull(tmp_path, {"bm25": KEYWORD})
    functions.HOOKS.clear()
    legs = {**change}.pop("legs", {"bm25": KEYWORD})
    change = {key: value for key, value in change.items() if key != "legs"}
    with pytest.raises(ConfigError, match=message):
        pull(tmp_path, legs, **change)
    assert pull(tmp_path, legs, start_over=True, **change).record.asked == 2


def test_before_the_first_answer_settings_may_be_corrected(tmp_path: Path) -> None:
    fail_with(ProviderError("no such field", kind="refused"), "alpha one", "two")
    with pytest.raises(ProviderError, match=r"\(0 of 2 "):
        pull(tmp_path, {"bm25": leg("ids")})
    functions.HOOKS.clear()
    assert pull(tmp_path, {"bm25": KEYWORD}).record.asked == 2


def test_another_state_of_the_index_is_not_mixed(tmp_path: Path) -> None:
    given: dict[str, Any] = {"fingerprint": f"{MODULE}:state", "concurrency": 1}
    fail_with(ProviderError("down", kind="server"), "two")
    with pytest.raises(ProviderError):
        pull(tmp_path, {"bm25": KEYWORD}, **given)
    functions.HOOKS.clear()
    functions.STATE["version"] = 2
    with pytest.raises(ConfigError, match=r"index changed .*\(version\)"):
        pull(tmp_path, {"bm25": KEYWORD}, **given)
    functions.STATE["version"] = 1
    assert pull(tmp_path, {"bm25": KEYWORD}, **given, timeout=5).record.asked == 1


def test_an_index_that_changes_meanwhile_degrades_the_pull(tmp_path: Path) -> None:
    functions.HOOKS.append(lambda *_: functions.STATE.update(version=2))
    pulled = pull(tmp_path, {"bm25": KEYWORD}, fingerprint=f"{MODULE}:state")
    assert pulled.record.is_degraded
    assert "index changed" in pulled.notes[0]


def test_a_dataset_that_is_there_is_replaced_on_request_only(tmp_path: Path) -> None:
    pull(tmp_path, {"bm25": KEYWORD})
    path = tmp_path / "mine/dataset.yaml"
    with path.open("a", encoding="utf-8") as file:
        file.write("qrels: qrels.txt\nbinary_relevance: 2\n")
    with pytest.raises(ConfigError, match="dataset already"):
        pull(tmp_path, {"bm25": KEYWORD})
    pull(tmp_path, {"bm25": KEYWORD, "ids": leg("ids")}, start_over=True)
    spec = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert (spec["qrels"], spec["binary_relevance"]) == ("qrels.txt", 2)
    assert [*spec["runs"]] == ["bm25", "ids"]
    (tmp_path / "mine/pull.json").unlink()
    with pytest.raises(ConfigError, match="no pull"):
        pull(tmp_path, {"bm25": KEYWORD}, start_over=True)


def test_a_list_that_is_pulled_no_more_leaves_the_dataset(tmp_path: Path) -> None:
    pull(tmp_path, {"bm25": KEYWORD, "ids": leg("ids")})
    path = tmp_path / "mine/dataset.yaml"
    spec = yaml.safe_load(path.read_text(encoding="utf-8"))
    spec["runs"]["own"] = {"path": "runs/ids.trec.gz"}  # of the user, not of the pull
    path.write_text(yaml.safe_dump(spec), encoding="utf-8")
    pulled = pull(tmp_path, {"bm25": KEYWORD}, start_over=True)
    assert {*yaml.safe_load(path.read_text(encoding="utf-8"))["runs"]} == {"bm25", "own"}
    assert pulled.notes[-1].startswith("ids: ")
    assert "dataset.yaml" in pulled.notes[-1]
    (tmp_path / "mine/pull.json").write_text("{}", encoding="utf-8")
    assert pull(tmp_path, {"ids": leg("ids")}, start_over=True).record.dropped == ()


def test_a_query_that_the_library_cannot_answer_is_named(tmp_path: Path) -> None:
    fail_with(ValueError("no such word"), "two")
    with pytest.raises(ProviderError, match=r"(bm25|dense), query 'q2': ValueError"):
        pull(tmp_path, {"bm25": KEYWORD, "dense": DENSE})


def test_a_dead_engine_ends_a_pull_that_skips_failures(tmp_path: Path) -> None:
    text = "".join(f'{{"id": "q{n}", "text": "two"}}\n' for n in range(20))
    fail_with(ProviderError("down", kind="connection"), "two")
    with pytest.raises(ProviderError, match="down"):
        pull(tmp_path, {"ids": leg("ids")}, text=text, skip_failed=True, concurrency=1)
    assert functions.CALLS["ids", "two"] == 5


def test_a_list_without_a_document_is_left_out(tmp_path: Path) -> None:
    text = '{"id": "q1", "text": "nowhere"}\n'
    pulled = pull(tmp_path, {"bm25": KEYWORD, "ids": leg("ids")}, text=text)
    assert any(note.startswith("bm25 returned nothing") for note in pulled.notes)
    assert [*load_dataset(tmp_path / "mine/dataset.yaml", every_query=True).runs] == ["ids"]


def test_nothing_at_all_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no list holds"):
        pull(tmp_path, {"bm25": KEYWORD}, text='{"id": "q1", "text": "nowhere"}\n')


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "file is empty"),
        ('{"id": "q1"}\n', "asked.jsonl:1: query 'q1'"),
        ('{"id": "q1", "text": "a"}\n{"id": "q1", "text": "b"}\n', "appears twice"),
        ('[{"id": "q1", "text": "a"}]\n', "one JSON object"),
        ("mountain huts\n", "'fusion-bench queries"),
        ('{"id": "q\\u0007", "text": "a"}\n', "holds a control character"),
    ],
)
def test_queries_that_break_a_rule(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        pull(tmp_path, {"bm25": KEYWORD}, text=text)
    assert not (tmp_path / "mine").exists()


def test_a_damaged_answer_is_found(tmp_path: Path) -> None:
    fail_with(ProviderError("down", kind="server"), "two")
    with pytest.raises(ProviderError):
        pull(tmp_path, {"bm25": KEYWORD}, concurrency=1)
    functions.HOOKS.clear()
    with sqlite3.connect(tmp_path / "mine/.pull/answers.sqlite") as store:
        store.execute("UPDATE answers SET value = replace(value, '2.0', '9.0')")
    store.close()
    with pytest.raises(DataError, match=r"digest .*--replace"):
        pull(tmp_path, {"bm25": KEYWORD})


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "pull.yaml"
    config.write_text(f"legs: {{bm25: {{function: '{MODULE}:keyword'}}}}\n", encoding="utf-8")
    queries, out = str(write_queries(tmp_path)), str(tmp_path / "mine")
    command = ["pull", "python", "--queries", queries, "--config", str(config), "--out", out]
    assert main([*command, "--depth", "1", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["engine"] == "python"
    assert record["lists"][0]["hits"] == 2
    assert main([*command, "--replace", "--set", "legs.bm25.depth=2"]) == 0
    shown = capsys.readouterr().out
    assert "p99, ms" in shown
    assert "fusion-bench judge" in shown


@pytest.mark.parametrize(
    ("engine", "arguments", "message"),
    [
        ("pythn", [], "'pythn'; did you"),
        ("python", [], "legs=VALUE): is"),
        ("python", ["--set", "legs.a.fields=x"], "unknown key 'fields'"),
        ("python", ["--set", "legs.a.function=x"], "form module:attribute"),
        ("python", ["--set", "legs.a.function=no_such:x"], "'no_such'"),
        ("python", ["--set", f"legs.a.function={MODULE}:DOCUMENTS"], "is no function"),
        ("python", ["--set", "legs={}"], "legs"),
        ("python", ["--set", f"legs.engine-fused.function={MODULE}:ids"], "rename the leg"),
        ("python", ["--set", f"legs.a/b.function={MODULE}:ids"], "legs.a/b"),
        ("python", ["--set", "nonsense"], "KEY=VALUE"),
        ("python", ["--depth", "0"], "--depth"),
        (
            "python",
            ["--set", f"legs.a.function={MODULE}:ids", "--vectors", "v.npz"],
            "--vectors v.npz: ",
        ),
        (
            "python",
            ["--set", f"legs.a.function={MODULE}:ids", "--set", "legs.a.encoder=minilm"],
            "legs.a.encoder: ",
        ),
        (
            "python",
            ["--set", f"legs.a.function={MODULE}:ids", "--set", "legs.a.form=vector"],
            "legs.a: it searches",
        ),
    ],
)
def test_bad_input(
    tmp_path: Path,
    engine: str,
    arguments: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    command = ["pull", engine, "--queries", str(write_queries(tmp_path)), *arguments]
    assert main([*command, "--out", str(tmp_path / "mine")]) == 2
    shown = capsys.readouterr().err
    assert message in " ".join(shown.split()).replace("│ ", "")
    assert "Traceback" not in shown
    assert not (tmp_path / "mine").exists()


def test_a_file_in_the_way(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine").write_text("x", encoding="utf-8")
    command = ["pull", "python", "--queries", str(write_queries(tmp_path))]
    more = ["--set", f"legs.a.function={MODULE}:ids", "--out", str(tmp_path / "mine")]
    assert main([*command, *more]) == 2
    assert "is a file" in capsys.readouterr().err


def test_fields_and_ids_of_queries_are_kept_as_they_are(tmp_path: Path) -> None:
    pull(tmp_path, {"ids": leg("ids")}, text='{"id": "q 1", "text": "x", "seen": ["\\ud800"]}\n')
    line = (tmp_path / "mine/queries.jsonl").read_text(encoding="utf-8")
    assert json.loads(line) == {"id": "q 1", "text": "x", "seen": ["\ud800"]}
    dataset = load_dataset(tmp_path / "mine/dataset.yaml", every_query=True)
    assert [*dataset.runs["ids"].to_dict()] == ["q 1"]  # not a TREC file, for it has a blank


def judge(folder: Path) -> Path:
    (folder / "qrels.txt").write_text("q1 0 a 1\nq2 0 c 1\n", encoding="utf-8")
    path = folder / "dataset.yaml"
    with path.open("a", encoding="utf-8") as file:
        file.write("qrels: qrels.txt\n")
    return path


def test_the_fused_answer_is_no_source_of_a_fusion(tmp_path: Path) -> None:
    pull(tmp_path, {"bm25": KEYWORD, "dense": DENSE}, fused=leg("fused"))
    path = judge(tmp_path / "mine")
    systems = {"rrf": "rrf", "engine": "engine-fused"}
    compared = fusion_bench.compare(path, None, systems, "RR@10", baseline="engine")
    configs = {row.name: row.config for row in compared.report.collections[0].systems}
    assert configs["rrf"] is not None
    assert configs["rrf"]["runs"] == ["bm25", "dense"]
    result = compared.report.collections[0].fusion
    assert result is not None
    assert result.sources == 2
    everything = {"runs": ["bm25", "engine-fused"]}
    with pytest.raises(ConfigError, match=r"'engine-fused'"):
        fusion_bench.compare(path, None, {"all": everything, "bm25": "bm25"}, "RR@10")


def test_from_python_inside_an_event_loop(tmp_path: Path) -> None:
    config = tmp_path / "pull.yaml"
    config.write_text(f"legs: {{bm25: {{function: '{MODULE}:keyword'}}}}\n", encoding="utf-8")

    async def work() -> PulledDataset:
        queries = {"q1": "alpha one", "q2": "two"}
        settings = {"legs": {"bm25": {"roles": ["keyword"]}, "ids": leg("ids")}}
        return fusion_bench.pull(
            "python", queries, tmp_path / "mine", config=config, settings=settings, depth=1
        )

    pulled = asyncio.run(work())
    assert pulled.to_pandas()["hits"].tolist() == [2, 2]
    assert repr(pulled).endswith("2 queries; bm25, ids)")
    assert (
        load_dataset(tmp_path / "mine/dataset.yaml", every_query=True).queries["q2"].text == "two"
    )
    with pytest.raises(DataError, match="'q1' has no 'text'"):
        fusion_bench.pull(
            "python", {"q1": " "}, tmp_path / "other", settings={"legs": {"a": leg("ids")}}
        )


def test_a_function_that_never_returns_is_not_waited_for(tmp_path: Path) -> None:
    released = threading.Event()

    def wait(_: str, __: str) -> None:
        released.wait(60)

    functions.HOOKS.append(wait)
    try:
        with pytest.raises(ProviderError, match=r"no answer within 0\.05 s"):
            pull(tmp_path, {"ids": leg("ids")}, timeout=0.05)
    finally:
        released.set()


@pytest.mark.parametrize("answer", [5, None, {"a": 1.0}, "ab", [["a", 1, "t", "more"]], [b"a"]])
def test_what_is_no_list_of_hits(tmp_path: Path, answer: object) -> None:
    functions.STATE["answer"] = answer
    with pytest.raises(ProviderError, match="malformed answer"):
        pull(tmp_path, {"any": leg("anything")})


def test_calls_per_minute_are_spaced(tmp_path: Path) -> None:
    started = time.monotonic()
    pull(tmp_path, {"a": leg("ids"), "b": leg("unsorted")}, requests_per_minute=1200)
    assert time.monotonic() - started >= 3 * 60 / 1200  # four calls; more time is no matter


def test_lists_that_a_limit_of_the_engine_cuts_are_noted(tmp_path: Path) -> None:
    text = "".join(f'{{"id": "q{n}", "text": "t{n}"}}\n' for n in range(10))
    pulled = pull(tmp_path, {"ids": leg("ids")}, text=text, depth=5)
    [note] = pulled.notes
    assert "ids returned 3 documents" in note
    assert "5 were asked" in note


def test_a_failure_before_the_first_question_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    with pytest.raises(ConfigError, match="cannot be loaded"):
        pull(tmp_path, {"a": leg("no_such")})
    assert [*(tmp_path / "mine").iterdir()] == []
