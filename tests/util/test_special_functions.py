"""The functions are scipy's own, and come without its package."""

import subprocess
import sys

import pytest

NAMES = "betaincinv chdtri gammaincinv nctdtr nctdtrinc ndtr ndtri stdtr stdtrit"


def _run(code: str) -> None:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr


def test_importing_costs_no_package() -> None:
    _run(
        "import sys\n"
        "from fusion_bench.util.special_functions import special\n"
        "assert special.stdtrit(3, 0.5) == 0\n"
        "assert not {'scipy.special', 'numpy.f2py'} & set(sys.modules)"
    )


SAME = f"""
from fusion_bench.util.special_functions import special
import scipy.stats, scipy.special as package
assert all(getattr(special, name) is getattr(package, name) for name in '{NAMES}'.split())
"""
MISSING = """
import importlib
load = importlib.import_module
def refuse(name):
    if name == "scipy.special._ufuncs":
        raise ImportError(name)
    return load(name)
importlib.import_module = refuse
"""


@pytest.mark.parametrize("first", ["", "import scipy.special", MISSING])
def test_the_functions_are_the_package_s(first: str) -> None:
    _run(first + SAME)
