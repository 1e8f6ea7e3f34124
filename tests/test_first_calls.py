"""The first calls of eight threads at once, while another thread imports what they ask about."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# The import is held in its middle until all calls have returned: a second at most, because calls
# that need the same module wait for it.
EIGHT_CALLS = """
import importlib, sys, threading
from importlib.machinery import SourceFileLoader
import numpy as np
import gpumatch as gm

library, held, call = sys.argv[1:]
begun, returned, start = threading.Event(), threading.Event(), threading.Barrier(8)
load, results = SourceFileLoader.exec_module, []

def load_or_hold(self, module):
    if module.__name__ == held:
        begun.set()
        returned.wait(timeout=1)
    load(self, module)

def call_first():
    start.wait()
    try:
        results.append(eval(call))
    except Exception as error:
        results.append(repr(error))

SourceFileLoader.exec_module = load_or_hold
importing = threading.Thread(target=importlib.import_module, args=(library,))
callers = [threading.Thread(target=call_first) for _ in range(8)]
importing.start()
assert begun.wait(timeout=60), "never imported"
for caller in callers:
    caller.start()
for caller in callers:
    caller.join()
returned.set()
importing.join()
print(set(results))
"""
MATCH = "gm.maximum_matching(np.eye(3), init='cheap', threads=1).size"
ASSIGN = "gm.assign(1 - np.eye(3), threads=1).objective"
SOLVE = "gm.optimize.linear_sum_assignment(1 - np.eye(3))[1].tolist() == [0, 1, 2]"


def results_of(call: str, *, library: str, held: str) -> str:
    """What eight threads got from their first call, as the text of a set."""
    run = subprocess.run(
        [sys.executable, "-c", EIGHT_CALLS, library, held, call],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


@pytest.mark.parametrize(
    ("library", "held", "call", "result"),
    [
        pytest.param("scipy.sparse", "scipy.sparse._base", MATCH, "{3}", id="scipy, matching"),
        pytest.param("scipy.sparse", "scipy.sparse._base", ASSIGN, "{0.0}", id="scipy, assign"),
        pytest.param("networkx", "networkx.classes.graph", MATCH, "{3}", id="networkx, matching"),
        pytest.param("numba", "numba.core.types", SOLVE, "{True}", id="numba, optimize"),
    ],
)
def test_all_are_served_while_a_library_is_imported(library, held, call, result):
    pytest.importorskip(library)
    assert results_of(call, library=library, held=held) == result


def test_all_are_served_while_torch_is_imported(tmp_path, monkeypatch):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("import torch._tensor\nTensor = int")
    (tmp_path / "torch" / "_tensor.py").touch()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert results_of(ASSIGN, library="torch", held="torch._tensor") == "{0.0}"


@pytest.mark.parametrize("call", [MATCH, ASSIGN], ids=["matching", "assign"])
def test_all_compile_for_the_first_time_together(call, tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert "Error" not in results_of(call, library="json.tool", held="json.tool")
