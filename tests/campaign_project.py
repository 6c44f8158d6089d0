"""A project with a campaign: two lists of 200 queries, of which ``strong`` is far better."""

import random
from collections.abc import Sequence
from pathlib import Path

from fusion_bench.campaign.opening import open_campaign
from fusion_bench.campaign.records import CampaignRules, CampaignStatus
from fusion_bench.campaign.state import CampaignPaths
from fusion_bench.experiment.experiment import read_experiment

QUERIES = 200
DOCUMENTS = 8
#: How often the relevant document stands first in a list.
SHARES = {"weak": 0.2, "strong": 0.9}
EXPERIMENT = """\
dataset: made
measures: [nDCG@10]
baseline: weak
systems:
  weak: {runs: [weak]}
  both: {runs: [weak, strong], fusion: {method: rrf, k: 60}}
"""
DATASET = "datasets/made/dataset.yaml"
CAMPAIGN = "reports/campaigns/e"


def make(root: Path, *, queries: int = QUERIES, experiment: str = EXPERIMENT) -> Path:
    folder = root / "datasets/made"
    for path in (folder, root / "experiments"):
        path.mkdir(parents=True, exist_ok=True)
    (root / "experiments/e.yaml").write_text(experiment, encoding="utf-8")
    judged = [f"q{q} 0 r{q} 1\nq{q} 0 x{q}-1 0\n" for q in range(queries)]
    (folder / "qrels.txt").write_text("".join(judged), encoding="utf-8")
    lines = ["name: made", "qrels: qrels.txt", "judgments: complete", "runs:"]
    lines += [f"  {name}: {{path: {name}.trec}}" for name in SHARES]
    (folder / "dataset.yaml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for number, (name, share) in enumerate(SHARES.items()):
        source = random.Random(number)
        rows = [row for q in range(queries) for row in _rank(q, source, share)]
        (folder / f"{name}.trec").write_text("".join(rows), encoding="utf-8")
    return root


def _rank(query: int, source: random.Random, share: float) -> list[str]:
    """The rows of a query: its relevant document first, or anywhere below."""
    documents = [f"x{query}-{n}" for n in range(1, DOCUMENTS)]
    source.shuffle(documents)
    place = 0 if source.random() < share else source.randrange(1, DOCUMENTS)
    documents.insert(place, f"r{query}")
    return [f"q{query} Q0 {name} {n} {20 - n} s\n" for n, name in enumerate(documents, 1)]


def open_made(
    root: Path,
    out: str = CAMPAIGN,
    *,
    held_out: float | None = None,
    accepts_no_guarantee: bool = False,
    accepts_weakness: bool = True,
    **rules: object,
) -> CampaignStatus:
    experiment, source = read_experiment(root / "experiments/e.yaml")
    declared = CampaignRules.model_validate({"asks": 20, **rules})
    return open_campaign(
        experiment,
        source,
        root / DATASET,
        root / out,
        declared,
        held_out=held_out,
        accepts_no_guarantee=accepts_no_guarantee,
        accepts_weakness=accepts_weakness,
    )


def paths_of(root: Path, out: str = CAMPAIGN) -> CampaignPaths:
    return CampaignPaths.read(root / out)


def held_out_queries(root: Path) -> Sequence[str]:
    from fusion_bench.io.fingerprints import query_digests

    digests = set(paths_of(root).read_state().held_out.queries)
    ids = (f"q{q}" for q in range(QUERIES))
    return [query for query in ids if query_digests([query])[0] in digests]
