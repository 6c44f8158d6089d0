"""The trials of two systems that are compared: independent, or the same trials of a shared list."""

from __future__ import annotations

from fusion_bench.data.ordering import FloatArray


def paired_sides(
    first: FloatArray | None, second: FloatArray | None, *, is_shared: bool
) -> tuple[FloatArray | None, ...]:
    """The values whose spread over trials enters the variance of first − second.

    Systems that read the same trials of a list, such as an agent and a fusion with this agent,
    move together: trial t of the one was made from what trial t of the other was made from. Then
    only their differences, trial by trial, are independent of each other (paired replicates;
    Brennan 2001, "Generalizability Theory", chapter 4: an effect common to both cancels).

    Args:
        first: Shape (T, Q); None = one trial.
        second: Likewise, with its own number of trials.
        is_shared: Whether both read the trials of one list.

    Returns:
        The sides for ``make_trial_terms``.
    """
    if is_shared and first is not None and second is not None and len(first) == len(second):
        return (first - second,)
    return first, second
