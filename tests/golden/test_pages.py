"""What each command prints, compared with a stored page.

``pytest tests/golden --renew-golden`` writes the pages again: read their difference in review.
"""

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fusion_bench.cli import main
from tests.attacks.project import EXPERIMENT, QRELS, QUERIES, RUN
from tests.commands import leaf_commands, options_of
from tests.engines.pull import functions
from tests.golden.project import make_project, worsen

PAGES = Path(__file__).parent / "pages"
OTHER = "datasets/mine/b.trec"
#: Command → its exit code and the words of its call.
CALLS = {
    "dataset classify": (0, f"dataset classify {QUERIES} --out types.jsonl"),
    "compare": (0, "compare before after --candidate live"),
    "dataset check": (0, "dataset check mine"),
    "dataset list": (0, "dataset list"),
    "dataset new": (0, f"dataset new own {RUN} {OTHER} --qrels {QRELS}"),
    "dataset show": (0, "dataset show mine"),
    "dataset unjudged": (0, f"dataset unjudged {EXPERIMENT} --system plain --depth 1"),
    "diagnose": (0, f"diagnose {EXPERIMENT} --out diagnosis"),
    "eval": (0, f"eval {EXPERIMENT} --out evaluation"),
    "eval -v": (0, f"eval {EXPERIMENT} -v --out evaluation"),
    "explain": (0, f"explain {EXPERIMENT} q3 d3 --system blended"),
    "export": (0, f"export {EXPERIMENT} --system plain --to elasticsearch"),
    "formats": (0, "formats"),
    "fuse": (0, f"fuse {RUN} {OTHER} --out fused.trec"),
    "gate": (1, f"gate {EXPERIMENT}"),
    "grades agreement": (0, f"grades agreement a={QRELS} b=datasets/mine/people.csv"),
    "grades estimate": (
        0,
        f"grades estimate {EXPERIMENT} --human-judge people --machine-judge llm",
    ),
    "grades sample": (0, f"grades sample {EXPERIMENT} --machine-judge llm --n 3"),
    "judge": (0, f"judge {EXPERIMENT} --next 3 --list"),
    "lint": (1, f"lint {EXPERIMENT}"),
    "methods": (0, "methods"),
    "power": (0, "power --sd .2"),
    "pull": (
        0,
        f"pull python --queries {QUERIES} --out pulled"
        f" --set legs.a.function={functions.__name__}:ids",
    ),
    "queries sample": (0, "queries sample searches.txt --n 3 --out drawn.jsonl"),
    "rerank": (0, "rerank --dataset mine --system rrf --provider noop --out reranked.jsonl"),
    "retrieve bm25": (0, "retrieve bm25 --dataset mine --out bm25.trec"),
    "threshold": (0, f"threshold {EXPERIMENT} --mask --false-answers 0.6 --out thresholds"),
    "try": (0, f"try --qrels {QRELS} {RUN} {OTHER}"),
    "tune": (0, f"tune {EXPERIMENT} --out tuning"),
    "tune -v": (0, f"tune {EXPERIMENT} -v --out tuned"),
}
#: Commands that need a network, a model, a person, a minute or many queries (those of a campaign
#: are read in tests/campaign); two print a schema or meanings.
WITHOUT_PAGE = {
    *(
        "dataset add",
        "glossary",
        "mcp",
        "retrieve dense",
        "retrieve hybrid",
        "retrieve hyde",
        "dataset schema",
        "serve",
    ),
    "skill",
    *(f"campaign {name}" for name in ("ask", "close", "log", "open", "serve", "status")),
}
#: Commands that print a page in brief.
BRIEF = sorted(
    name
    for name, each in leaf_commands().items()
    if "--quiet" in options_of(each) and name not in WITHOUT_PAGE
)
#: Lines of a page in brief at so many columns, lines of a gate that passes, columns of a pipe.
MAX_LINES, COLUMNS, MAX_PASSED, PIPE_COLUMNS = 30, 100, 8, 120
#: What differs from run to run.
NORMALIZED = {
    r"\b\d{4}-\d\d-\d\dT[\d:.+Z]+": "TIME",
    r"\b\d{4}-\d\d-\d\d\b": "DATE",
    r"\b\d+(\.\d+)? (ms|s|seconds?)\b": "DURATION",
    r"\w+ +.*p50.*\n─+\n.*": "TABLE OF DURATIONS",
    r"\b[0-9a-f]{12,64}\b": "HASH",
    r"fusion-bench \d+\.\d+\S*": "fusion-bench VERSION",
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    root = make_project(tmp_path_factory.mktemp("golden"))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        patch.delenv("RAG_FUSION_V2_ENABLED", raising=False)
        patch.setenv("COLUMNS", "120")
        evaluation = ("eval", EXPERIMENT, "--no-html", "--out")
        assert main([*evaluation, "before"]) == 0
        assert main(["gate", EXPERIMENT, "--update", "--reason", "first"]) == 0
        worsen(root)
        assert main([*evaluation, "after"]) == 0
        yield root


def normalized(text: str, root: Path) -> str:
    text = text.replace(str(root), "ROOT").replace(os.sep, "/")
    for pattern, name in NORMALIZED.items():
        text = re.sub(pattern, name, text)
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


@pytest.mark.parametrize("command", CALLS)
def test_page(
    command: str,
    project: Path,
    capsys: pytest.CaptureFixture[str],
    compare_golden: Callable[[Path, str], None],
) -> None:
    code, words = CALLS[command]
    (project / "datasets/mine/looks.jsonl").unlink(missing_ok=True)  # each look is the first
    capsys.readouterr()
    assert main(words.split()) == code
    out, err = capsys.readouterr()
    assert max(map(len, f"{err}{out}".splitlines())) <= PIPE_COLUMNS
    page = f"$ fusion-bench {words}\n{normalized(err + out, project)}"
    compare_golden(PAGES / page_name(command), page)


def page_name(command: str) -> str:
    return f"{re.sub('[ -]+', '-', command)}.txt"


def test_every_command_has_a_page() -> None:
    assert {name.removesuffix(" -v") for name in CALLS} | WITHOUT_PAGE == set(leaf_commands())
    assert {path.name for path in PAGES.iterdir()} == set(map(page_name, CALLS))


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("command", [*BRIEF, "passing gate"])
def test_brief_pages_are_short(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    passing = (0, f"{CALLS['gate'][1]} --set systems.live.runs=[a]")
    code, words = CALLS.get(command, passing)
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    capsys.readouterr()
    assert main(words.split()) == code
    lines = "".join(capsys.readouterr()).splitlines()
    assert len(lines) <= (MAX_LINES if command in CALLS else MAX_PASSED)
    assert max(map(len, lines)) <= PIPE_COLUMNS


@pytest.mark.parametrize("command", BRIEF)
def test_no_line_of_a_pipe_is_long(command: str) -> None:
    lines = (PAGES / page_name(command)).read_text(encoding="utf-8").splitlines()[1:]
    assert max(map(len, lines)) <= PIPE_COLUMNS
