"""A `GraphSession` on a device."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import gpumatch as gm
from tests.live_changes import run_graph

pytestmark = [pytest.mark.gpu, pytest.mark.emulated]


def test_changes_end_as_from_scratch():
    cp = pytest.importorskip("cupy")
    for seed in range(6):
        run_graph(seed, 6, put=cp.asarray)


def test_results_are_snapshots_on_the_device():
    cp = pytest.importorskip("cupy")
    s = gm.GraphSession(cp.asarray(np.eye(3)))
    s.add_edges([0, 1], cp.asarray([1, 0]))
    m = s.solve()
    assert isinstance(m.row_to_col, cp.ndarray)
    assert m.stats["backend"] == "cuda"
    s.remove_edges([2], [2])
    assert (m.size, s.solve().size) == (3, 2)
    with pytest.raises(ValueError, match="no edge of row 2 and column 2"):
        s.remove_edges([2], [2])
    with pytest.raises(ValueError, match="rows must be from 0 to 2"):
        s.add_edges(cp.asarray([3]), [0])


@pytest.mark.gpu
def test_a_session_on_a_device_pickles():
    cp = pytest.importorskip("cupy")
    s = gm.GraphSession(cp.asarray(np.eye(4)))
    t = pickle.loads(pickle.dumps(s))
    t.remove_edges([1], [1])
    assert (s.solve().size, t.solve().size) == (4, 3)
