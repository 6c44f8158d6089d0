"""The page names the chunk that stands for a document, as text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from fusion_bench.cli import main
from tests.browser.conftest import open_ready
from tests.tiny import write_files

if TYPE_CHECKING:
    from tests.browser.conftest import Opener

EVIL = "<img src=x onerror=alert('chunk')>"
SYSTEMS = {
    "merged": {"runs": ["a"], "collapse": {"by": {"field": "of"}, "score": "max"}},
    "kept": {"runs": ["a"], "collapse": {"by": {"field": "of"}, "keep": 1}},
    "plain": {"runs": ["b"]},
}


def write_project(root: Path) -> str:
    parents = {f"{EVIL}1": "A", f"{EVIL}2": "A", "B#1": "B"}
    dataset = {
        "name": "made",
        "qrels": "qrels.tsv",
        "judgments": "complete",
        "documents": "documents.jsonl",
        "runs": {"a": {"path": "a.tsv"}, "b": {"path": "b.tsv"}},
    }
    experiment = {"dataset": "d/dataset.yaml", "baseline": "plain", "systems": SYSTEMS}
    queries = [f"q{n}" for n in range(6)]
    files = {
        "d/dataset.yaml": json.dumps(dataset),
        "d/qrels.tsv": "query\tdocument\tgrade\n"
        + "".join(f"{q}\tB\t1\n{q}\tB#1\t1\n" for q in queries),
        "d/documents.jsonl": "".join(
            json.dumps({"id": name, "text": f"text of {name}", "of": of}) + "\n"
            for name, of in parents.items()
        ),
        "d/a.tsv": "query\tdocument\tscore\n"
        + "".join(f"{q}\t{name}\t{9 - n}\n" for q in queries for n, name in enumerate(parents)),
        "d/b.tsv": "query\tdocument\tscore\n" + "".join(f"{q}\tB\t1\n{q}\tA\t2\n" for q in queries),
        "e.yaml": json.dumps({**experiment, "measures": ["RR"]}),
    }
    write_files(root, files)
    out = ["--out", str(root / "out"), "--no-plots", "--allow-suspect", "--detail", "kept"]
    assert main(["eval", str(root / "e.yaml"), *out]) == 0
    return (root / "out/report.html").as_uri()


def test_a_document_names_its_chunk_and_a_kept_chunk_its_document(
    open_page: Opener, tmp_path: Path
) -> None:
    page = open_ready(open_page, write_project(tmp_path)).page
    page.locator('[data-queries] [data-query="q0"]').click()
    lists = page.locator("#query-panel")
    lists.wait_for()
    first, second = lists.locator('[data-top="merged"] li').all()
    assert first.get_attribute("data-document") == "A"
    assert first.locator("[data-chunk]").text_content() == f"best of 2 chunks: {EVIL}1"
    assert first.locator(".document-text").text_content() == f"text of {EVIL}1"
    assert second.locator("[data-chunk]").text_content() == "its chunk B#1"
    assert lists.locator('[data-top="plain"] [data-chunk]').count() == 0
    page.locator("select[data-choice=system]").select_option("kept")
    lists.get_by_text("Next").click()
    lists.locator('[data-top="kept"]').wait_for()
    texts = lists.locator('[data-top="kept"] [data-chunk]').all_text_contents()
    assert texts == ["one of 2 chunks of A", "only chunk of B"]
