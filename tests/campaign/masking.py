"""The project of the golden pages with an open campaign, and the same without its queries."""

import re
from pathlib import Path

from fusion_bench.io.campaign_ledger import (
    CampaignEvent,
    HeldOutDigests,
    append_events,
)
from fusion_bench.io.fingerprints import judgment_digests, query_digests
from fusion_bench.io.held_out import LEDGER_NAME, read_everything
from fusion_bench.io.load_records import load_qrels
from tests.gate.cases import QUERIES
from tests.golden.project import make_project

CAMPAIGN = "0123456789abcdef"
#: What the campaign holds out, of both types, with and without judgments of people.
HELD_OUT = tuple(f"q{q}" for q in range(QUERIES) if q % 5 in (2, 3))
#: An id of these, wherever it stands as a word.
NAMED = re.compile(rf"(?<![\w.-])({'|'.join(HELD_OUT)})(?![\w-])")
FOLDER = Path("datasets/mine")
#: Files of the dataset with a query in each line.
FILES = ("qrels.txt", "a.trec", "b.trec", "r.trec", "people.csv", "llm.csv", "queries.jsonl")


def open_campaign(folder: Path, queries: tuple[str, ...] = HELD_OUT, by: str = "all") -> None:
    """Write the event that opens the campaign beside a dataset."""
    with read_everything():
        qrels = load_qrels(folder / "qrels.txt")
    digests = {
        "queries": query_digests(queries),
        "judgments": judgment_digests(qrels, queries),
        "groups": query_digests(queries),
    }
    known = {name: each if by in ("all", name) else () for name, each in digests.items()}
    held_out = HeldOutDigests.model_validate(known)
    event = CampaignEvent(
        event="open", campaign=CAMPAIGN, date="2026-01-01", held_out=held_out, plan={}
    )
    append_events(folder / LEDGER_NAME, lambda _: [event])


def close_campaign(folder: Path) -> None:
    event = CampaignEvent(event="close", campaign=CAMPAIGN, date="2026-01-02", by="Ada")
    append_events(folder / LEDGER_NAME, lambda _: [event])


def drop_lines(folder: Path) -> None:
    for name in FILES:
        lines = (folder / name).read_text().splitlines(keepends=True)
        kept = [line for line in lines if not NAMED.search(line.replace('"', " "))]
        (folder / name).write_text("".join(kept))


def make_projects(root: Path) -> tuple[Path, Path]:
    masked, reduced = make_project(root / "masked"), make_project(root / "reduced")
    open_campaign(masked / FOLDER)
    drop_lines(reduced / FOLDER)
    return masked, reduced
