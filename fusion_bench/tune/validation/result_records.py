"""What a search found, as the records of its report: NaN becomes None, as JSON has none."""

from __future__ import annotations

import math

from fusion_bench.config.parameters import Parameter, Params
from fusion_bench.report.tuning import tuning_records as model
from fusion_bench.tune.search.trial_log import Trial
from fusion_bench.tune.validation.verdict import PairedGain

__all__ = ["gain_record", "none_if_nan", "parameter_record", "trial_record"]


def gain_record(found: PairedGain, default: float, tuned: float) -> model.Gain:
    """A gain with the means that it is the difference of."""
    return model.Gain(
        default=default,
        tuned=tuned,
        difference=found.mean,
        low=none_if_nan(found.low),
        high=none_if_nan(found.high),
        p=found.p,
        sd=none_if_nan(found.sd),
        wins=found.wins,
        ties=found.ties,
        losses=found.losses,
        queries=found.queries,
        groups=found.groups,
    )


def none_if_nan(value: float) -> float | None:
    """NaN is no number."""
    return None if math.isnan(value) else value


def trial_record(one: Trial) -> model.Trial:
    """A trial; one that could not be computed has no value."""
    return model.Trial(
        number=one.number, params=dict(one.params), value=none_if_nan(one.value), origin=one.origin
    )


def parameter_record(
    one: Parameter, default: Params, *, ratio: bool = False, reset: float = math.nan
) -> model.ParameterInfo:
    """A parameter with its range in words, what the default has there, and what that is worth."""
    condition = " and ".join(
        f"{path} is {' or '.join(map(str, allowed))}" for path, allowed in one.when
    )
    return model.ParameterInfo(
        path=one.path,
        kind=one.kind,
        low=one.low,
        high=one.high,
        log=one.log,
        choices=one.choices,
        condition=condition,
        default=default.get(one.path),
        ratio=ratio,
        reset=none_if_nan(reset),
    )
