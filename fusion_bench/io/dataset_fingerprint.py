"""The fingerprint of a dataset: its judgments, what is known of its queries, and its lists."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Final

from fusion_bench._version import ENGINE
from fusion_bench.config.query_types import PREDICTED_CONFIDENCE, PREDICTED_TYPE
from fusion_bench.data.fingerprint import Fingerprint
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.records import COMPARED_FIELDS, Query
from fusion_bench.data.run import Run
from fusion_bench.io.dataset_config import DatasetSpec
from fusion_bench.util.digests import hash_values

#: Fields of a query that decide values by themselves, without being named in an experiment.
DECIDING_FIELDS: Final = (*COMPARED_FIELDS, PREDICTED_TYPE, PREDICTED_CONFIDENCE)


def fingerprint_queries(
    qrels: Qrels, queries: Mapping[str, Query], *, all_fields: bool = False
) -> Fingerprint:
    """What is known of the judged queries, a part for each field that any of them has.

    Args:
        qrels: The judgments.
        queries: What is known, by id.
        all_fields: With the number of words of each text, and the fields that only an experiment
            or a policy gives a meaning.
    """
    known = [queries[query] for query in sorted(qrels.queries) if query in queries]
    names = dict.fromkeys(name for query in known for name in query.compared_fields)
    chosen = sorted(names) if all_fields else [n for n in DECIDING_FIELDS if n in names]
    columns = {name: [query.value_of(name) for query in known] for name in chosen}
    if all_fields and any(query.text for query in known):
        columns["words"] = [None if q.text is None else str(len(q.text.split())) for q in known]
    return Fingerprint(
        {
            f"queries.{name}": hash_values(
                [q.id for q, value in zip(known, values, strict=True) if value is not None],
                [value for value in values if value is not None],
            )
            for name, values in columns.items()
        }
    )


def fingerprint_lists(
    spec: DatasetSpec, runs: Mapping[str, Run], rerankers: Mapping[str, Run]
) -> Fingerprint:
    """Contents and settings of each list: ``runs/bm25`` and ``runs/bm25.roles``."""
    whole = Fingerprint({})
    for kind, lists in (("runs", runs), ("rerank", rerankers)):
        for name, run in lists.items():
            settings = {"roles": sorted(run.roles), **asdict(run.read_options)}
            if kind == "rerank":
                settings["score_space"] = spec.rerank[name].score_space
            part = f"{kind}/{name}"
            whole |= Fingerprint.of_table(part, run) | Fingerprint.of_settings({part: settings})
    return whole


def fingerprint_judgments(spec: DatasetSpec, qrels: Qrels) -> Fingerprint:
    """All judgments, what they mean, and the version of the package's numbers."""
    settings = {
        "judgments": spec.judgments,
        "binary_relevance": spec.binary_relevance,
        "engine": ENGINE,
    }
    return Fingerprint.of_table("qrels", qrels) | Fingerprint.of_settings(settings)
