"""What the pages of the repository refer to exists: files, modules, commands and their options."""

import re
import shlex
from importlib.util import find_spec
from pathlib import Path

import pytest

from docs.website.page import list_pages
from tests.commands import leaf_commands, options_of

ROOT = Path(__file__).parents[2]
#: The front page of the site, which leads to pages that are made when it is built.
FRONT = ROOT / "docs/index.md"
DOCS = list_pages()
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS]
EVERY = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
#: Folders whose files a page may name; reports and files that a user writes are not there.
FOLDERS = ("benchmarks/", "docs/", "fusion_bench/", "tests/", ".github/", ".ci/")


def prose(page: Path) -> str:
    return re.sub(
        r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
    )


def code_spans(page: Path) -> list[str]:
    return [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", prose(page))]


def commands(page: Path) -> list[str]:
    """Commands in code spans and in blocks of a shell, each in one line."""
    blocks = re.findall(
        r"^```(?:sh|bash|console)\n(.*?)^```$",
        page.read_text(encoding="utf-8"),
        re.MULTILINE | re.DOTALL,
    )
    lines = [line for b in blocks for line in b.replace("\\\n", " ").splitlines()]
    lines = [line.removeprefix("$ ") for line in lines]
    return [line for line in [*lines, *code_spans(page)] if line.startswith("fusion-bench ")]


@EVERY
def test_files_modules_and_links_that_a_page_names_exist(page: Path) -> None:
    spans = [span.split(":")[0] for span in code_spans(page)]
    named = [span for span in spans if span.startswith(FOLDERS) and re.fullmatch(r"[\w./-]+", span)]
    assert [span for span in named if not (ROOT / span).exists() and "_build" not in span] == []
    names = [name for span in code_spans(page) for name in re.findall(r"-m ((?:\w+\.)+\w+)", span)]
    assert [name for name in names if find_spec(name) is None] == []
    targets = re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", prose(page)))
    local = [target.partition("#")[0] for target in targets if "://" not in target]
    missing = [target for target in local if target and not (page.parent / target).exists()]
    assert page == FRONT or missing == []


@EVERY
def test_a_command_has_the_options_that_a_page_gives_it(page: Path) -> None:
    for line in commands(page):
        words = shlex.split(line.replace("…", ""), comments=True)[1:]
        words = words[: next((i for i, word in enumerate(words) if word in "|>&&;"), len(words))]
        names = (" ".join(words[:2]), words[0] if words else "")
        name = next((name for name in names if name in leaf_commands()), None)
        if name is None:
            assert not words or words[0].startswith("-") or is_group(words[0]), line
            continue
        options = {word.partition("=")[0] for word in words if re.match(r"--[a-z]", word)}
        assert options - {"--help"} <= options_of(leaf_commands()[name]), line


def is_group(word: str) -> bool:
    """Whether a word is a command that has commands of its own, or stands for any command."""
    return word.isupper() or any(name.startswith(f"{word} ") for name in leaf_commands())


def test_every_page_stands_in_a_table_of_contents() -> None:
    listed = FRONT.read_text(encoding="utf-8").splitlines()
    docs = FRONT.parent
    pages = [path.relative_to(docs).with_suffix("").as_posix() for path in DOCS if path != FRONT]
    assert [name for name in pages if name not in listed] == []


def test_a_user_reads_sixteen_pages() -> None:
    pages = [path for path in DOCS if path.parent == FRONT.parent and path != FRONT]
    assert len(pages) == 16
