"""A project whose lists are read wrongly, each in one way, and which no command refuses.

``distance`` has distances as scores, which its rank column contradicts; ``flat`` gives every
document one score; ``fine`` has scores that 32-bit floats do not tell apart; ``negative`` has
scores below 0, beside which an absent document counts 0.
"""

from pathlib import Path

from tests.tiny import write_files

QUERIES = 40
EXPERIMENT = "experiments/mine.yaml"
LISTS = ("distance", "flat", "fine", "negative")
#: The keys of the warnings that each command has to give.
KEYS = frozenset({"reversed", "rank column", "constant lists", "float32", "missing zero"})
FILES = {
    "datasets/mine/dataset.yaml": "name: mine\nqrels: qrels.txt\nruns:\n"
    + "".join(f"  {name}: {{path: {name}.trec}}\n" for name in LISTS),
    EXPERIMENT: """\
dataset: mine
measures: [nDCG@10]
baseline: rrf
systems:
  rrf: {runs: [distance, flat, fine, negative]}
  sum:
    runs: [distance, flat, fine, negative]
    fusion: {method: weighted_score, normalize: none, missing: zero}
tune:
  system: sum
  measure: nDCG@10
  trials: 4
  folds: 0
  choose: best
  parameters: {fusion.weights.fine: {choices: [0, 1]}}
gate:
  checks: {nDCG@10: {max_drop: 0.5}}
  system: sum
""",
}


def make(root: Path) -> Path:
    rows: dict[str, list[str]] = {name: [] for name in LISTS}
    for q in range(QUERIES):
        for place in range(1, 6):
            scores = {
                "distance": place / 10,
                "flat": 1.0,
                "fine": 1 + (6 - place) * 1e-9,
                "negative": -place,
            }
            for name, score in scores.items():
                rows[name].append(f"q{q} Q0 d{place} {place} {score!r} {name}\n")
    lists = {f"datasets/mine/{name}.trec": "".join(lines) for name, lines in rows.items()}
    qrels = "".join(f"q{q} 0 d1 1\nq{q} 0 d2 {q % 3}\n" for q in range(QUERIES))
    return write_files(root, {**FILES, **lists, "datasets/mine/qrels.txt": qrels})
