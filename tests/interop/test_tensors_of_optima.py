"""Rankings and other optima of torch tensors."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import gpumatch as gm

torch = pytest.importorskip("torch")
on_devices = pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
C = np.array([[4, 1, 3], [2, 0, 5], [3, 2, 2]])


@on_devices
def test_rankings_of_tensors_are_tensors(device):
    own, given = gm.k_best(C, 4), gm.k_best(torch.from_numpy(C).to(device), 4)
    assert given.row_to_col.device.type == device
    assert isinstance(given.row_to_col, torch.Tensor)
    assert given.row_to_col.tolist() == own.row_to_col.tolist()
    assert given.objective.tolist() == own.objective.tolist()
    assert isinstance(given[1].row_to_col, torch.Tensor)
    assert [one.row_to_col.tolist() for one in given] == own.row_to_col.tolist()
    assert [len(given), len(given[1:3])] == [4, 2]
    assert "4 assignments" in repr(given)
    batch = gm.k_best(
        torch.from_numpy(np.stack([C, C.T])).to(device), 2, cost_limit=torch.tensor(9)
    )
    assert batch.objective.shape == (2, 2)
    assert isinstance(batch.counts, torch.Tensor)
    assert batch[0].objective.tolist() == batch.objective[0].tolist()


def test_alternatives_of_tensors_are_tensors():
    costs = torch.from_numpy(C)
    for a in (gm.assign(costs), gm.assign(C)):
        own, given = gm.alternatives(C, gm.assign(C), within=1), gm.alternatives(costs, a, within=1)
        assert given.matrix.layout == torch.sparse_csr
        assert given.matrix.to_dense().tolist() == own.matrix.toarray().tolist()
        assert given.edges().tolist() == own.edges().tolist()
        assert given.witness(0, 0).tolist() == own.witness(0, 0).tolist()
        assert isinstance(given.witness(0, 0), torch.Tensor)
        assert given.row_block is None
        assert len(pickle.loads(pickle.dumps(own))) == len(given)
        gm.verify(costs, given)


@on_devices
def test_alternatives_are_on_the_device_of_the_costs(device):
    costs = torch.from_numpy(C).to(device)
    given = gm.alternatives(costs, gm.assign(costs))
    assert given.row_block.device.type == given.matrix.device.type == device
    own = gm.alternatives(C, gm.assign(C))
    assert given.matrix.to_dense().tolist() == own.matrix.toarray().tolist()
    gm.verify(costs, given)


@on_devices
def test_edges_of_tensors_are_tensors(device):
    A = np.array([[1, 1, 0], [1, 1, 1], [0, 0, 1]])
    for find in (gm.possible_edges, gm.forced_edges):
        own, given = find(A), find(torch.from_numpy(A).to(device), torch.tensor([0, 1, 2]))
        assert given.edges().tolist() == own.edges().tolist()
        assert given.matrix.to_dense().tolist() == own.matrix.toarray().tolist()
        assert isinstance(given.row_to_col, torch.Tensor)
        gm.verify(torch.from_numpy(A).to(device), given)
