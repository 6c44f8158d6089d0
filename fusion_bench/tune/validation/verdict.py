"""The verdict on tuned parameters: what the held-out queries allow to be said."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from fusion_bench.report.tuning_records.trials import Gain, TuningVerdict

#: A smaller gain than this is not worth a change, in the unit of the measure.
MIN_GAIN: Final = 0.005
#: One-sided level of the test that ``ship`` rests on.
LEVEL: Final = 0.025
#: With fewer changed queries or fewer groups an interval is too unsure to exclude a gain.
MIN_CHANGED, MIN_GROUPS = 10, 20

#: What the search chose: other parameters, or the default, with or without better trials.
ChosenTrial: TypeAlias = Literal["tuned", "default", "default over better trials"]


def decide_verdict(
    gain: Gain,
    *,
    min_gain: float = MIN_GAIN,
    level: float = LEVEL,
    chosen: ChosenTrial = "tuned",
    unjudged_decide: bool = False,
    groups_decide: bool = False,
) -> TuningVerdict:
    """The verdict on the held-out gain of tuned − default.

    Args:
        gain: Held out, with an interval of coverage 1 − 2·``level``.
        min_gain: A smaller gain is not worth a change.
        level: One-sided level of ``ship``.
        chosen: What the search chose.
        unjudged_decide: Whether unjudged documents decide the answer that would be shown.
        groups_decide: Whether so many queries depend on others that ``ship`` is withheld until the
            dataset's groups are declared or refused.

    Returns:
        The first that applies. ``unjudged decide``: judge documents first. ``too few tuning
        queries``: the default was chosen though trials looked better. ``worse``: the interval is
        below 0. ``keep``: it is below ``min_gain``, with at least 10 changed queries and 20
        groups; or the default was chosen, and no trial looked better. ``ship``: the gain is
        positive, and its two-sided p is at most 2·``level``; with ``groups_decide`` that is
        ``groups decide``. Else ``too few queries``.
    """
    if unjudged_decide:
        return "unjudged decide"
    if chosen == "default over better trials":
        return "too few tuning queries"
    if gain.high is not None and gain.high < 0:
        return "worse"
    if chosen == "default" or _excludes_gain(gain, min_gain):
        return "keep"
    if gain.difference > 0 and gain.p <= 2 * level:
        return "groups decide" if groups_decide else "ship"
    return "too few queries"


def _excludes_gain(gain: Gain, min_gain: float) -> bool:
    """Whether the whole interval is below the least gain, and can be relied on."""
    is_below = gain.high is not None and gain.high < min_gain
    return is_below and gain.changed >= MIN_CHANGED and gain.groups >= MIN_GROUPS
