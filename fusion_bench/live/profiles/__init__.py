"""Pipelines with the defaults and the names of design documents.

Each builder returns the arguments of a ``Pipeline``.
"""

from collections.abc import Callable, Mapping
from typing import Any

from fusion_bench.live.profiles.conv_07_05 import conv_07_05
from fusion_bench.live.profiles.nablarch import nablarch

#: Name → what builds the arguments of a ``Pipeline`` from the profile's options.
PROFILES: Mapping[str, Callable[..., dict[str, Any]]] = {
    "conv-07-05": conv_07_05,
    "nablarch": nablarch,
}
