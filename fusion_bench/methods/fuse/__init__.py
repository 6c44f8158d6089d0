"""Fusion methods: one file each, found by name."""

from fusion_bench.methods.fuse._base import GREATEST_WEIGHT as GREATEST_WEIGHT
from fusion_bench.methods.fuse._base import KEYWORD as KEYWORD
from fusion_bench.methods.fuse._base import SEMANTIC as SEMANTIC
from fusion_bench.methods.fuse._base import CandidateScores as CandidateScores
from fusion_bench.methods.fuse._base import EngineForm as EngineForm
from fusion_bench.methods.fuse._base import Fusion as Fusion
from fusion_bench.methods.fuse._base import Homogeneity as Homogeneity
from fusion_bench.methods.fuse._base import RankSum as RankSum
from fusion_bench.methods.fuse._base import ScoreTerms as ScoreTerms
from fusion_bench.methods.fuse._base import SourceSumFusion as SourceSumFusion
from fusion_bench.methods.fuse._base import WeightedFusion as WeightedFusion
from fusion_bench.methods.fuse._base import WeightedMean as WeightedMean
from fusion_bench.methods.fuse._base import best_ranks as best_ranks
from fusion_bench.methods.fuse._base import fusions as fusions
from fusion_bench.methods.fuse._base import name_term as name_term
from fusion_bench.methods.fuse._trained import CrossFitted as CrossFitted
from fusion_bench.methods.fuse._trained import FittedFusion as FittedFusion
from fusion_bench.methods.fuse._trained import Trainable as Trainable
from fusion_bench.methods.fuse._trained import deal_folds as deal_folds
from fusion_bench.methods.fuse.rrf import RankTerm as RankTerm
from fusion_bench.methods.fuse.rrf import RankTermFusion as RankTermFusion
