"""Runs of a dataset that are on for some of its queries: the key ``when``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fusion_bench.config.yaml_source import Source
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.records import Query
from fusion_bench.data.run import Run
from fusion_bench.data.switches import Switch
from fusion_bench.errors import ConfigError, UnknownNameError
from fusion_bench.io.cache.dataset_cache import hash_key
from fusion_bench.io.dataset_config import DatasetSpec


def make_switches(
    spec: DatasetSpec, source: Source, qrels: Qrels, queries: Mapping[str, Query]
) -> dict[str, Switch]:
    """The switch of each run with a condition, by the run's name.

    Args:
        spec: What the ``dataset.yaml`` says.
        source: Where it says it.
        qrels: The judgments; a judged query of which nothing else is known counts too.
        queries: What is known of the queries, by id.

    Raises:
        ConfigError: A condition, and no queries file; or a field of lists or objects.
        UnknownNameError: A field that no query has.
    """
    conditions = {name: run.when for name, run in spec.runs.items() if run.when is not None}
    every = [*queries.values(), *(Query(q) for q in qrels.queries if q not in queries)]
    switches = {}
    for name, condition in conditions.items():
        where = source.where(("runs", name, "when"))
        if spec.queries is None:
            raise ConfigError(
                f"{where}: a run is on by fields of the queries, and there are none: name their "
                "file as 'queries'"
            )
        for field in condition:
            check_field(field, queries.values(), where)
        switches[name] = Switch.for_queries(condition, every)
    return switches


def check_field(name: str, queries: Iterable[Query], where: str) -> None:
    """Refuse a field by which queries cannot be told apart.

    Args:
        name: The field.
        queries: Every query.
        where: Prefix of a message.

    Raises:
        ConfigError: It holds a list or an object.
        UnknownNameError: No query has it.
    """
    known: dict[str, None] = {}
    for query in queries:
        if name in query.nested:
            raise ConfigError(
                f"{where}: field {name!r} of query {query.id!r} holds a list or an object: only "
                "text, numbers, true and false can be compared"
            )
        known |= dict.fromkeys(query.compared_fields)
    if name not in known:
        raise UnknownNameError("field of the queries", name, known, where=where)


def switch_run(run: Run, key: str | None, switch: Switch) -> tuple[Run, str | None]:
    """A run that is empty where it is off, and its key in the cache.

    Args:
        run: As it was read.
        key: Of the file in the cache; None = it is not kept.
        switch: Of the run.
    """
    on = sorted(switch.queries.intersection(run.queries))
    return run.switched(switch), None if key is None else hash_key("on", key, on)
