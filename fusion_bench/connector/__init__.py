"""The contract of a connector: how lists are read from a search engine, one leg at a time."""

from fusion_bench.connector._base import Connector as Connector
from fusion_bench.connector._base import LegName as LegName
from fusion_bench.connector._base import LegSettings as LegSettings
from fusion_bench.connector._base import QueryForm as QueryForm
from fusion_bench.connector._base import SearchLeg as SearchLeg
from fusion_bench.connector._base import connectors as connectors
from fusion_bench.connector._http import HttpConnector as HttpConnector
from fusion_bench.connector.hits import Hit as Hit
from fusion_bench.connector.hits import check_hits as check_hits
from fusion_bench.connector.hits import make_hit as make_hit
from fusion_bench.connector.objects import load_object as load_object
from fusion_bench.connector.session import EngineSession as EngineSession
from fusion_bench.connector.session import PullQuery as PullQuery
from fusion_bench.util.calls.user_code import call_in_thread as call_in_thread
