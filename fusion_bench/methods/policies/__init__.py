"""Per-query policies: one file each, found by name."""

from fusion_bench.methods.policies._base import Choice as Choice
from fusion_bench.methods.policies._base import CrossFittedPolicy as CrossFittedPolicy
from fusion_bench.methods.policies._base import FittedPolicy as FittedPolicy
from fusion_bench.methods.policies._base import Policy as Policy
from fusion_bench.methods.policies._base import QueryFeatures as QueryFeatures
from fusion_bench.methods.policies._base import TrainablePolicy as TrainablePolicy
from fusion_bench.methods.policies._base import Variant as Variant
from fusion_bench.methods.policies._base import policies as policies
