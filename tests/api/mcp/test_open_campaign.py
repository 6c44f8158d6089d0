"""While a campaign is open, no tool shows anything of the queries that it holds out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from fusion_bench.cli import main
from tests.api.mcp.served import Served, connect_http, read_text
from tests.api.mcp.test_tools import CALLS
from tests.attacks.project import EXPERIMENT, make_project
from tests.campaign.masking import FOLDER, HELD_OUT, NAMED, open_campaign

#: A query that no campaign holds out.
KEPT = {"explain": {"query": "q0", "document": "d0"}}

TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:.+]+")


@pytest.fixture(scope="module")
def masked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A client, on a project with a report of all queries and a campaign that opened after it."""
    folder = make_project(tmp_path_factory.mktemp("masked"))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(["eval", EXPERIMENT, "--no-html", "--no-plots", "--out", "before"]) == 0
        open_campaign(folder / FOLDER)
    with connect_http(folder, "--experiment", EXPERIMENT) as served:
        yield served


def ask_everything(served: Served) -> dict[str, str]:
    """What every tool answers, without when it did."""
    answers = {}
    for tool, (arguments, _) in CALLS.items():
        result = served.call(tool, {**arguments, **KEPT.get(tool, {})})
        record = result.structured_content or {}
        record.pop("provenance", None)
        answers[tool] = TIME.sub("", f"{read_text(result)}{json.dumps(record)}")
    return answers


def reverse_held_out(folder: Path) -> None:
    """Turn the lists of the held-out queries round, and judge other documents of theirs."""
    for name in ("a.trec", "b.trec", "r.trec", "qrels.txt"):
        lines = (folder / name).read_text(encoding="utf-8").splitlines()
        places = [n for n, line in enumerate(lines) if line.split()[0] in HELD_OUT]
        documents = [lines[n].split()[2] for n in reversed(places)]
        for n, document in zip(places, documents, strict=True):
            query, zero, _, *rest = lines[n].split()
            lines[n] = " ".join([query, zero, f"{document}x{query}", *rest])
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_no_answer_depends_on_the_held_out_queries(masked: Served) -> None:
    before = ask_everything(masked)
    assert [tool for tool, text in before.items() if NAMED.search(text)] == []
    [found] = masked.find("evaluate", per_query=True)["collections"]
    assert found["queries"]
    assert {*HELD_OUT}.isdisjoint(found["queries"])
    reverse_held_out(masked.folder / FOLDER)
    assert ask_everything(masked) == before


def test_what_was_stored_of_the_held_out_queries_is_refused(masked: Served) -> None:
    assert "campaign" in masked.refuse("power", report="before/report.json")
    text = masked.refuse("explain", query=HELD_OUT[0])
    assert not NAMED.search(text.replace(repr(HELD_OUT[0]), ""))
