"""Cooperative kernels whose blocks leave grid barriers at different times.

What one block reads after a barrier, another may already overwrite in the next step, unless there
is a barrier between. On an idle device blocks leave within a microsecond, and such a race does not
show for thousands of runs. Here some leave twenty microseconds late, others each time.
"""

from __future__ import annotations

import numpy as np
import pytest

import gpumatch as gm
from graphs import costs
from graphs.grids import grid
from graphs.simple import ladder
from graphs.uniform_random import uniform

pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True)
def late_blocks(monkeypatch):
    from gpumatch.cuda import kernels as module

    monkeypatch.setattr(module, "COMPILE_OPTIONS", (*module.COMPILE_OPTIONS, "-DGPUMATCH_STAGGER"))
    module._kernels.cache_clear()
    yield
    module._kernels.cache_clear()


GRAPHS = {
    "uniform": uniform(20_000, 3, seed=1),
    "wide": uniform(3_000, 2, 9_000, seed=2),
    "grid": grid(150, 0.65, seed=3),
    "ladder": ladder(300),
}


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize(
    ("algorithm", "options"),
    [
        ("engine", {}),
        ("apfb-gpubfs-wr", {"frontier": "queue"}),
        ("apsb-gpubfs", {"frontier": "queue"}),
    ],
    ids=["engine", "queue", "queue without roots"],
)
def test_matchings(algorithm, options, name):
    m = gm.maximum_matching(
        GRAPHS[name], algorithm=algorithm, backend="cuda", init="cheap", **options
    )
    assert gm.verify(GRAPHS[name], m).size == gm.maximum_matching(GRAPHS[name], backend="cpu").size


MATRICES = {
    "rank 1": costs.low_rank(150, rank=1),
    "wide rank 1": costs.low_rank(120, 240, rank=1),
    "ties": costs.uniform_integer(300, factor=0.1),
    "floats": costs.uniform_float(300),
    "wide": costs.geom2(200, 260),
}


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize(
    ("algorithm", "options"),
    [
        ("hungarian-classical", [{}]),
        ("hungarian-tree", [{"search": "levels"}, {"search": "paper"}]),
        ("auction", [{"convergence": "counter"}, {"convergence": "reduction"}]),
        ("engine", [{}]),
    ],
)
def test_assignments(algorithm, options, name, monkeypatch):
    from gpumatch.cuda.assignment.hungarian import classical

    monkeypatch.setattr(classical, "_EDGES_A_ROW", 4)  # the classical variant runs out of room
    for option in options:
        a = gm.assign(MATRICES[name], algorithm=algorithm, backend="cuda", **option)
        gm.verify(MATRICES[name], a)
        assert a.proven


@pytest.mark.parametrize("evaluation", ["global", "shared", "block"])
@pytest.mark.parametrize("start", ["random", "greedy"])
def test_switching(start, evaluation):
    options = {"start": start, "evaluation": evaluation, "switching": "parallel"}
    matrix = costs.geom(200)
    a = gm.assign(matrix, maximize=True, algorithm="dgs", backend="cuda", **options)
    assert np.unique(a.col_ind).size == 200
    best = gm.assign(matrix, maximize=True, backend="cpu").objective
    assert a.objective <= best * (1 + 1e-12) <= (a.objective + a.gap) * (1 + 1e-9)
