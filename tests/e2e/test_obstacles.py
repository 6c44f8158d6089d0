"""What stops an answer: ids that do not meet, and lists that a check finds false."""

import json
import re
import unicodedata
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

import fusion_bench as fb
from fusion_bench.cli import main
from fusion_bench.errors import DataCheckError
from fusion_bench.gate.result import GateVerdict
from fusion_bench.io.dataset import load_dataset
from fusion_bench.util.files import baseline_path
from tests.tiny import write_files

QUERIES = 40
EXPERIMENT = "experiments/mine.yaml"
FILES = {
    "datasets/mine/dataset.yaml": """\
name: mine
qrels: qrels.txt
runs: {a: {path: a.trec}, b: {path: b.trec}}
rerank: {r: {path: r.trec, score_space: unit}}
""",
    EXPERIMENT: """\
dataset: mine
measures: [nDCG@10]
baseline: alone
systems:
  alone: {runs: [a]}
  fused: {runs: [a, b]}
  reranked: {runs: [a, b], blend: {method: replace, reranker: r, missing: below}}
tune: {system: fused, measure: nDCG@10, trials: 3, folds: 0}
gate: {checks: {nDCG@10: {max_drop: 0.5}}, system: reranked}
""",
}
#: Commands that give a verdict.
COMMANDS = {
    "eval": ["eval", EXPERIMENT, "--no-plots"],
    "tune": ["tune", EXPERIMENT, "--no-plots"],
    "try dataset": ["try", "--dataset", "datasets/mine", "--no-plots"],
    "try": ["try", "--qrels", "datasets/mine/qrels.txt", "datasets/mine/a.trec"],
    "compare": ["compare", "--qrels", "datasets/mine/qrels.txt", "datasets/mine/a.trec"],
}
COMMANDS["try"] += ["datasets/mine/b.trec", "--no-plots"]
COMMANDS["compare"] += ["datasets/mine/b.trec"]

Rename = Callable[[str], str]
Capture = pytest.CaptureFixture[str]


def rows_of(
    change: Rename = str, *, places: Mapping[int, int] | None = None, shift: int = 1
) -> list[tuple[str, str, float]]:
    """Query, document and score: the relevant document is second, or where ``places`` has it."""
    rows = []
    for q in range(QUERIES):
        documents = [f"n{(q * shift + i) % 50}" for i in range(5)]
        documents[(places or {}).get(q, 1 + q % 2)] = f"d{q}"
        rows += [(f"q{q}", change(each), 1 - i / 10) for i, each in enumerate(documents)]
    return rows


def trec(rows: list[tuple[str, str, float]]) -> str:
    return "".join(f"{q} Q0 {document} 1 {score:.4f} t\n" for q, document, score in rows)


def make(root: Path, **changed: str) -> Path:
    """Write the project; ``changed`` = another file of a list or of the judgments, by its stem."""
    texts = {
        "qrels": "".join(f"q{q} 0 d{q} 1\nq{q} 0 n{q} 0\n" for q in range(QUERIES)),
        "a": trec(rows_of()),
        "b": trec(rows_of(shift=3)),
        "r": "".join(
            f"{q} Q0 {d} 1 {score * (0.3 + (i % 7) / 10):.4f} r\n"
            for i, (q, d, score) in enumerate(rows_of(shift=7))
        ),
    } | changed
    files = {
        f"datasets/mine/{name}.{'txt' if name == 'qrels' else 'trec'}": text
        for name, text in texts.items()
    }
    return write_files(root, {**FILES, **files})


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


UUIDS = {"b": trec(rows_of(lambda name: f"{hash(name) % 10**9:032x}", shift=3))}
REVERSED = {"b": trec([(q, d, -s) for q, d, s in rows_of(places=dict.fromkeys(range(99), 0))])}
CONSTANT = {"b": trec([(q, d, 1.0) for q, d, _ in rows_of(shift=3)])}
DELIMITERS = {
    "b": "".join(
        f"q{q} Q0 x{q} 1 -9549512000 t\nq{q} Q0 d{q} 2 0.7 t\nq{q} Q0 y{q} 3 -4.4224404E9 t\n"
        for q in range(QUERIES)
    )
}
STOPPED = {
    "unmatched": (UUIDS, "No document of"),
    "reversed": (REVERSED, "b seems to"),
    "constant": (CONSTANT, "b gives all documents"),
    "delimiters": (DELIMITERS, "b holds 80 scores"),
}


@pytest.mark.parametrize("kind", STOPPED)
@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_answers(command: str, kind: str, root: Path, capsys: Capture) -> None:
    files, text = STOPPED[kind]
    make(root, **files)
    allowance = f"--allow-{'unmatched' if kind == 'unmatched' else 'suspect'}"
    words = COMMANDS[command]
    assert main([*words, "--quiet"]) == 2
    plain = capsys.readouterr()
    assert plain.out == ""
    assert plain.err.startswith("error: check the")
    assert text in plain.err
    assert allowance in plain.err
    assert len(plain.err.splitlines()) == 1
    assert main([*words, "--json"]) == 2
    record = json.loads(capsys.readouterr().out)
    assert record["answer"] == "check the data"
    assert text in record["obstacles"][0]["text"]
    assert record["obstacles"][0]["lists"] == ["runs/b"]
    assert text in record["error"]["message"]
    assert not list(root.glob("reports/**/report.*"))


@pytest.mark.parametrize("kind", STOPPED)
@pytest.mark.parametrize("command", ["eval", "try", "compare"])
def test_what_is_allowed_goes_on_with_the_cause_first(
    command: str, kind: str, root: Path, capsys: Capture
) -> None:
    files, text = STOPPED[kind]
    make(root, **files)
    words = [
        *COMMANDS[command],
        f"--allow-{'unmatched' if kind == 'unmatched' else 'suspect'}",
    ]
    assert main(words) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert out.startswith("Check the data: ")
    assert text in out.partition("nDCG@10 difference")[0]
    assert "Check the data" in out
    assert "to do: Use" not in out
    assert main([*words, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    report = record["report"] if command == "try" else record
    assert [each["lists"] for each in report["collections"][0]["obstacles"]] == [["runs/b"]]
    other = "--allow-suspect" if kind == "unmatched" else "--allow-unmatched"
    assert main([*COMMANDS[command], other]) == 2  # each option allows its own kind


@pytest.mark.parametrize("kind", ["unmatched", "reversed"])
def test_tune_goes_on_with_a_warning(kind: str, root: Path, capsys: Capture) -> None:
    make(root, **STOPPED[kind][0])
    option = "--allow-unmatched" if kind == "unmatched" else "--allow-suspect"
    assert main([*COMMANDS["tune"], option, "--markdown", "-"]) == 0
    out = capsys.readouterr().out
    assert {"unmatched": "No document of b", "reversed": "read backwards"}[kind] in out


@pytest.mark.parametrize("kind", STOPPED)
def test_the_gate_has_exit_code_3(kind: str, root: Path, capsys: Capture) -> None:
    files, text = STOPPED[kind]
    make(root)
    assert main(["gate", EXPERIMENT, "--update", "--reason", "first"]) == 0
    assert main(["gate", EXPERIMENT]) == 0
    make(root, **files)
    capsys.readouterr()
    assert main(["gate", EXPERIMENT]) == 3
    error = capsys.readouterr().err
    start = "ids changed: re-chunked?" if kind == "unmatched" else "check the data:"
    assert f"refused: {start} {text}" in error
    assert "--update" not in error
    assert main(["gate", EXPERIMENT, "--json"]) == 3
    verdict = GateVerdict.model_validate_json(capsys.readouterr().out)
    assert verdict.exit_code == 3
    assert text in verdict.obstacles[0].text
    assert verdict.checks == ()
    option = "--allow-unmatched" if kind == "unmatched" else "--allow-suspect"
    assert main(["gate", EXPERIMENT, option]) != 3 or "refused" not in capsys.readouterr().err
    assert main(["gate", EXPERIMENT, "--update", "--reason", "new lists"]) == 2
    assert fb.gate(EXPERIMENT).exit_code == 3
    assert not fb.gate(EXPERIMENT, allow_unmatched=True, allow_suspect=True).obstacles


def test_a_list_that_the_candidate_does_not_read_stops_no_gate(root: Path) -> None:
    make(root)
    path = root / EXPERIMENT
    path.write_text(path.read_text().replace("system: reranked", "system: alone"))
    assert main(["gate", EXPERIMENT, "--update", "--reason", "first"]) == 0
    make(root, **UUIDS)
    path.write_text(path.read_text().replace("system: reranked", "system: alone"))
    assert main(["gate", EXPERIMENT]) == 0
    assert baseline_path(Path(EXPERIMENT)).exists()


def test_python_raises_what_the_commands_print(root: Path) -> None:
    make(root, **UUIDS)
    for call in (
        lambda **options: fb.run_experiment(EXPERIMENT, **options),
        lambda **options: fb.compare("datasets/mine/dataset.yaml", **options),
        lambda **options: fb.tune("datasets/mine/dataset.yaml", trials=2, **options),
    ):
        with pytest.raises(DataCheckError, match="No document of b") as caught:
            call()
        assert [each["kind"] for each in caught.value.obstacles] == ["unmatched"]
        call(allow_unmatched=True)


def test_rerank_lists_of_other_ids_are_stopped_too(root: Path, capsys: Capture) -> None:
    make(root, r=trec([(q, f"r_{d}", 0.5 + s / 3) for q, d, s in rows_of(shift=7)]))
    assert main(COMMANDS["eval"]) == 2
    error = capsys.readouterr().err
    assert "No document of r " in error
    assert "without the prefix 'r_'" in error
    assert "'ids: drop_prefix:r_'" in error


def test_a_rerank_list_of_another_lists_scores_needs_to_say_so(root: Path, capsys: Capture) -> None:
    dealt = [(q, d, rows_of()[i - i % 5 + (i + 4) % 5][2]) for i, (q, d, _) in enumerate(rows_of())]
    make(root, r=trec(dealt))
    assert main(COMMANDS["eval"]) == 2
    error = capsys.readouterr().err
    assert "dealt out again" in error
    path = root / "datasets/mine/dataset.yaml"
    assert "'score_space: order'" in error
    path.write_text(path.read_text().replace("score_space: unit", "score_space: order"))
    assert main(COMMANDS["eval"]) == 0


def test_a_copy_of_a_run_is_no_list_dealt_out_again(root: Path) -> None:
    make(root, r=trec(rows_of()))
    assert main(COMMANDS["eval"]) == 0


def test_chunks_of_judged_documents_are_collapsed(root: Path, capsys: Capture) -> None:
    make(root, a=trec([(q, f"{d}#{i}", s) for i, (q, d, s) in enumerate(rows_of())]))
    assert main(COMMANDS["compare"]) == 2
    error = capsys.readouterr().err
    assert "191 of 200 hold" in error
    assert """'collapse: {by: {split: "#"}, score: max}'""" in error


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"a": trec([(q, d.upper(), s) for q, d, s in rows_of()])}, "in lower case"),
        ({"a": trec([(q, f"{d}.0", s) for q, d, s in rows_of()])}, "without the final '.0'"),
        ({"a": trec([(q, f"{d}/", s) for q, d, s in rows_of()])}, "trailing slash"),
        ({"a": trec([(q, f"00{d}", s) for q, d, s in rows_of()])}, "without leading zeros"),
        ({"a": trec([(q, f"{d}#0", s) for q, d, s in rows_of()])}, "without the suffix '#0'"),
        ({"a": trec([(q, f"https://x.y/{d}", s) for q, d, s in rows_of()])}, "https://x.y/"),
        (UUIDS, None),
    ],
)
def test_the_rule_that_mends_it_is_named(
    changed: dict[str, str], reason: str | None, root: Path, capsys: Capture
) -> None:
    make(root, **changed)
    name = next(iter(changed))
    assert main(COMMANDS["compare"]) == 2
    error = capsys.readouterr().err
    assert f"No document of {name} is judged" in error
    if reason is None:
        assert "would match" not in error
        assert "have new ids" in error
    else:
        assert reason in error
        assert f"add --ids {name}=" in error


def test_judgments_that_deviate_are_named_with_the_lists_that_meet_them(
    root: Path, capsys: Capture
) -> None:
    qrels = "".join(f"q{q} 0 X-d{q} 1\n" for q in range(QUERIES))
    make(root, qrels=qrels)
    assert main(COMMANDS["compare"]) == 2
    assert "add --ids qrels=drop_prefix:X-" in capsys.readouterr().err
    both = trec([(q, f"X-{d}", s) for q, d, s in rows_of()])
    make(root, qrels=qrels, a=both)
    assert main(COMMANDS["compare"]) == 2
    remedy = "--ids qrels=drop_prefix:X- and --ids a=drop_prefix:X-"
    assert remedy in capsys.readouterr().err


def test_ids_in_another_unicode_form(root: Path, capsys: Capture) -> None:
    def accented(name: str) -> str:
        return f"é{name}"

    def decomposed(name: str) -> str:
        return unicodedata.normalize("NFD", accented(name))

    qrels = "".join(f"q{q} 0 é{name}{q} 1\n" for q in range(QUERIES) for name in "d")
    make(root, qrels=qrels, a=trec(rows_of(accented)), b=trec(rows_of(decomposed)))
    assert main(COMMANDS["compare"]) == 2
    assert "40 of 40 would match" in capsys.readouterr().err


def test_another_field_of_the_hits_is_named_and_its_option_works(
    root: Path, capsys: Capture
) -> None:
    make(root)
    lines: dict[str, list[object]] = {}
    for i, (q, d, s) in enumerate(rows_of(shift=3)):
        sku = d if i % 50 else "other"
        lines.setdefault(q, []).append({"id": f"u{i}", "score": s, "payload": {"sku": sku}})
    text = "".join(json.dumps({"qid": q, "hits": hits}) + "\n" for q, hits in lines.items())
    (root / "dense.jsonl").write_text(text)
    words = ["compare", "--qrels", "datasets/mine/qrels.txt", "datasets/mine/a.trec"]
    assert main([*words, "dense.jsonl"]) == 2
    error = capsys.readouterr().err
    assert "field 'payload.sku'" in error
    option = re.search(r"add (--run-columns \S+)\.", error)
    assert option is not None
    assert option[1] == "--run-columns dense:document=payload.sku"
    assert main([*words, "dense.jsonl", *option[1].split()]) == 0


def test_another_column_of_a_table_is_named_and_its_option_works(
    root: Path, capsys: Capture
) -> None:
    make(root)
    rows = [f"{q},u{i},{d},{s}" for i, (q, d, s) in enumerate(rows_of(shift=3))]
    (root / "dense.csv").write_text("\n".join(["query_id,doc_id,sku,score", *rows]) + "\n")
    words = ["compare", "--qrels", "datasets/mine/qrels.txt", "datasets/mine/a.trec"]
    assert main([*words, "dense.csv"]) == 2
    error = capsys.readouterr().err
    assert "--run-columns dense:document=sku." in error
    assert main([*words, "dense.csv", "--run-columns", "dense:document=sku"]) == 0


def test_lists_of_which_one_names_few_judged_documents_have_a_warning_first(
    root: Path, capsys: Capture
) -> None:
    """One hit in a hundred has a known id."""
    other = [(q, d if i % 100 == 0 else f"u{d}", s) for i, (q, d, s) in enumerate(rows_of())]
    make(root, b=trec(other))
    assert main([*COMMANDS["compare"], "--markdown", "-"]) == 0
    out = capsys.readouterr().out
    assert "judged documents in 1.0 %" in out
    assert main([*COMMANDS["compare"]]) == 0
    alerts = [line for line in capsys.readouterr().out.splitlines() if line.startswith("! ")]
    assert alerts[0].startswith("! b names judged ")


def test_two_indices_are_a_warning(root: Path, capsys: Capture) -> None:
    """Two lists of different documents, of which both are judged."""
    qrels = "".join(f"q{q} 0 d{q} 1\nq{q} 0 Xd{q} 1\n" for q in range(QUERIES))
    make(root, qrels=qrels, b=trec(rows_of(lambda name: f"X{name}", shift=3)))
    assert main([*COMMANDS["compare"], "--verbose"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "common document: a and b." in out
    # One of them names hardly any judged document: then they are two kinds of ids.
    make(root, qrels=qrels.replace("Xd", "Yd").replace("Yd7 ", "Xd7 "), b=UUIDS["b"])
    lines = [(q, f"X{d}", s) for q, d, s in rows_of(shift=3)]
    (root / "datasets/mine/b.trec").write_text(trec(lines))
    assert main([*COMMANDS["compare"]]) == 2
    assert "b shares no document" in capsys.readouterr().err


def test_queries_that_do_not_meet_stay_an_error(root: Path, capsys: Capture) -> None:
    make(root, b=trec([(f"other{q}", d, s) for q, d, s in rows_of()]))
    assert main(COMMANDS["compare"]) == 2
    assert "query in common" in capsys.readouterr().err


def test_intended_constants_are_no_obstacle(root: Path) -> None:
    make(root, **CONSTANT)
    path = root / "datasets/mine/dataset.yaml"
    for option in ("source_ties: file", "rank_from: column"):
        text = FILES["datasets/mine/dataset.yaml"].replace("b.trec", f"b.trec, {option}")
        path.write_text(text)
        if option.startswith("rank_from"):
            rows = [f"q{q} Q0 d{q} 1 1 t\nq{q} Q0 n{q} 2 1 t\n" for q in range(QUERIES)]
            (root / "datasets/mine/b.trec").write_text("".join(rows))
        assert main(COMMANDS["eval"]) == 0
    ranked = "".join(f"q{q} d{q} 1\nq{q} n{q} 2\n" for q in range(QUERIES))
    make(root, b=ranked)
    assert main(COMMANDS["eval"]) == 0


def test_numbers_of_the_lists_stand_in_the_report(root: Path) -> None:
    make(root)
    report = fb.run_experiment(EXPERIMENT)
    infos = {info.key: info for info in report.collections[0].runs}
    assert set(infos) == {"runs/a", "runs/b", "rerank/r"}
    # 200 places, of which 40 have the relevant document; n0 … n39 are judged, too.
    dataset = load_dataset(root / "datasets/mine/dataset.yaml", cache=False)
    judged = set(dataset.qrels.vocabulary)
    for key, info in infos.items():
        kind, name = key.split("/")
        rows = getattr(dataset, {"runs": "runs", "rerank": "rerankers"}[kind])[name].to_dict()
        documents = [d for each in rows.values() for d in each]
        assert info.judged_share == sum(d in judged for d in documents) / len(documents)
        for other, share in info.common_documents.items():
            part, of = other.split("/")
            table = getattr(dataset, {"runs": "runs", "rerank": "rerankers"}[part])[of]
            own, its = set(documents), set(table.vocabulary)
            assert share == len(own & its) / min(len(own), len(its))
        assert len(info.common_documents) == 2
    assert fb.run_experiment(EXPERIMENT).collections[0].runs == report.collections[0].runs


def test_queries_without_a_relevant_document_stand_beside_the_answer(
    root: Path, capsys: Capture
) -> None:
    qrels = "".join(f"q{q} 0 d{q} {int(q >= 10)}\n" for q in range(QUERIES))
    make(root, qrels=qrels)
    for command in ("eval", "try", "compare"):
        assert main(COMMANDS[command]) == 0
        out = " ".join(capsys.readouterr().out.split())
        text = "10 of 40 queries have"
        assert text in out
        assert main([*COMMANDS[command], "--json"]) == 0
        record = json.loads(capsys.readouterr().out)
        collection = (record["report"] if command == "try" else record)["collections"][0]
        assert collection["queries_without_relevant"] == 10
        for row in collection["systems"]:
            if row["kind"] == "system":
                mean = row["measures"]["nDCG@10"]["mean"]
                assert collection["means_of_others"][row["name"]] == pytest.approx(mean * 40 / 30)
    assert text in " ".join((root / "reports/mine/report.md").read_text().split())
    make(root)
    assert main(COMMANDS["eval"]) == 0
    assert "no relevant document" not in capsys.readouterr().out
