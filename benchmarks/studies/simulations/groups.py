"""How often an exact null ships where queries are near-duplicates of others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.studies.simulations.promise import Estimate, Promise, Side
from fusion_bench.data.grouped_rows import number_by_appearance
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.query_groups import QueryGroups, find_query_groups
from fusion_bench.data.query_splits import hashed_split
from fusion_bench.data.records import Query
from fusion_bench.data.run import Run
from fusion_bench.evaluation.in_memory import make_dataset
from fusion_bench.io.dataset import Dataset
from fusion_bench.stats.intervals import estimate_mean

TITLE = "Near-duplicate queries, and groups: auto"
DESCRIPTION = """\
There are 200 queries. A near-duplicate has the text of its original, eight made-up words, with a
small change: a word left out or exchanged, two words swapped, or a phrase in front. In two lists it
has eight of the first ten documents of its original. No parameter set of 20 truly differs from the
default. A query's difference is √.8 times a normal value that near-duplicates share, plus √.2 times
its own. The best of the 20 on half of the queries is tested on the other half. It ships if its 95 %
interval (CR2) is above 0. max-T's p is never below Student's, so max-T ships no more. Each
collection is used for eight draws of the differences. Promised: with the groups that `groups: auto`
finds, at most 2.5 %."""

#: Draws of the differences on one collection.
REPEATS = 8
QUERIES, TRIALS, CORRELATION = 200, 20, 0.8
WORDS, DEPTH, CHANGED = 8, 10, 2
PHRASES = ("please tell me", "i want to know", "quick question")
SEED = 15


@dataclass(frozen=True)
class Design:
    """How many queries come in groups of near-duplicates, and how many are in each group."""

    name: str
    grouped: int
    size: int

    @property
    def originals(self) -> list[int]:
        """(Q,): the number of each query's original."""
        groups = self.grouped // self.size
        alone = range(groups, groups + QUERIES - self.grouped)
        return [q // self.size for q in range(self.grouped)] + list(alone)


DESIGNS = (
    Design("all queries in groups of 8", QUERIES, 8),
    Design("two fifths of the queries in groups of 4", QUERIES * 2 // 5, 4),
)
#: What is counted, and how often it may happen.
EVENTS = {
    "ships with groups: auto": 0.025,
    "ships with the true groups": 0.025,
    "ships without groups": None,
}


def run(*, draws: int) -> list[Promise | Estimate]:
    """How often the null ships, counted singly and by the groups found; and what is found."""
    measured: list[Promise | Estimate] = []
    for n, design in enumerate(DESIGNS):
        random = np.random.default_rng([SEED, n])
        shipped = dict.fromkeys(EVENTS, 0)
        originals = design.originals
        recalls, false_links = [], []
        for draw in range(draws):
            if draw % REPEATS == 0:
                found = search_queries(random, originals)
                recalls.append(_recall(found, originals))
                pairs = ((originals[link.first], originals[link.second]) for link in found.links)
                false_links.append(sum(first != second for first, second in pairs))
                true = tuple(f"original {original}" for original in originals)
                groupings = dict(zip(EVENTS, (found.names(), true, found.queries), strict=True))
            differences = draw_differences(random, originals)
            for event, groups in groupings.items():
                shipped[event] += ships(differences, groups, seed=f"{n} {draw}")
        for event, limit in EVENTS.items():
            side: Side = "none" if limit is None else "at most"
            measured.append(Promise(design.name, event, shipped[event], draws, limit, side))
        measured.append(_mean(design.name, "share of the true pairs found", recalls))
        measured.append(_mean(design.name, "false links", false_links))
    return measured


def search_queries(random: np.random.Generator, originals: Sequence[int]) -> QueryGroups:
    """The groups found among queries whose texts and lists are drawn."""
    dataset = draw_dataset(random, originals)
    runs = [*dataset.runs.values()]
    return find_query_groups([*dataset.declared], dataset.declared, runs, dataset.qrels)


def draw_dataset(
    random: np.random.Generator, originals: Sequence[int], *, identical: bool = False
) -> Dataset:
    """Queries with texts and two lists each.

    Args:
        random: Where they are drawn from.
        originals: (Q,): the number of each query's original.
        identical: Whether a copy has the text and the lists of its original, not similar ones.
    """
    words = [
        "".join(map(chr, row))
        for row in random.integers(97, 123, (1 + max(originals)) * WORDS * 6).reshape(-1, 6)
    ]
    names = [f"q{i}" for i in range(len(originals))]
    seen: set[int] = set()
    records: dict[str, Query] = {}
    lists: tuple[dict[str, dict[str, float]], ...] = ({}, {})
    for name, original in zip(names, originals, strict=True):
        text = words[original * WORDS : (original + 1) * WORDS]
        is_copy = original in seen and not identical
        seen.add(original)
        records[name] = Query(name, " ".join(_rephrase(random, text) if is_copy else text))
        for ranked in lists:
            documents = [f"{original}-{rank}" for rank in range(DEPTH)]
            if is_copy:
                for rank in random.choice(DEPTH, CHANGED, replace=False):
                    documents[rank] = f"{name}-{rank}"
            ranked[name] = {document: -float(r) for r, document in enumerate(documents)}
    runs = [Run.from_dict(f"run{i}", ranked) for i, ranked in enumerate(lists)]
    qrels = Qrels.from_dict({name: {f"{name}-relevant": 1} for name in names})
    return make_dataset("drawn", qrels, {run.name: run for run in runs}, queries=records)


def draw_differences(random: np.random.Generator, originals: Sequence[int]) -> FloatArray:
    """Differences of each parameter set from the default, shape (trials, Q), of mean 0."""
    shared = random.standard_normal((TRIALS, 1 + max(originals)))[:, list(originals)]
    single = random.standard_normal((TRIALS, len(originals)))
    return np.asarray(np.sqrt(CORRELATION) * shared + np.sqrt(1 - CORRELATION) * single)


def ships(differences: FloatArray, groups: Sequence[str], *, seed: str) -> bool:
    """Whether the best parameter set of one half has an interval above 0 on the other."""
    return estimate_mean(*hold_out_best(differences, groups, seed=seed)).low > 0


def hold_out_best(
    differences: FloatArray, groups: Sequence[str], *, seed: str
) -> tuple[FloatArray, IntArray]:
    """The best parameter set of one half on the other: its differences, and codes of groups."""
    split = hashed_split(groups, [None] * len(groups), split_seed=seed)
    best = differences[differences[:, split.tune].mean(axis=1).argmax()]
    codes = number_by_appearance(groups)[0]
    return best[split.held_out], codes[split.held_out]


def _rephrase(random: np.random.Generator, words: list[str]) -> list[str]:
    """One change to a text."""
    at, other = random.choice(len(words), 2, replace=False)
    kind = random.integers(4)
    changed = list(words)
    if kind == 0:
        del changed[at]
    elif kind == 1:
        changed[at] = "".join(map(chr, random.integers(97, 123, 6)))
    elif kind == 2:
        changed[at], changed[other] = changed[other], changed[at]
    else:
        changed.insert(0, PHRASES[random.integers(len(PHRASES))])
    return changed


def _recall(found: QueryGroups, originals: Sequence[int]) -> float:
    """Share of the pairs of one original that are in one group."""
    codes, true = found.codes, np.array(originals)
    same = (true[:, None] == true) & ~np.eye(len(true), dtype=bool)
    return float((codes[:, None] == codes)[same].mean())


def _mean(design: str, quantity: str, values: Sequence[float]) -> Estimate:
    return Estimate(
        design, quantity, float(np.mean(values)), float(np.std(values) / len(values) ** 0.5)
    )
