"""What results and certificates print."""

from __future__ import annotations

import functools

import networkx as nx
import numpy as np
import pytest
from scipy.sparse import csr_array

import gpumatch as gm
from gpumatch import linalg
from gpumatch.interop.networkx import NodeGraph

A = np.array([[2, 1, 0], [0, 3, 1]])
FLOATS = A + 0.5
EQUAL = np.array([[1, 2], [2, 2]])
STOPPED = gm.Assignment(
    A[0], A[0], A[0], A[0],
    pair_costs=A[0], objective=3.5, gap=1, proven=False, size=2, stats={"algorithm": "dgs"},
)  # fmt: skip


@pytest.mark.parametrize(
    ("thing", "text"),
    [
        (lambda: gm.BipartiteGraph(A), "BipartiteGraph(2 rows, 3 columns, 4 edges, host)"),
        (lambda: gm.costs.as_costs(A), "DenseCosts(2 rows, 3 columns, int64, host)"),
        (
            lambda: gm.costs.as_costs(csr_array(FLOATS)),
            "SparseCosts(2 rows, 3 columns, 6 edges, float64, host)",
        ),
        (lambda: gm.maximum_matching(A), "Matching(size 2, maximum, engine)"),
        (
            lambda: gm.maximum_matching(np.ones((3, 3)), time_limit=0),
            "Matching(size 0, not proven maximum, engine)",
        ),
        (lambda: gm.assign(A + 1), "Assignment(2 pairs, objective 2, optimal, engine)"),
        (
            lambda: STOPPED,
            "Assignment(2 pairs, objective 3.5, not proven optimal, dgs)",
        ),
        (
            lambda: gm.assign(A + 1, objective="bottleneck"),
            "BottleneckAssignment(2 pairs, objective 1, optimal)",
        ),
        (
            lambda: gm.assign(A, objective="bottleneck", time_limit=0),
            "BottleneckAssignment(0 pairs, objective None, not proven optimal)",
        ),
        (lambda: gm.assign([A, A]), "BatchAssignment(2 problems, 2 proven optimal)"),
        (
            lambda: linalg.maximum_product_matching(A),
            "ProductMatching(2 pairs, log_product 1.79176)",
        ),
        (lambda: linalg.splu(A[:, :2]), "LU(2 rows, 6 entries in L and U)"),
        (lambda: NodeGraph.of(nx.path_graph(3)), "NodeGraph(3 nodes, 4 entries)"),
        (lambda: NodeGraph.of(nx.DiGraph([(0, 1)])), "NodeGraph(2 nodes, 1 arcs)"),
    ],
)
def test_results(thing, text):
    assert repr(thing()) == text


@pytest.mark.parametrize(
    ("text", "source", "solve"),
    [
        (
            "maximum: a matching of 2 edges and a cover of 2 vertices, checked on 4 edges",
            A,
            gm.maximum_matching,
        ),
        (
            "optimal: 2 pairs of total 2, and dual prices of total 2, checked on 6 pairs; the gap "
            "is 0",
            A + 1,
            gm.assign,
        ),
        (
            "optimal: 2 pairs up to 2, and a cover of 1 vertices of all that are better, checked "
            "on 4 pairs",
            EQUAL,
            functools.partial(gm.assign, objective="bottleneck"),
        ),
        ("finest: 1 blocks on a diagonal of 2 entries, checked on 4 entries", A, linalg.dmperm),
    ],
)
def test_certificates(text, source, solve):
    assert str(gm.verify(source, solve(source))) == text


def test_what_superlu_is_told(monkeypatch):
    asked = []
    monkeypatch.setattr("scipy.sparse.linalg.splu", lambda matrix, **told: asked.append(told))
    square = np.diag([1.0, 2.0])
    linalg.splu(square)
    linalg.splu(square, "NATURAL", 0.5, 3, 7, {"Equil": True, "SymmetricMode": True})
    linalg.splu(square, options={"SymmetricMode": True})
    names = "permc_spec", "diag_pivot_thresh", "relax", "panel_size", "options"
    assert [tuple(told[name] for name in names) for told in asked] == [
        (None, 0.01, None, None, {"Equil": False}),
        ("NATURAL", 0.5, 3, 7, {"Equil": True, "SymmetricMode": True}),
        (None, 0.01, None, None, {"Equil": False, "SymmetricMode": True}),
    ]


def test_scales_of_rows_and_columns_have_one_middle():
    rng = np.random.default_rng(4)
    matrix = rng.random((6, 6)) * 10.0 ** rng.integers(-9, 9, (6, 1))
    s = linalg.maximum_product_matching(matrix)
    middles = [(scale.min() + scale.max()) / 2 for scale in (s.row_log_scale, s.col_log_scale)]
    assert middles[0] == pytest.approx(middles[1])
    assert (s.row_scale == np.exp(s.row_log_scale)).all()
    assert s.stats["algorithm"] == "engine"


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ([1e-16], 1),
        ([4e-10, 2e-10, 2e-10], 1 + 2),
        ([4e-10, 3e-10], 1 + 1),
        ([4e-10, 8e-10], 1 + 1),
        ([0.9**k for k in range(11)], 1 + 10),  # of no use yet
    ],
)
def test_refinement_ends_when_it_no_longer_helps(monkeypatch, found, expected):
    lu = linalg.splu(np.random.default_rng(5).random((30, 30)))
    once, calls, errors = lu._solve_once, [], iter(found)
    monkeypatch.setattr(lu, "_solve_once", lambda *told: calls.append(told) or once(*told))
    monkeypatch.setattr("gpumatch.linalg.refinement._greatest", lambda _: np.array([next(errors)]))
    lu.solve(np.ones(30))
    assert len(calls) == expected
    assert not list(errors)
