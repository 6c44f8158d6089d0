"""Commands, options and keys of earlier versions, and what to use instead; imports no model."""

from collections.abc import Mapping
from typing import Final

#: The last version that had what :data:`GONE` lists.
LAST_VERSION: Final = "0.1.0"
_BY_TYPE: Final = "use by_query_type, by_intent or weights_by_type"
#: Command, ``COMMAND --option``, ``key:`` or ``key: value`` → what to use instead.
GONE: Final[Mapping[str, str]] = {
    "policies": f"{_BY_TYPE}, and compare the systems with eval",
    "policy:": f"{_BY_TYPE}, or a fusion of your own in Python",
    "grades sensitivity": "name the other judge's file as qrels of a copy of the dataset.yaml and "
    "run eval, or use grades estimate",
    "schema": "type fusion-bench dataset schema",
    "classify": "type fusion-bench dataset classify",
    "dataset from-logs": "name the log as a list of dataset new, with the texts of the queries as "
    "their ids",
    **dict.fromkeys(
        ("queries filter", "queries generate", "queries vote"),
        "draw queries from a log with queries sample, or write them yourself; mark those of a "
        "language model with synthetic: true",
    ),
    "retrieve graph": "write the run of your graph search as a file, and name it under runs with "
    "the role graph",
    "leaderboard": "in a clone of the repository, type python -m benchmarks.leaderboard",
    "rerank --simulate": "compare the reranked list with the fused order with eval; outages cost a "
    "part of that difference",
    "sampler: parzen": "leave the key out, or choose tpe",
    "simulation:": "delete it",
}


def describe_gone(name: str) -> str:
    """One line that names what is gone, the last version that had it, and what to use instead.

    Args:
        name: An entry of :data:`GONE`.
    """
    shown = f"'{name.rstrip(':')}'" if ":" in name else f"fusion-bench {name}"
    return f"{shown} was removed after version {LAST_VERSION}: {GONE[name]}"
