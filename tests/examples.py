"""How many examples a test of Hypothesis takes."""

from hypothesis import settings


def examples(count: int) -> int:
    """Return a count meant for CI's 40 examples, scaled to those of the profile in use."""
    return max(2, count * settings().max_examples // 40)
