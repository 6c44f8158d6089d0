"""What an ask of a served campaign costs, and whether its time tells why it is kept.

    python -m benchmarks.studies.campaigns.timing [--asks 1000]

Made lists of 6,980 queries × 4 lists × 100 documents, pooled judgments, random weights and k. The
referee is the one that ``fusion-bench campaign serve`` keeps in memory.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import numpy as np
from scipy.stats import ks_2samp

from benchmarks.studies.campaigns.results import RESULTS
from fusion_bench.campaign.ask import AskedCandidate, AskJudgment, Referee, judge_candidate
from fusion_bench.campaign.opening import open_campaign
from fusion_bench.campaign.records import CampaignRules
from fusion_bench.campaign.state import CampaignPaths
from fusion_bench.experiment.experiment import read_experiment

QUERIES, LISTS, DEPTH, POOL = 6_980, "abcd", 100, 200
EXPERIMENT = """\
dataset: made
measures: [nDCG@10]
baseline: rrf
systems:
  rrf: {runs: [a, b, c, d]}
  a: {runs: [a]}
"""


def make_project(root: Path) -> Path:
    """Write lists, judgments and an experiment; the ``dataset.yaml``."""
    source, folder = np.random.default_rng(1), root / "datasets/made"
    folder.mkdir(parents=True)
    (root / "e.yaml").write_text(EXPERIMENT, encoding="utf-8")
    grades = (source.random(QUERIES) > 1 / 7).astype(int)
    judged = source.integers(0, POOL, QUERIES)
    rows = [f"q{q} 0 d{q}x{judged[q]} {grades[q]}\n" for q in range(QUERIES)]
    (folder / "qrels.txt").write_text("".join(rows), encoding="utf-8")
    lines = ["name: made", "qrels: qrels.txt", "judgments: pooled", "runs:"]
    for name in LISTS:
        lines.append(f"  {name}: {{path: {name}.trec}}")
        with (folder / f"{name}.trec").open("w", encoding="utf-8") as file:
            for q in range(QUERIES):
                documents = source.permutation(POOL)[:DEPTH]
                scores = np.sort(source.random(DEPTH))[::-1]
                pairs = enumerate(zip(documents, scores, strict=True), 1)
                file.writelines(f"q{q} Q0 d{q}x{d} {n} {s:.5f} s\n" for n, (d, s) in pairs)
    path = folder / "dataset.yaml"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def time_asks(root: Path, asks: int) -> Iterator[tuple[str, float, float]]:
    """Why each ask was kept, its CPU seconds, its seconds."""
    path = make_project(root)
    experiment, source = read_experiment(root / "e.yaml")
    rules = CampaignRules(asks=asks)
    open_campaign(experiment, source, path, root / "campaign", rules, accepts_weakness=True)
    referee = Referee(CampaignPaths.read(root / "campaign"), is_served=True)
    referee.prepare()
    kinds: list[str] = []

    def judge(*given: object, **named: object) -> AskJudgment:
        judged = judge_candidate(*given, **named)  # type: ignore[arg-type]
        kinds.append("screened" if judged.is_screened else "tested")
        return judged

    draws = np.random.default_rng(3)
    with mock.patch("fusion_bench.campaign.ask.judge_candidate", judge):
        for _ in range(asks):
            changes = [f"fusion.k={draws.integers(1, 200)}"]
            weights = zip(LISTS, draws.random(len(LISTS)).round(4), strict=True)
            changes += [f"fusion.weights.{name}={weight}" for name, weight in weights]
            cpu, wall = time.process_time(), time.perf_counter()
            referee.ask(AskedCandidate(None, tuple(changes)))
            yield kinds[-1], time.process_time() - cpu, time.perf_counter() - wall


def resident_bytes() -> int:
    """Memory of this process, where the system tells it."""
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def main() -> None:
    """Time the asks, store and print what comes out."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--asks", type=int, default=1_000)
    given = parser.parse_args()
    times: list[tuple[str, float, float]] = []
    early = 0
    with tempfile.TemporaryDirectory() as folder:
        for row in time_asks(Path(folder), given.asks):
            times.append(row)
            early = resident_bytes() if len(times) == given.asks // 10 else early
        ledger = (Path(folder) / "datasets/made/campaigns.jsonl").stat().st_size
    parts = {kind: [row[1:] for row in times if row[0] == kind] for kind in ("screened", "tested")}
    columns = {kind: np.array(rows[1:]).T for kind, rows in parts.items()}
    figures = {
        "asks": {kind: len(rows) for kind, rows in parts.items()},
        "CPU ms": {kind: 1e3 * float(np.median(rows[0])) for kind, rows in columns.items()},
        "p of CPU": float(ks_2samp(columns["screened"][0], columns["tested"][0]).pvalue),
        "p of wall": float(ks_2samp(columns["screened"][1], columns["tested"][1]).pvalue),
        "ledger bytes": ledger,
        "bytes of memory an ask": (resident_bytes() - early) / (0.9 * given.asks),
    }
    text = json.dumps(figures, indent=1)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "timing.json").write_text(f"{text}\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
