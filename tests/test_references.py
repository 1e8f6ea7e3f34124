"""A call's arrays are gone when it returns: nothing that it made is held by a circle of references.

Python looks for circles rarely, so several calls' memory would add up until it does.
"""

from __future__ import annotations

import gc

import numpy as np
import pytest
from scipy.sparse import random_array

import gpumatch as gm
from gpumatch.dispatch.registry import table as algorithms
from graphs import costs, make

MESH = costs.make("mesh", 10, seed=2)
LARGE_MESH = costs.make("mesh", 14, seed=2)  # enough entries for two threads
POINTS = costs.make("low_rank", 60, 60, seed=3)
GRAPH = make("kron", 12, seed=1)
MATRIX = random_array((300, 300), density=0.05, rng=1).tocsr()
MATRIX.setdiag(1)


def circles(call):
    """What of ours a call leaves to the garbage collector."""
    call()  # what is compiled or imported once is no matter
    gc.disable()
    gc.freeze()  # so that only what comes now is looked through
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        call()
        gc.collect()
        kinds = [type(one) for one in gc.garbage]
        return [kind.__qualname__ for kind in kinds if kind.__module__.startswith("gpumatch")]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.unfreeze()
        gc.enable()


def homes(problem):
    """The algorithms for a problem, each where it runs."""
    for name, algorithm in algorithms(problem).items():
        for backend in {"cpu", "cuda"} & algorithm.homes.keys():
            marks = [pytest.mark.gpu] if backend == "cuda" else []
            yield pytest.param(name, backend, id=f"{name}-{backend}", marks=marks)


BACKENDS = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


@pytest.mark.parametrize(("algorithm", "backend"), sorted(homes("assignment"), key=lambda p: p.id))
@pytest.mark.parametrize("table", ["sparse", "dense"])
def test_assignment(algorithm, backend, table):
    C = MESH if table == "sparse" else POINTS
    assert circles(lambda: gm.assign(C, algorithm=algorithm, backend=backend, threads=2)) == []


@pytest.mark.parametrize(("algorithm", "backend"), sorted(homes("matching"), key=lambda p: p.id))
def test_matching(algorithm, backend):
    def call():
        return gm.maximum_matching(GRAPH, algorithm=algorithm, backend=backend, threads=2)

    assert circles(call) == []


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "call",
    [
        lambda where: gm.assign(LARGE_MESH, **where),
        lambda where: gm.linalg.maximum_product_matching(MATRIX, **where),
        lambda where: gm.linalg.dmperm(MATRIX, **where),
        lambda where: gm.assign(MESH, objective="bottleneck", **where),
        lambda where: gm.assign(MESH, cardinality="maximum", cost_limit=500, **where),
        lambda where: gm.assign(np.stack([POINTS, POINTS]), on_error="mark", **where),
    ],
    ids=["large", "product", "dmperm", "bottleneck", "limit", "batch"],
)
def test_others(call, backend):
    assert circles(lambda: call({"backend": backend, "threads": 2})) == []


def test_splu():
    assert circles(lambda: gm.linalg.splu(MATRIX.tocsc()).solve(np.ones(300))) == []
