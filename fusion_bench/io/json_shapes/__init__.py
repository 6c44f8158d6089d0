"""The shapes in which JSON holds ranked lists: one module each."""

from fusion_bench.io.json_shapes._base import UNFINISHED as UNFINISHED
from fusion_bench.io.json_shapes._base import RankedList as RankedList
from fusion_bench.io.json_shapes._base import find_lists as find_lists
from fusion_bench.io.json_shapes._base import is_indexed as is_indexed
from fusion_bench.io.json_shapes._base import refuse_incomplete as refuse_incomplete
