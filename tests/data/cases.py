"""What several tests of aligned runs share."""

from dataclasses import fields

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns


def assert_same(one: AlignedRuns, other: AlignedRuns) -> None:
    """Equal to the last bit, types included."""
    for field in fields(one):
        left, right = getattr(one, field.name), getattr(other, field.name)
        if not field.init:
            continue
        if isinstance(left, np.ndarray):
            assert (left.dtype, left.shape) == (right.dtype, right.shape)
            assert left.tobytes() == right.tobytes()
            assert not right.flags.writeable
        elif field.name == "vocabulary":
            assert tuple(left) == tuple(right)
        else:
            assert type(left) is type(right)
            assert left == right
