"""Whatever a user can get wrong ends in one line that says where, the rule and what to do."""

import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from fusion_bench.cli import main
from fusion_bench.methods.blend import blends
from fusion_bench.util.formatting import escape_control_chars
from tests import tiny
from tests.edits import Edit, gone, nothing, replaced, text
from tests.tiny import DATASET, EXPERIMENT, edit

QRELS, QUERIES = "datasets/tiny/qrels.txt", "datasets/tiny/queries.jsonl"
A, R = "datasets/tiny/a.trec", "datasets/tiny/r.trec"
EVAL = ("eval", EXPERIMENT, "--no-plots", "--out", "out")


@dataclass(frozen=True)
class Case:
    """What is broken, and what the message must say."""

    name: str
    spoil: Edit
    says: tuple[str, ...]
    arguments: tuple[str, ...] = EVAL
    environment: dict[str, str] = field(default_factory=dict)


def second_dataset(root: Path) -> None:
    other = root / "datasets/other"
    other.mkdir()
    for name in tiny.FILES:
        if name.startswith("datasets/"):
            (other / Path(name).name).write_text(tiny.FILES[name], encoding="utf-8")
    edit(root, EXPERIMENT, "dataset: tiny", "datasets: [tiny, other]")


def system(new: str) -> Edit:
    return replaced(EXPERIMENT, "  one:\n    runs: [a, b]\n", f"  one:\n{new}")


def fusion(options: str) -> Edit:
    return replaced(EXPERIMENT, "{method: rrf_v2}", options)


def blend(options: str) -> Edit:
    return replaced(EXPERIMENT, "{method: position_aware, reranker: r}", options)


def linked_in_a_circle(root: Path) -> None:
    (root / A).unlink()
    (root / A).symlink_to("a.trec")


def far_apart(method: str) -> Edit:
    def spoil(root: Path) -> None:
        edit(
            root, EXPERIMENT, "{method: rrf_v2}", f"{{method: weighted_score, normalize: {method}}}"
        )
        edit(root, A, "q1 Q0 d2 1 9 a", "q1 Q0 d2 1 1.7e308 a")
        edit(root, A, "q1 Q0 d1 2 8 a", "q1 Q0 d1 2 -1.7e308 a")

    return spoil


def gated(root: Path) -> None:
    edit(root, EXPERIMENT, "baseline: one\n", "baseline: one\ngate: {RR@10: {max_drop: 0.01}}\n")


def top(line: str) -> Edit:
    return replaced(EXPERIMENT, "baseline: one\n", f"baseline: one\n{line}\n")


#: Nine times nine times nine … of one value, from ten lines.
BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n"
    for before, name in zip("abcdefghi", "bcdefghij", strict=True)
)
SCREEN = "\x1b[31m"
GATE = ("gate", EXPERIMENT)
RERANK = ("rerank", "--dataset", "tiny", "--system", "a", "--store", "s.sqlite")
FUSION, BLEND = f"{EXPERIMENT}:9: systems.two.fusion", f"{EXPERIMENT}:10: systems.two.blend"

CASES = [
    # files
    Case(
        "no dataset",
        replaced(EXPERIMENT, "dataset: tiny", "dataset: tony"),
        (f"{EXPERIMENT}:1: dataset", "'tony'", "'tiny'", "known:"),
    ),
    Case(
        "no dataset.yaml",
        replaced(EXPERIMENT, "dataset: tiny", "dataset: there/dataset.yaml"),
        ("there/dataset.yaml", "no such file"),
    ),
    Case("name alone", nothing, ("'experiments/e.yaml'",), arguments=("eval", "e")),
    Case(
        "slip in a path",
        replaced(DATASET, "a.trec", "aa.trec"),
        (f"{DATASET}:5: runs.a.path", "aa.trec", "'a.trec'"),
    ),
    Case("no qrels", gone(QRELS), (f"{DATASET}:2: qrels", "qrels.txt", "no such file")),
    Case("empty experiment", text(EXPERIMENT, ""), (EXPERIMENT, "a mapping", "given nothing")),
    Case("null experiment", text(EXPERIMENT, "dataset: \x00"), (EXPERIMENT, "not valid")),
    Case(
        "confidence",
        text(QUERIES, '{"id": "q1"}\n{"id": "q2", "confidence": 1.5}\n'),
        ("queries.jsonl:2", "1.5"),
    ),
    Case("circle of links", linked_in_a_circle, ("runs.a.path", "'a.trec'", "loop")),
    Case(
        "endless id",
        text(QUERIES, '{"id": "' + "q" * 1_000_000 + '"}'),
        ("no query in common", " … ", "check that both use the same"),
    ),
    Case("id that colours", text(A, f"{SCREEN}x1 Q0 d1 1 1 a\n"), ("'\\x1b[31mx1'",)),
    *[
        Case(f"overflow in {method}", far_apart(method), ("'a'", method))
        for method in ("none", "min_max", "z_score", "l2", "sum", "dbsf")
    ],
    # YAML
    Case("aliases of aliases", text(EXPERIMENT, BOMB), (EXPERIMENT, "100,000")),
    Case(
        "endless YAML", text(EXPERIMENT, "dataset: " + "x" * 3_000_000), (EXPERIMENT, "2,000,000")
    ),
    Case(
        "top key",
        top("measure: [nDCG]"),
        (f"{EXPERIMENT}:4: measure", "'measure'", "'measures'", "known: desc"),
    ),
    Case(
        "key of a system",
        system("    runs: [a, b]\n    dept: 3\n"),
        (f"{EXPERIMENT}:7: systems.one.dept", "'dept'", "'depth'", "known:"),
    ),
    Case(
        "key of a fusion",
        fusion("{method: rrf_v2, bonis: {1: 1}}"),
        (f"{FUSION}.bonis", "'bonis'", "'bonus'", "known: method, weights"),
    ),
    Case(
        "key of a normalizer",
        fusion("{method: weighted_score, normalize: {method: min_max, constnt: 1}}"),
        (f"{FUSION}.normalize.constnt", "'constant'", "known: method"),
    ),
    Case(
        "key of a dataset",
        replaced(DATASET, "qrels: qrels.txt", "qrel: qrels.txt"),
        (f"{DATASET}:2: qrel", "'qrel'", "'qrels'", "known: name, version"),
    ),
    Case("key given twice", top("baseline: two"), (f"{EXPERIMENT}:4: baseline", "line 3")),
    Case(
        "key among systems",
        replaced(
            EXPERIMENT,
            "    fusion: {method: rrf_v2}\n    blend: {method: position_aware, reranker: r}\n",
            "  fusion: {method: rrf_v2}\n",
        ),
        (f"{EXPERIMENT}:9: systems.fusion", "'two'"),
    ),
    Case("no baseline", replaced(EXPERIMENT, "baseline: one\n", ""), (f"{EXPERIMENT}: baseline",)),
    Case("bare blend", blend("replace"), (f"{BLEND}.reranker",)),
    Case("no reranker", blend("{method: position_aware}"), (f"{BLEND}.reranker",)),
    # names
    Case(
        "fusion method",
        fusion("{method: rff}"),
        (f"{FUSION}", "'rff'", "'rrf'", "fusion-bench methods"),
    ),
    Case("fusion as number", fusion("7"), (f"{FUSION}",)),
    Case(
        "blend",
        blend("positional"),
        (f"{BLEND}", "'positional'", "(known: ", *blends.load_built_in()),
    ),
    Case(
        "normalizer",
        fusion("{method: weighted_score, normalize: minmax}"),
        (f"{FUSION}.normalize", "'minmax'", "'min_max'", "known:"),
    ),
    Case(
        "measure",
        replaced(EXPERIMENT, "nDCG@10", "nDGC@10"),
        (f"{EXPERIMENT}:2: measures.1", "'nDGC@10'", "known:"),
    ),
    Case(
        "run",
        system("    runs: [a, c]\n"),
        (f"{EXPERIMENT}:6: systems.one.runs.1", "'c'", "known: a, b"),
    ),
    Case(
        "runs as text",
        system("    runs: a\n"),
        (f"{EXPERIMENT}:6: systems.one.runs", "'a'"),
    ),
    Case(
        "reranker",
        blend("{method: replace, reranker: rr}"),
        (f"{BLEND}.reranker", "'rr'", "'r'", "known: r"),
    ),
    Case(
        "baseline",
        replaced(EXPERIMENT, "baseline: one", "baseline: onne"),
        (f"{EXPERIMENT}:3: baseline", "'onne'", "'one'", "known: one, two"),
    ),
    Case("ties", top("ties: tec"), (f"{EXPERIMENT}:4: ties", "'trec'", "'first_seen'", "'tec'")),
    # values
    Case(
        "unused weight",
        fusion("{method: rrf, weights: {graph: 2}}"),
        (f"{FUSION}: weights", "'graph'", "a, b, keyword, question"),
    ),
    Case(
        "no question",
        replaced(DATASET, "question, ", ""),
        (f"{FUSION}", "'question'", "'roles: [question]'", "or use rrf"),
    ),
    Case(
        "no system",
        text(EXPERIMENT, "dataset: tiny\nbaseline: one\nsystems: {}\n"),
        (f"{EXPERIMENT}:3: systems", "at least 1 item", "given {}"),
    ),
    Case(
        "named system",
        system("    runs: [a, b]\n    name: uno\n"),
        (f"{EXPERIMENT}:4: systems", "'s name: remove '"),
    ),
    Case(
        "neither of both",
        replaced(EXPERIMENT, "dataset: tiny\n", ""),
        (EXPERIMENT, "'dataset'", "'datasets'"),
    ),
    Case(
        "datasets alike",
        second_dataset,
        ("datasets/other/dataset.yaml:1: name", "'tiny'", "its own name"),
    ),
    # environment and options
    Case("switch", nothing, ("'maybe'",), environment={"RAG_FUSION_V2_ENABLED": "maybe"}),
    Case(
        "out is a file",
        text("out.txt", "precious"),
        ("--out out.txt:",),
        arguments=("eval", EXPERIMENT, "--out", "out.txt"),
    ),
    Case(
        "out below file",
        text("out.txt", "precious"),
        ("--out out.txt/sub:",),
        arguments=("eval", EXPERIMENT, "--out", "out.txt/sub"),
    ),
    Case(
        "colouring name",
        nothing,
        ("\\x1b[31m.yaml: no such file",),
        arguments=("eval", f"{SCREEN}.yaml"),
    ),
    Case("empty split", nothing, ("unknown split ''",), arguments=(*EVAL, "--split", "")),
    Case("gate into file", gated, ("is a file: name a folder",), arguments=(*GATE, "--out", A)),
    Case(
        "binary reason",
        gated,
        ("'--reason': not UTF-8 text",),
        arguments=(*GATE, "--update", "--reason", "a\udcff"),
    ),
    Case(
        "unjudged query",
        nothing,
        ("'\\x1b[31mzz'",),
        arguments=("explain", EXPERIMENT, f"{SCREEN}zz"),
    ),
    Case(
        "unreturned document",
        nothing,
        ("'zz'", "'q1'"),
        arguments=("explain", EXPERIMENT, "q1", "zz"),
    ),
    Case(
        "binary rerank configuration",
        text("c.yaml", b"\xff"),
        ("c.yaml",),
        arguments=(*RERANK, "--config", "c.yaml"),
    ),
    Case(
        "unknown choice",
        nothing,
        ("'--plot-format': 'word' is not one of 'png', 'svg'",),
        arguments=(*EVAL, "--plot-format", "word"),
    ),
    Case("report without JSON", nothing, ("qrels.txt",), arguments=("compare", QRELS)),
    Case("run files alike", nothing, ("'a'",), arguments=("compare", "--qrels", QRELS, A, A)),
]


def one_line(err: str, case: Case) -> None:
    assert err.endswith("\n"), err
    assert err.count("\n") == 1, err
    assert err.startswith("error: "), err
    assert "Traceback" not in err
    for part in case.says:
        assert part in err, f"{part!r} is not in {err!r}"


def files(root: Path) -> set[Path]:
    return {path for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_one_line_and_exit_code_2(
    case: Case,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    case.spoil(tiny.make(tmp_path))
    before = files(tmp_path)
    monkeypatch.chdir(tmp_path)
    for name, value in case.environment.items():
        monkeypatch.setenv(name, value)

    assert main(case.arguments) == 2

    out, err = capsys.readouterr()
    one_line(err, case)
    assert out == ""
    assert files(tmp_path) == before

    assert main((*case.arguments, "--json")) == 2
    out, no_error = capsys.readouterr()
    assert no_error == ""
    assert f"error: {text_of(**json.loads(out)['error'])}\n" == err


def text_of(file: str | None, line: int | None, message: str) -> str:
    """What people read, from what programs read."""
    place = "" if file is None else f"{file}: " if line is None else f"{file}:{line}: "
    return escape_control_chars(f"{place}{message}")


def test_no_two_cases_share_a_name() -> None:
    assert len({case.name for case in CASES}) == len(CASES)


def test_the_files_are_fine_when_nothing_is_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tiny.make(tmp_path))
    assert main(EVAL) == 0
    assert capsys.readouterr().err == ""
