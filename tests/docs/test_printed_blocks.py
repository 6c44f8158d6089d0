"""The blocks of the README and of two pages are run, and print what is shown."""

import contextlib
import io
import re
from pathlib import Path

import pytest

import fusion_bench as fb
from tests.docs.printed import ROOT, copy_clone, matches, parse_console, run_command

README = (ROOT / "README.md").read_text(encoding="utf-8")
SETUP = re.compile(r"<!-- set-up -->\n```\w+\n(.*?)```", re.DOTALL)
BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)


def run_blocks(page: str) -> list[int]:
    """The exit codes of a page's commands, its Python run beside them in one namespace."""
    names: dict[str, object] = {}
    codes: list[int] = []
    printed = ""
    for language, text in BLOCK.findall(SETUP.sub("", page)):
        if language == "console":
            codes += [run_command(*pair) for pair in parse_console(text)]
        elif language == "python":
            with contextlib.redirect_stdout(io.StringIO()) as stream:
                exec(text, names)  # noqa: S102 - the page's own code
            printed = stream.getvalue()
        elif language == "text":
            assert matches(text, printed), printed
    return codes


@pytest.mark.parametrize(
    ("page", "folders", "codes"),
    [
        # try, tune, the first baseline, a regression
        ("README.md", ("datasets", "experiments", "reports/baselines"), [0, 0, 0, 1]),
        # the same, and an export
        ("docs/start.md", ("datasets/referee",), [0, 0, 1, 0]),
        ("docs/reference/diagnose.md", ("datasets/attack", "experiments"), [0]),
    ],
)
def test_the_blocks_run_in_their_order_and_print_what_is_shown(
    page: str,
    folders: tuple[str, ...],
    codes: list[int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    copy_clone(tmp_path, *folders)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("RAG_FUSION_V2_ENABLED", raising=False)
    assert run_blocks((ROOT / page).read_text(encoding="utf-8")) == codes


def test_nothing_but_two_commands_and_no_placeholder_is_set_up() -> None:
    lines = "\n".join(SETUP.findall(README)).splitlines()
    commands = [words for line in lines if (words := line.split("#")[0].split())]
    assert commands == [["make", "eval"], ["make", "test"], [".", ".venv/bin/activate"]]
    languages = {language for language, _ in BLOCK.findall(SETUP.sub("", README))}
    assert languages == {"console", "python", "text"}
    assert not re.search(r"example\.(com|org)|<[A-Za-z-]+>|YOUR|TODO|@TAG", README)


#: Row of the README's table → its fusion in experiments/default.yaml.
FUSIONS = {
    "RRF v1": "rrf",
    "RRF v2": "rrf-v2",
    "weighted score, raw": "score-raw",
    "weighted score, min-max": "minmax",
}
#: The blends of its columns.
BLENDS = ("", " replace", " linear", " pos fused", " pos 1/rank")


def test_the_table_shows_the_means_of_the_default_experiment() -> None:
    [collection] = fb.run_experiment(ROOT / "experiments/default.yaml").collections
    means = {
        system.name: [system.measures[name].mean for name in ("nDCG@10", "RR@10")]
        for system in collection.systems
    }
    table = README.partition("| fusion |")[2].partition("\n\n")[0]
    lines = table.splitlines()[2:]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert len(rows) == len(FUSIONS)
    for (head, *cells), (name, fusion) in zip(rows, FUSIONS.items(), strict=True):
        assert head.startswith(name)
        assert cells == [
            " / ".join(f"{mean:.4f}".removeprefix("0") for mean in means[fusion + blend])
            for blend in BLENDS
        ]
