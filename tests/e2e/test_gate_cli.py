"""``gate`` and ``explain`` as a user runs them, and the annotations of a workflow."""

import json
import re
import shlex
import shutil
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from fusion_bench.cli import main
from fusion_bench.cli.gate import format_annotation
from tests.commands import next_commands
from tests.gate.cases import EXPERIMENT, renew_baseline
from tests.tiny import edit

Capture = pytest.CaptureFixture[str]
BASELINE = "reports/baselines/mine.json"


@pytest.fixture
def root(mine: Path) -> Path:
    return mine


def ran(capsys: Capture, *arguments: str) -> tuple[int, str, str]:
    code = main(arguments)
    out, err = capsys.readouterr()
    return code, out, err


def worse(root: Path) -> None:
    edit(root, EXPERIMENT, "live: {runs: [a]}", "live: {runs: [b]}")


def test_the_life_of_a_gate(root: Path, capsys: Capture) -> None:
    code, out, err = ran(capsys, "gate", EXPERIMENT)
    assert (code, out) == (2, "")
    assert f"no baseline at {BASELINE}" in err
    command = re.findall(r"fusion-bench (gate .*--update --reason \S+)", err)[0]
    assert shlex.split(command) == ["gate", EXPERIMENT, "--update", "--reason", "…"]
    code, out, err = ran(capsys, "gate", EXPERIMENT, "--update", "--reason", "the start")
    assert (code, err) == (0, "")
    assert "update 1: the start" in out
    assert next_commands(out) == [["gate", EXPERIMENT]]
    assert "mine: MRR@10 1.0000, nDCG@10 1.0000" in out
    assert "\n! " not in out  # the other fusion loses too much to say what the queries can decide
    code, out, err = ran(capsys, "gate", EXPERIMENT)
    assert (code, err) == (0, "")
    assert out.startswith("passed: 4 checks (4 unchanged)\n")
    worse(root)
    code, out, err = ran(capsys, "gate", EXPERIMENT, "-v")
    assert (code, err) == (1, "")
    assert "['a']" in out
    assert "mine, query q11: MRR@10 1.0000 → 0.2500" in out
    code, out, err = ran(capsys, "gate", EXPERIMENT)
    assert (code, err) == (1, "")
    assert out.startswith("regressed: 4 checks (4 regressed)\n")
    assert "\n- mine / MRR@10: 1.0000 → 0.5208, -47.9 %: 0 " in out
    assert next_commands(out) == [
        ["explain", EXPERIMENT, "q11"],
        ["gate", EXPERIMENT, "--anchor", "--reason", "…"],
    ]
    assert ran(capsys, *next_commands(out)[0])[0] == 0
    assert ran(capsys, *next_commands(out)[1])[0] == 0
    assert ran(capsys, "gate", EXPERIMENT)[0] == 0


def test_a_loser_that_top_k_cuts_keeps_its_rank_and_its_term(root: Path, capsys: Capture) -> None:
    live = "live: {runs: [b], blend: {method: linear, reranker: r, beta: %s}, top_k: %s}"
    edit(root, EXPERIMENT, "live: {runs: [a]}", live % ("1.0", 10))
    assert ran(capsys, "gate", EXPERIMENT, "--update", "--reason", "r")[0] == 0
    edit(root, EXPERIMENT, live % ("1.0", 10), live % ("0.001", 2))
    code, out, _ = ran(capsys, "gate", EXPERIMENT, "-v")
    assert code == 1
    # b has d2 at 3 of 5, the reranker first
    assert all(part in out for part in ("1 → 3 (below top_k 2)", "r 0.9 → 0.0009"))


def test_a_table_through_a_pipe_is_as_wide_as_it_takes_or_as_it_is_told(
    root: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran(capsys, "gate", EXPERIMENT, "--update", "--reason", "r")
    worse(root)
    monkeypatch.delenv("COLUMNS", raising=False)
    piped = ran(capsys, "gate", EXPERIMENT, "-v")[1]
    assert max(map(len, piped.splitlines())) <= 120
    monkeypatch.setenv("COLUMNS", "250")
    wide = ran(capsys, "gate", EXPERIMENT, "-v")[1]
    monkeypatch.setenv("COLUMNS", "80")
    narrow = ran(capsys, "gate", EXPERIMENT, "-v")[1]
    assert max(map(len, narrow.splitlines())) <= 80
    table = narrow[narrow.index("\nChecks") :]
    header = " ".join(table[: table.index("─")].split())
    for heading in ("status", "difference", "max_drop", "detectable", "drop"):
        assert heading in header
    assert "P(regressed)" in wide[: wide.index("─")]
    assert "P(regressed)" not in header
    assert "P(pass) at " in " ".join(table[table.index("Left out here") :].split())
    assert "\x1b" not in piped + wide + narrow
    narrow = ran(capsys, "eval", EXPERIMENT, "-v")[1]
    assert max(map(len, narrow.splitlines())) <= 80
    assert "here: 95 % interval" in " ".join(narrow.split())


def test_the_next_commands_keep_the_options_and_name_the_dataset(
    root: Path, capsys: Capture
) -> None:
    for name in ("mine", "other"):
        folder = root / "lists" / name
        shutil.copytree(root / "datasets/mine", folder)
        spec = folder / "dataset.yaml"
        spec.write_text(spec.read_text().replace("name: mine", f"name: {name}-1"))
    edit(root, EXPERIMENT, "dataset: mine", "datasets: [mine, other]")
    options = ("--datasets", "lists", "--baseline-file", "a b.json")
    ran(capsys, "gate", EXPERIMENT, *options, "--update", "--reason", "r")
    assert "Next:" not in ran(capsys, "gate", EXPERIMENT, *options)[1]
    run = (root / "lists/mine/b.trec").read_text()
    (root / "lists/other/a.trec").write_text(run)
    code, out, _ = ran(capsys, "gate", EXPERIMENT, *options)
    assert code == 1
    explain, accept = next_commands(out)
    assert explain[:3] == ["explain", EXPERIMENT, "q11"]
    assert explain[explain.index("--dataset") + 1] == "other"
    assert accept[accept.index("--baseline-file") + 1] == "a b.json"
    assert ran(capsys, *explain)[0] == 0
    assert ran(capsys, *accept)[0] == 0


def test_an_update_that_passes_is_offered(root: Path, capsys: Capture) -> None:
    worse(root)
    ran(capsys, "gate", EXPERIMENT, "--update", "--reason", "r")
    edit(root, EXPERIMENT, "live: {runs: [b]}", "live: {runs: [a]}")
    code, out, _ = ran(capsys, "gate", EXPERIMENT)
    assert code == 0
    assert next_commands(out) == [["gate", EXPERIMENT, "--update", "--reason", "…"]]


def test_an_update_shows_what_it_changes(root: Path, capsys: Capture) -> None:
    update = ("gate", EXPERIMENT, "--update", "--reason")
    ran(capsys, *update, "first")
    code, out, err = ran(capsys, *update, "first")
    assert (code, out) == (2, "")
    assert "nothing to update" in err
    code, out, _ = ran(capsys, *update, "agreed")
    assert code == 0
    assert out.endswith(" 1: first; agreed\n")
    worse(root)
    code, out, err = ran(capsys, *update, "b is cheaper")
    assert (code, out) == (2, "")
    assert "--anchor --reason" in err
    anchor = ("gate", EXPERIMENT, "--anchor", "--reason")
    code, out, _ = ran(capsys, *anchor, "b is cheaper")
    assert code == 0
    assert " are the anchor " in out
    assert re.search(r"^mine / MRR@10 +regressed +1\.0000 +0\.5208 +-0\.4792 ", out, re.MULTILINE)
    assert "- mine, query q11: MRR@10 1.0000 → 0.2500" in out
    assert "update 2: b is cheaper" in out
    record = json.loads(ran(capsys, *update, "again", "--json")[1])
    assert record["reasons"] == ["b is cheaper", "again"]
    assert [check["status"] for check in record["checks"]] == ["regressed"] * 4


def test_every_form_of_the_decision(root: Path, capsys: Capture) -> None:
    ran(capsys, "gate", EXPERIMENT, "--update", "--reason", "<start> & [go]")
    worse(root)
    code, out, _ = ran(
        capsys,
        *("gate", EXPERIMENT, "--json", "--junit", "ci/gate.xml"),
        *("--markdown", "ci/gate.md", "--comment", "ci/comment.md"),
    )
    assert code == 1
    result = json.loads(out)
    assert result["format"] == "fusion-bench-gate"
    assert result["exit_code"] == 1
    assert [c["status"] for c in result["checks"]] == ["regressed"] * 4
    assert len(result["regressions"]) == 5
    suite = ET.parse(root / "ci/gate.xml").getroot()[0]  # noqa: S314 - written by the test
    assert suite.attrib["tests"] == suite.attrib["failures"] == "4"
    assert {case.attrib["name"] for case in suite} >= {"mine / local / RR@10", "mine / nDCG@10"}
    page = (root / "ci/gate.md").read_text()
    assert page.startswith("# ❌ ")
    assert "“\\<start\\> \\& \\[go\\]”" in page
    assert "| runs | \\['a'\\] | \\['b'\\] |" in page
    comment = (root / "ci/comment.md").read_text(encoding="utf-8")
    assert "| 1.0000 → 0.5208 | -0.4792, allowed -0.0100 | " in comment
    assert "### Checks" in comment
    for name in ("gate.json", "gate.md", "gate.html", "gate.xml"):
        assert (root / "reports/mine" / name).exists()
    _, out, _ = ran(capsys, "gate", EXPERIMENT, "--markdown", "-")
    assert out == page


def test_a_refusal_is_an_error_in_junit_and_a_reason_in_markdown(
    root: Path, capsys: Capture
) -> None:
    code, out, err = ran(capsys, "gate", EXPERIMENT, "--json", "--junit", "gate.xml")
    assert code == 2
    assert json.loads(out)["refusals"]
    assert err.count("\n") == 1
    suite = ET.parse(root / "gate.xml").getroot()[0]  # noqa: S314 - written by the test
    assert suite.attrib["errors"] == suite.attrib["tests"] == "1"
    assert "no baseline" in (root / "reports/mine/gate.md").read_text()


def test_outputs_are_ignored_by_git_and_baselines_are_not(root: Path, capsys: Capture) -> None:
    ran(capsys, "gate", EXPERIMENT)
    assert (root / "reports/mine/.gitignore").exists()
    beside = ("--baseline-file", "kept/mine.json", "--out", "kept")
    ran(capsys, "gate", EXPERIMENT, *beside)
    assert (root / "kept/gate.json").exists()
    ran(
        capsys, "gate", EXPERIMENT, "--baseline-file", "kept/mine.json", "--update", "--reason", "r"
    )
    ran(capsys, "gate", EXPERIMENT, "--update", "--reason", "r")
    ignored = {path.parent.relative_to(root).as_posix() for path in root.rglob(".gitignore")}
    assert {name for name in ignored if not name.startswith("datasets")} == {"reports/mine"}
    below = ("--baseline-file", "reports/mine/base.json", "--update", "--reason", "r")
    code, _, err = ran(capsys, "gate", EXPERIMENT, *below)
    assert code == 2
    assert "keeps git " in " ".join(err.split())


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        *[(["--update", *reason], "explain why the") for reason in ([], ["--reason", "  "])],
        (["--reason", "because"], "needs --update"),
        (["--simulations", "200"], "needs --self-test"),
        (["--update", "--reason", "r", "--self-test"], "does not go with --update"),
        (
            ["--update", "--reason", "r", "--junit", "x.xml"],
            "--update or --self-test",
        ),
    ],
)
def test_options_that_do_not_go_together(
    root: Path, capsys: Capture, arguments: list[str], complaint: str
) -> None:
    code, _, err = ran(capsys, "gate", EXPERIMENT, *arguments)
    assert code == 2
    assert complaint in " ".join(err.split())
    assert not (root / BASELINE).exists()


# ── explain


def test_explain_a_query(root: Path, capsys: Capture) -> None:
    assert (root / EXPERIMENT).exists()
    code, out, err = ran(capsys, "explain", EXPERIMENT, "q3", "--system", "plain")
    assert (code, err) == (0, "")
    assert out.startswith("plain on query q3: 5 ")
    assert "n0 ranks above d3: 0.03252 > 0.03202: mostly b" in out
    code, out, err = ran(capsys, "explain", EXPERIMENT, "q3", "--system", "plain", "--top", "1")
    assert "ranks above" not in out


def test_texts_stand_beside_ids(root: Path, capsys: Capture) -> None:
    edit(
        root,
        "datasets/mine/dataset.yaml",
        "queries: queries.jsonl\n",
        "queries: queries.jsonl\ndocuments: documents.jsonl\n",
    )
    locks = {"_id": "d11", "title": "Keys | locks", "text": "x"}
    documents = [locks, {"_id": "n0", "text": "y\nz"}]
    (root / "datasets/mine/documents.jsonl").write_text("\n".join(map(json.dumps, documents)))
    queries = root / "datasets/mine/queries.jsonl"
    queries.write_text(queries.read_text().replace('"q11",', f'"q11", "text": "why {"so " * 30}",'))
    ran(capsys, "gate", EXPERIMENT, "--update", "--reason", "r")
    worse(root)
    out = ran(capsys, "gate", EXPERIMENT, "-v")[1]
    query = f"why {'so ' * 19}".strip()[:60].strip()
    assert f"query q11 “{query}…”: MRR@10" in out
    assert "    d11 “Keys | locks” (grade 1) 1 → 4: " in out
    command = ("explain", EXPERIMENT, "q11")
    out = ran(capsys, *command)[1]
    assert f"“{query}…”" in out
    assert re.search(r"^d11 +4 .* Keys \| locks$", out, re.MULTILINE)
    assert re.search(r"^n0 +1 .* y z$", out, re.MULTILINE)
    assert "d11 “Keys | locks”: rank 4" in ran(capsys, *command, "d11")[1]
    records = json.loads(ran(capsys, *command, "--json")[1])
    assert {record["document"]: record["title"] for record in records}["d11"] == "Keys | locks"


def test_explain_a_document_that_is_cut_and_beyond_the_reranker(
    root: Path, capsys: Capture
) -> None:
    fusion = "fusion: {method: rrf, normalize: three_lists, weights: {a: 9}}"
    blend = "blend: {method: linear, reranker: r, depth: 2}"
    edit(
        root,
        EXPERIMENT,
        "live: {runs: [a]}",
        f"live: {{runs: [a, b], {fusion}, {blend}, top_k: 2}}",
    )
    edit(root, "datasets/mine/a.trec", "q3 Q0 n3 5 0.5 a\n", "")
    code, out, _ = ran(capsys, "explain", EXPERIMENT, "q3", "n3", "--against", "d3")
    assert code == 0
    assert "n3: rank 5, below top_k 2 (" in out
    assert "not retrieved by a" in out
    assert re.search(r"^limit +\+1$", out, re.MULTILINE)
    assert "n3 is beyond " in out


def test_explain_without_an_experiment_asks_for_one(root: Path, capsys: Capture) -> None:
    assert not (root / "experiments/default.yaml").exists()
    code, _, err = ran(capsys, "explain", "q3")
    assert code == 2
    assert "'QUERY'" in err
    code, _, err = ran(capsys, "explain", "q3", "d3")
    assert code == 2
    assert "for EXPERIMENT: q3: " in err


def test_explain_a_document(root: Path, capsys: Capture) -> None:
    blend = "{runs: [a, b], blend: {method: linear, reranker: r, beta: 0.7}}"
    edit(root, EXPERIMENT, "live: {runs: [a]}", f"live: {blend}")
    command = ("explain", EXPERIMENT, "q3", "d3")
    code, out, err = ran(capsys, *command)
    assert (code, err) == (0, "")
    assert re.search(r"^a +\+0.01639 +1 +0.9 +1 +keyword$", out, re.MULTILINE)
    assert out.startswith("live on query q3: 5 ")
    assert re.search(r"^rerank r +\+0.56 +0.7 × 0.8; raw 0.8$", out, re.MULTILINE)
    assert "0.3 × 0.03202; the fused score\n" in out
    assert "(ranked)" not in out
    assert "n0 ranks above d3" in out
    code, out, _ = ran(capsys, *command, "--against", "n3", "--json")
    found = json.loads(out)
    assert [trace["document"] for trace in found] == ["d3", "n3"]
    assert sum(found[0]["contributions"].values()) == pytest.approx(found[0]["score"])


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["q99"], "dataset 'mine': no query 'q99'"),
        (["x"], "among the 60 judged"),
        (["q1", "d99"], "document 'd99' for query"),
        (["q1", "--against", "d1"], "needs a DOCUMENT"),
        (["q1", "--system", "dead"], "'dead' (known: live, plain)"),
        (["q1", "--dataset", "yours"], "'yours' (known: mine)"),
    ],
)
def test_what_cannot_be_explained(
    root: Path, capsys: Capture, arguments: list[str], complaint: str
) -> None:
    assert root
    code, _, err = ran(capsys, "explain", EXPERIMENT, *arguments)
    assert code == 2
    assert complaint in " ".join(err.split())


# ── annotations of GitHub Actions: one line for whatever did not pass, at its line in the YAML


@pytest.fixture
def workflow(mine: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.delenv("GITHUB_WORKSPACE", raising=False)
    return mine


def list_annotations(capsys: Capture, *options: str) -> list[tuple[str, str]]:
    capsys.readouterr()
    main(["gate", EXPERIMENT, *options])
    lines = capsys.readouterr().err.splitlines()
    given = [line.removeprefix("::").split("::")[0] for line in lines if line.startswith("::")]
    levels = [text.split(" ", 1) for text in given]
    yaml = Path(EXPERIMENT).read_text().splitlines()
    found = []
    for level, properties in levels:
        values = dict(pair.split("=", 1) for pair in properties.split(","))
        assert values["file"] == EXPERIMENT
        found.append((level, yaml[int(values["line"]) - 1].strip()))
    return found


def test_each_regression_points_to_its_check(workflow: Path, capsys: Capture) -> None:
    renew_baseline(workflow)
    assert list_annotations(capsys) == []
    edit(workflow, EXPERIMENT, "live: {runs: [a]}", "live: {runs: [b]}")
    checks = ("RR@10: {max_drop: 0.01}", "nDCG@10: {max_drop: 0.01}")
    assert list_annotations(capsys) == [("error", checks[i]) for i in (0, 0, 1, 1)]
    assert len(list_annotations(capsys, "--json")) == 4


def test_guards_golden_queries_and_refusals_point_to_their_keys(
    workflow: Path, capsys: Capture
) -> None:
    assert list_annotations(capsys) == [("error", "gate:")]
    edit(
        workflow,
        EXPERIMENT,
        "  slices: [local]\n",
        "  inconclusive: warn\n  slices: [absent]\n  guards:\n"
        "    - {measure: RR@10, max_loss: 0.9}\n    - {measure: RR@10, max_loss: 0.1}\n"
        "  golden:\n    - {query: q99, document: d1}\n",
    )
    renew_baseline(workflow)
    edit(workflow, EXPERIMENT, "live: {runs: [a]}", "live: {runs: [b]}")
    found = list_annotations(capsys)
    assert ("error", "- {measure: RR@10, max_loss: 0.1}") in found
    assert ("error", "- {measure: RR@10, max_loss: 0.9}") not in found
    assert ("error", "- {query: q99, document: d1}") in found
    assert len(found) == 6  # four checks, two of them without a query


def test_an_error_points_to_its_line(workflow: Path, capsys: Capture) -> None:
    edit(workflow, EXPERIMENT, "  system: live", "  system: dead")
    assert list_annotations(capsys) == [("error", "system: dead")]


def test_elsewhere_there_is_none(
    workflow: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert workflow
    monkeypatch.delenv("GITHUB_ACTIONS")
    assert list_annotations(capsys) == []


def test_no_text_ends_an_annotation_or_begins_another() -> None:
    assert format_annotation("error", Path("a,b:c%.yaml"), 3, "1\n::error::2\r %,:") == (
        "::error file=a%2Cb%3Ac%25.yaml,line=3,title=fusion-bench gate::1%0A::error::2%0D %25,:"
    )


def test_files_are_named_from_the_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    inside = format_annotation("notice", tmp_path / "x/e.yaml", None, "m")
    assert inside == "::notice file=x/e.yaml,title=fusion-bench gate::m"
    assert "file=/elsewhere.yaml" in format_annotation("notice", Path("/elsewhere.yaml"), None, "m")
