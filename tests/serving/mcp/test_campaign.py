"""The tools of a campaign over both transports: what is told, what is counted, what is not told."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from fusion_bench.cli import main
from fusion_bench.io.held_out import LEDGER_NAME
from tests import campaign_project as project
from tests.attacks.project import EXPERIMENT, make_project
from tests.campaign.masking import FOLDER, HELD_OUT, NAMED, open_campaign
from tests.child_processes import running_child
from tests.serving.mcp.conftest import CONNECT
from tests.serving.mcp.served import Served, connect_http, connect_stdio, read_text
from tests.serving.mcp.test_tools import CALLS, assert_discreet
from tests.shipped_schemas import check_record

WORSE = {"runs": ["weak"], "depth": 1}
BETTER = {"runs": ["weak", "strong"], "fusion": {"method": "rrf", "k": 60}}
WORDS = ("--experiment", "experiments/e.yaml", "--campaign", project.CAMPAIGN)


@pytest.fixture(scope="module", params=CONNECT)
def served(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    """A client on a project with a campaign of 60 asks and two ships."""
    root = project.make(tmp_path_factory.mktemp("campaign"))
    project.open_made(root, asks=60, ships=2)
    with CONNECT[request.param](root, *WORDS) as client:
        yield client


def read_ledger(served: Served) -> str:
    path = served.folder / Path(project.DATASET).parent / LEDGER_NAME
    return path.read_text(encoding="utf-8")


def test_an_ask_is_counted_on_disk_and_the_same_costs_nothing(served: Served) -> None:
    before = served.find("campaign_status")
    check_record("campaign-status", json.dumps(before))
    answer = served.find("campaign_ask", candidate=WORSE, explain=True)
    check_record("campaign-answer", json.dumps(answer))
    assert (answer["answer"], answer["number"]) == ("keep", before["asked"] + 1)
    assert answer["tuning"]["gain"]["queries"] == before["tuning_queries"]
    again = served.find("campaign_ask", candidate=WORSE)
    assert again["is_repeated"]
    assert again["asks_left"] == answer["asks_left"] == before["asks_left"] - 1
    assert served.find("campaign_status")["asked"] == answer["number"]
    assert '"event":"answer"' in read_ledger(served).splitlines()[-1]


#: What an ask is refused for, and what the answer names.
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({}, "candidate"),
    ({"candidate": {"runs": ["nope"]}}, "nope"),
    ({"candidate": {"runs": ["weak"], "fusion": "a.b:c"}}, "import code"),
    ({"changes": {"fusion.method": "a.b:c"}}, "import code"),
    ({"changes": {"fusion.k=1 #": 1}}, "changes"),
    ({"changes": {"fusion.z": 1}}, "z"),
    ({"campaign": "reports/campaigns/other"}, "campaign_ask.campaign"),
]


@pytest.mark.parametrize(("arguments", "named"), REFUSED)
def test_an_ask_that_breaks_a_rule_costs_nothing(
    arguments: dict[str, Any], named: str, served: Served
) -> None:
    before = read_ledger(served)
    text = served.refuse("campaign_ask", **arguments)
    assert named in text
    assert_discreet(text, served)
    assert read_ledger(served) == before


def test_twenty_asks_at_once_are_counted_one_by_one(served: Served) -> None:
    before = served.find("campaign_status")["asked"]

    async def ask() -> list[Any]:
        answers = []

        async def ask_one(k: int) -> None:
            changes = {"fusion.k": k, "depth": 2}
            answers.append(await served.client.call_tool("campaign_ask", {"changes": changes}))

        async with anyio.create_task_group() as group:
            for k in range(1, 21):
                group.start_soon(ask_one, k)
        return answers

    answers = served.portal.call(ask)
    numbers = sorted(answer.structured_content["number"] for answer in answers)
    assert numbers == [*range(before + 1, before + 21)]
    assert served.find("campaign_status")["asked"] == before + 20


def test_what_ships_is_the_baseline_to_beat_and_nothing_held_out_is_told(served: Served) -> None:
    answer = served.call("campaign_ask", {"candidate": BETTER, "explain": True})
    record = answer.structured_content
    assert record is not None
    assert record["answer"] == "ship"
    status = served.call("campaign_status")
    assert status.structured_content is not None
    assert status.structured_content["baseline"]["runs"] == ["weak", "strong"]
    assert status.structured_content["phase"] == 2
    evaluated = served.call("evaluate", {"candidate": BETTER, "per_query": True})
    text = "".join(
        f"{read_text(each)}{json.dumps(each.structured_content)}"
        for each in (answer, status, evaluated)
    )
    held_out = project.held_out_queries(served.folder)
    assert [query for query in held_out if f'"{query}"' in text or f" {query} " in text] == []
    assert evaluated.structured_content is not None
    [found] = evaluated.structured_content["collections"]
    assert len(found["queries"]) == project.QUERIES - len(held_out)
    assert str(served.folder) not in text


def test_a_campaign_that_is_served_elsewhere_is_asked_by_its_address(tmp_path: Path) -> None:
    root = project.make(tmp_path / "kept")
    project.open_made(root)
    command = [sys.executable, "-m", "fusion_bench", "campaign", "serve"]
    words = [*command, str(root / project.CAMPAIGN), "--json"]
    with running_child(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        started = json.loads(process.stdout.readline())
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("FUSION_BENCH_CAMPAIGN_TOKEN", started["token"])
            with connect_stdio(tmp_path, "--campaign", started["address"]) as client:
                assert client.find("campaign_ask", candidate=WORSE)["answer"] == "keep"
                assert client.find("campaign_status")["asked"] == 1


def test_the_loop_of_the_page_for_agents_runs(tmp_path: Path) -> None:
    experiment = project.EXPERIMENT.replace("baseline: weak", "baseline: both").replace(
        "k: 60", "k: 60, weights: {weak: 3}"
    )
    root = project.make(tmp_path / "project", experiment=experiment)
    project.open_made(root)
    page = (Path(__file__).parents[3] / "docs" / "agents.md").read_text(encoding="utf-8")
    loop = (
        page.partition("## A loop against MCP")[2].partition("```python\n")[2].partition("```")[0]
    )
    assert len(loop.splitlines()) <= 40
    loop = loop.replace("experiments/mine.yaml", "experiments/e.yaml")
    loop = loop.replace("reports/campaigns/mine", project.CAMPAIGN).replace("1000", "40")
    command = tmp_path / "fusion-bench"
    words = f'PYTHONPATH="{os.pathsep.join(sys.path)}" exec "{sys.executable}" -m fusion_bench "$@"'
    command.write_text(f"#!/bin/sh\n{words}\n", encoding="utf-8")
    command.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        [sys.executable, "-c", loop],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert {line.split()[0] for line in done.stdout.splitlines()} <= {"keep", "ship"}
    assert done.stdout


# ── while a campaign is open, no tool shows anything of the queries that it holds out


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
