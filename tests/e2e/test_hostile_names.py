"""Names from anywhere neither steer a terminal nor become markup, whichever command shows them."""

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from fusion_bench.cli import main
from tests import tiny
from tests.report.html.pages import parse_page
from tests.tiny import DATASET, EXPERIMENT, edit

#: Colour, title of the window, an element, a table's border, a link, a rich tag, text turned round.
EVIL = "\x1b[31m\x1b]0;x\x07<script>|`[x](y)[red]\u202e"
YAML = '"\\e[31m\\e]0;x\\a<script>|`[x](y)[red]\\u202e'
LISTS = [f"datasets/tiny/{name}" for name in ("a.trec", "b.trec", "r.trec", "qrels.txt")]
QUERIES = "datasets/tiny/queries.jsonl"
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    tiny.make(tmp_path)
    for name in LISTS:
        text = (tmp_path / name).read_text(encoding="utf-8")
        text = re.sub(r"\b([qd]\d)\b", lambda found: f"{EVIL}{found[1]}", text)
        (tmp_path / name).write_text(text, encoding="utf-8")
    text = (tmp_path / QUERIES).read_text(encoding="utf-8")
    escaped = YAML.replace("\\e", "\\u001b").replace("\\a", "\\u0007")
    text = re.sub(r'"(q\d|local|g\d)"', lambda found: f'{escaped}{found[1]}"', text)
    (tmp_path / QUERIES).write_text(text, encoding="utf-8")
    edit(tmp_path, DATASET, "  a: {path", f'  {YAML}a": {{path')
    text = (tmp_path / EXPERIMENT).read_text(encoding="utf-8")
    text = text.replace("runs: [a, b]", f'runs: [{YAML}a", b]')
    (tmp_path / EXPERIMENT).write_text(text, encoding="utf-8")
    edit(tmp_path, EXPERIMENT, "one:", f'{YAML}one":')
    edit(tmp_path, EXPERIMENT, "baseline: one", f'baseline: {YAML}one"')
    with (tmp_path / EXPERIMENT).open("a", encoding="utf-8") as file:
        file.write("gate: {system: two, checks: {RR@10: {max_drop: 0.01}}}\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def said(capsys: Capture, *arguments: str, code: int = 0) -> str:
    assert main(arguments) == code
    text = "".join(capsys.readouterr())
    assert not set(text) & {"\x1b", "\x07", "\u202e"}
    return text


def plain_text(page: str) -> None:
    """A name stands in the Markdown: in a block of code, or every mark of it behind a backslash."""
    page = re.sub(r"^(`{3,})\w*$.*?^\1$", "", page, flags=re.MULTILINE | re.DOTALL)
    assert r"\<script\>" in page
    assert not re.findall(r"(?<!\\)<script|(?<!\\)\[x", page)
    assert not set(page) & {"\x1b", "\x07", "\u202e"}


@pytest.mark.usefixtures("root")
@pytest.mark.parametrize(
    ("arguments", "shows"),
    [
        (["eval", EXPERIMENT, "--no-plots"], "one"),
        (["eval", EXPERIMENT, "-v", "--split", "all"], "local"),
        (["explain", EXPERIMENT, f"{EVIL}q1"], "d1"),
        (["explain", EXPERIMENT, f"{EVIL}q1", f"{EVIL}d1"], "d1"),
        (["dataset", "show", "tiny"], "local"),
        (["dataset", "check", "tiny"], "no errors"),
        (["compare", "--qrels", LISTS[3], LISTS[0], LISTS[1]], "a"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_no_name_steers_a_terminal(arguments: list[str], shows: str, capsys: Capture) -> None:
    text = said(capsys, *arguments)
    assert shows in text
    assert r"\x1b[31m" in text or arguments[0] in {"compare", "dataset"}


def test_no_name_becomes_markup_in_a_report(root: Path, capsys: Capture) -> None:
    said(capsys, "eval", EXPERIMENT, "--no-plots")
    page = (root / "reports/e/report.md").read_text(encoding="utf-8")
    plain_text(page)
    html = (root / "reports/e/report.html").read_text(encoding="utf-8")
    assert "&lt;script&gt;" in html
    assert [tag for tag, _ in parse_page(html).tags].count("script") == 2
    assert not set(html) & {"\x1b", "\x07", "\u202e"}
    contrast = said(capsys, "compare", "reports/e/report.json")
    assert r"\x1b[31m" in contrast
    assert "[red]" in contrast


def test_no_name_becomes_markup_in_a_decision(root: Path, capsys: Capture) -> None:
    update = ["gate", EXPERIMENT, "--update", "--reason", f"{EVIL}\nbecause"]
    assert r"\x1b[31m" in said(capsys, *update)
    edit(root, EXPERIMENT, "{method: rrf_v2}", "{method: rrf, weights: {b: 0.01}}")
    edit(root, EXPERIMENT, "blend: {method: position_aware, reranker: r}", "top_k: 1")
    lost = said(capsys, "gate", EXPERIMENT, "-v", code=3)
    assert "tiny, query " in lost
    assert r"\x1b[31m" in lost
    page = (root / "reports/e/gate.md").read_text(encoding="utf-8")
    xml = (root / "reports/e/gate.xml").read_bytes()
    plain_text(page)
    assert b"<script" not in xml
    (suite,) = ET.fromstring(xml)  # noqa: S314 - our own file
    assert suite.get("failures") == "1"


def test_no_name_is_a_command_of_a_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    tiny.make(tmp_path)
    text = (tmp_path / EXPERIMENT).read_text(encoding="utf-8")
    text = text.replace("one", '"::error::one"').replace("two", '"##[error]two"')
    (tmp_path / EXPERIMENT).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    command = re.compile(r"^\s*::|##\[", re.MULTILINE)
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    assert command.search(said(capsys, "eval", EXPERIMENT, "--no-plots"))
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    text = said(capsys, "eval", EXPERIMENT, "--no-plots")
    assert not command.search(text)
    assert {r"\x3a:error::one", r"\x23#[error]two"} <= set(re.findall(r"\S*error\S*", text))
