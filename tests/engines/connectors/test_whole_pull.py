"""From an engine behind HTTP to a dataset whose experiment replays the engine's own fusion."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

import fusion_bench
from fusion_bench.engines.connectors import connectors
from fusion_bench.engines.options import PullOptions
from fusion_bench.engines.pull import pull_dataset
from fusion_bench.experiment.system import System
from fusion_bench.io.dataset import load_dataset
from tests.engines.connectors.cases import CASES, QUERY
from tests.engines.connectors.loopback import DOCUMENTS, serving


def write_lines(path: Path, *objects: object) -> str:
    path.write_text("".join(f"{json.dumps(each)}\n" for each in objects), encoding="utf-8")
    return str(path)


# Vespa ranks every hit by every feature, which lists cannot show.
@pytest.mark.parametrize("name", sorted(set(CASES) - {"vespa"}))
def test_the_pulled_experiment_replays_the_engine(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    dense = {"id": "q1", "vector": QUERY.vectors["dense"]}
    words = {"id": "q1", "indices": [0, 1], "values": [1.0, 1.0]}
    vectors = {
        "vector": write_lines(tmp_path / "dense.jsonl", dense),
        "sparse_vector": write_lines(tmp_path / "words.jsonl", words),
    }
    with serving(case.engine()) as engine:
        plain = connectors.build({"method": name, "url": engine.url, **case.settings})
        legs = {
            leg: {**case.settings["legs"][leg], "vectors": vectors.get(settings.query_form)}
            for leg, settings in plain.legs.items()
        }
        connector = connectors.build(
            {"method": name, "url": engine.url, **case.settings, "legs": legs}
        )
        queries = write_lines(tmp_path / "queries.jsonl", {"id": "q1", "text": QUERY.text})
        out = tmp_path / "mine"
        options = PullOptions(out=out, depth=case.depth, texts=True)
        pull_dataset(connector, Path(queries), options)
    (out / "qrels.txt").write_text("q1 0 d1 1\n", encoding="utf-8")  # to evaluate, some are needed
    with (out / "dataset.yaml").open("a", encoding="utf-8") as file:
        file.write("qrels: qrels.txt\n")
    dataset = load_dataset(out / "dataset.yaml")
    systems = yaml.safe_load((out / "experiment.yaml").read_text(encoding="utf-8"))["systems"]
    replayed = fusion_bench.fuse(dataset, System("replay", **systems["replay"])).to_dict()["q1"]
    fused = dataset.runs["engine-fused"].to_dict()["q1"]
    assert [*fused] == [*replayed]
    assert len(fused) == case.depth
    export = fusion_bench.export(out / "experiment.yaml", name, name="replay")
    assert (export.fidelity, export.reasons) == ("exact", ())
    pages = [json.loads(line) for line in (out / "documents.jsonl").read_text("utf-8").splitlines()]
    documents = {name for run in dataset.runs.values() for name in run.to_dict()["q1"]}
    texts = {page["id"]: page["text"] for page in pages}
    assert texts == {name: DOCUMENTS[name][0] for name in documents}
