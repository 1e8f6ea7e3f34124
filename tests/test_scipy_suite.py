"""SciPy's own tests of matching and assignment, as it ships them, run against our names."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SUITES = {
    "scipy.optimize.tests.test_linear_assignment": 20,
    "scipy.sparse.csgraph.tests.test_matching": 20,
}
RUN = """
import sys
import pytest, scipy.optimize, scipy.sparse.csgraph
import gpumatch.csgraph, gpumatch.optimize
calls = []
def counted(function):
    def call(*args, **kwargs):
        calls.append(function)
        return function(*args, **kwargs)
    return call
for ours, theirs in (
    (gpumatch.optimize, scipy.optimize),
    (gpumatch.csgraph, scipy.sparse.csgraph),
):
    for name in ours.__all__:
        setattr(theirs, name, counted(getattr(ours, name)))
code = pytest.main(["--pyargs", sys.argv[1], "-q", "-p", "no:cacheprovider", "--rootdir=/"])
print("calls of ours:", len(calls))
sys.exit(code)
"""


@pytest.mark.parametrize(("suite", "least"), SUITES.items(), ids=SUITES)
def test_suite_passes(suite, least, tmp_path):
    if importlib.util.find_spec(suite) is None:
        pytest.skip("this SciPy comes without its tests")
    command = [sys.executable, "-c", RUN, suite]
    ours = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=ours)
    assert done.returncode == 0, done.stdout
    passed = re.search(r"(\d+) passed", done.stdout)
    calls = re.search(r"calls of ours: (\d+)", done.stdout)
    assert int(passed[1]) >= least
    assert int(calls[1]) >= least
