"""The tiny dataset with texts."""

import json
from pathlib import Path

from fusion_bench.io.provenance import ListMeta, read_meta
from tests import tiny

YAML = "datasets/tiny/dataset.yaml"


def make(root: Path, *, queries: int = 0) -> Path:
    """Write the tiny dataset below ``root``, with texts; or a larger one of the same kind."""
    tiny.make(root)
    folder = root / "datasets/tiny"
    tiny.edit(root, YAML, "qrels: qrels.txt\n", "qrels: qrels.txt\ndocuments: corpus.jsonl\n")
    if not queries:
        texts = [json.dumps({"id": f"d{i}", "text": f"text of d{i}"}) for i in range(1, 10)]
        lines = (folder / "queries.jsonl").read_text(encoding="utf-8").splitlines()
        rows = [json.loads(line) for line in lines]
        asked = [json.dumps({**row, "text": f"text of {row['id']}"}) for row in rows]
    else:
        names = [f"q{i}" for i in range(queries)]
        texts = [json.dumps({"id": f"d{i}", "text": f"text of d{i}"}) for i in range(30)]
        asked = [json.dumps({"id": name, "text": f"text of {name}"}) for name in names]
        rows = [(q, (7 * i + j) % 30, 12 - j) for i, q in enumerate(names) for j in range(12)]
        for run in ("a", "b"):
            write(folder / f"{run}.trec", [f"{q} Q0 d{d} 1 {s} {run}" for q, d, s in rows])
        write(folder / "r.trec", [f"{q} Q0 d{d} 1 0.5 r" for q, d, _ in rows])
        write(folder / "qrels.txt", [f"{q} 0 d{(7 * i) % 30} 1" for i, q in enumerate(names)])
    write(folder / "corpus.jsonl", texts)
    write(folder / "queries.jsonl", asked)
    return root


def read_written_meta(path: Path) -> ListMeta:
    meta = read_meta(path)
    assert meta is not None
    return meta


def write(path: Path, lines: list[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
