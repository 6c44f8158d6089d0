"""The contract of a connector: how lists are read from a search engine, one source at a time."""

from fusion_bench.engines.connectors._base import Connector as Connector
from fusion_bench.engines.connectors._base import EngineSession as EngineSession
from fusion_bench.engines.connectors._base import Hit as Hit
from fusion_bench.engines.connectors._base import HttpConnector as HttpConnector
from fusion_bench.engines.connectors._base import PullQuery as PullQuery
from fusion_bench.engines.connectors._base import QueryForm as QueryForm
from fusion_bench.engines.connectors._base import SearchSource as SearchSource
from fusion_bench.engines.connectors._base import SourceName as SourceName
from fusion_bench.engines.connectors._base import SourceSettings as SourceSettings
from fusion_bench.engines.connectors._base import check_hits as check_hits
from fusion_bench.engines.connectors._base import connectors as connectors
from fusion_bench.engines.connectors._base import load_object as load_object
from fusion_bench.engines.connectors._base import make_hit as make_hit
from fusion_bench.util.calls import call_in_thread as call_in_thread
