"""The tuned system as one search engine has it: its methods, their parameters, its formula."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from fusion_bench.config.yaml_files import Source
from fusion_bench.errors import ConfigError, FusionBenchError
from fusion_bench.experiment.dialect import SAME_ORDER, describe_dialect, find_engine
from fusion_bench.experiment.experiment import Experiment
from fusion_bench.experiment.settings import ParameterRange, TuneSettings
from fusion_bench.experiment.system import System
from fusion_bench.tune.space import with_fusion


def express_in_engine(
    experiment: Experiment,
    source: Source,
    tuning: TuneSettings,
    roles: Mapping[str, frozenset[str]],
) -> Experiment:
    """The experiment whose tuned system is the engine's own, with the same order on any lists.

    Args:
        experiment: The experiment.
        source: Where it was read from.
        tuning: Which system, and which engine; without one nothing changes.
        roles: Of the dataset's lists, by name.

    Raises:
        ConfigError: The engine cannot express the system; says what is lost, and what it can.
    """
    if tuning.engine is None:
        return experiment
    dialect = find_engine(tuning.engine, where="--engine")
    system = experiment.systems[tuning.system]
    if system.dialect == dialect.name:
        return experiment
    translation = dialect.translate(system, roles)
    if translation.system is None or translation.fidelity not in SAME_ORDER:
        others = experiment.systems.values()
        able = [each.name for each in others if dialect.keeps_order(each, roles)]
        raise ConfigError(
            f"{source.where(('systems', system.name))}: --engine {tuning.engine}: "
            f"{translation.reasons[0]}: tune a system that it can express (of this experiment: "
            f"{', '.join(able) or 'none'}). {describe_dialect(dialect)}"
        )
    return experiment.model_copy(
        update={"systems": {**experiment.systems, system.name: translation.system}}
    )


def engine_ranges(
    system: System, tuning: TuneSettings
) -> Mapping[str, ParameterRange | Literal["own"]] | None:
    """What is searched: with an engine, where nothing is named, each of its methods."""
    if tuning.engine is None or tuning.parameters is not None or system.class_configs is not None:
        return tuning.parameters
    methods = [name for name in system.fusions.load_built_in() if _is_complete(system, name)]
    if len(methods) < 2:
        return None
    ranges: dict[str, ParameterRange | Literal["own"]] = {
        "fusion.method": ParameterRange(choices=tuple(methods))
    }
    if system.blend.space():
        ranges["blend"] = "own"
    return ranges


def _is_complete(system: System, method: str) -> bool:
    """Whether the method needs nothing that a user has to name."""
    try:
        with_fusion(system, method).check_sources(
            system.runs, [frozenset[str]() for _ in system.runs]
        )
    except FusionBenchError:
        return False
    return True
