"""Torch tensors in, torch tensors out: by torch where it is installed, and by a stand-in."""

from __future__ import annotations

import importlib.util
import pickle
import sys
import warnings

import numpy as np
import pytest

import gpumatch as gm
from gpumatch.interop.torch_tensors import check_costs
from gpumatch.results.tensors import checked_on_error
from tests.interop import torch_stand_in

HAS_TORCH = importlib.util.find_spec("torch") is not None
COSTS = np.array([[4.0, 1.0, 3.0], [2.0, 0.0, 5.0], [3.0, 2.0, 2.0]])


@pytest.fixture(params=["stand-in", "torch"])
def torch(request, monkeypatch):
    if request.param == "torch":
        return pytest.importorskip("torch", reason="torch is not installed")
    monkeypatch.setitem(sys.modules, "torch", torch_stand_in.torch)
    return torch_stand_in.torch


def all_of(result):
    """Every array of a result."""
    names = ("row_to_col", "col_to_row", "row_ind", "col_ind", "unmatched_rows", "unmatched_cols")
    own = [name for name in ("row_dual", "col_dual", "pair_costs") if hasattr(result, name)]
    arrays = [getattr(result, name) for name in (*names, *own)]
    return [*arrays, result.row_permutation(), result.col_permutation(), *result]


def is_tensors(torch, arrays):
    return all(isinstance(array, torch.Tensor) for array in arrays)


def test_an_assignment(torch):
    costs = torch.tensor(COSTS)
    a = gm.assign(costs)
    assert isinstance(a, gm.Assignment)
    assert (a.objective, a.gap, a.proven, a.size) == (5.0, 0.0, True, 3)
    assert a.col_ind.tolist() == [1, 0, 2]
    assert {a.row_to_col.dtype, a.row_ind.dtype, a.col_ind.dtype} == {torch.int64}
    assert [a.row_to_col.device.type, a.row_dual.device.type] == ["cpu", "cpu"]
    assert str(a.row_dual.dtype).endswith("float64")
    rows, cols = a
    assert (rows.tolist(), cols.tolist()) == ([0, 1, 2], [1, 0, 2])
    assert a.edges().tolist() == [[0, 1], [1, 0], [2, 2]]
    assert isinstance(a.edges(), torch.Tensor)
    assert a.to_dict() == {0: 1, 1: 0, 2: 2}
    assert a.to_matrix().shape == (3, 3)
    assert repr(a) == repr(gm.assign(COSTS))
    assert gm.verify(costs, a).bound == gm.verify(COSTS, a).bound == 5.0


def test_a_matching(torch):
    graph = torch.tensor(np.array([[1, 1, 0], [1, 0, 0], [1, 0, 0]]))
    m = gm.maximum_matching(graph)
    assert isinstance(m, gm.Matching)
    assert (m.size, m.proven) == (2, True)
    assert is_tensors(torch, [*m.vertex_cover(), *m.independent_set(), *m.cover_ind()])
    assert m.row_to_col.dtype == torch.int64
    assert gm.verify(graph, m).size == 2
    again = gm.maximum_matching(graph, initial=m)
    assert again.stats["start_size"] == 2


@pytest.mark.parametrize(
    ("module", "call"),
    [("gpumatch.matching", gm.maximum_matching), ("gpumatch.assignment", gm.assign)],
    ids=["matching", "assign"],
)
def test_a_front_door_does_not_call_itself(torch, calls_of, module, call):
    """The arguments are checked once, and the time limit counts from the caller's call on."""
    controls = calls_of(module, "Control")
    call(torch.tensor(COSTS), backend="cpu", time_limit=60)
    assert [control["time_limit"] for control in controls] == [60]


@pytest.mark.parametrize("source", ["matching", "assign", "bottleneck", "limits"])
def test_all_arrays_are_tensors(torch, source):
    costs = torch.tensor(COSTS)
    made = {
        "matching": lambda: gm.maximum_matching(costs),
        "assign": lambda: gm.assign(costs),
        "bottleneck": lambda: gm.assign(costs, objective="bottleneck"),
        "limits": lambda: gm.assign(costs, cost_limit=torch.tensor(np.array([2.5, 2.5, 1.0]))),
    }
    assert is_tensors(torch, all_of(made[source]()))


def test_a_batch(torch):
    batch = gm.assign(torch.tensor(np.stack([COSTS, COSTS.T])))
    assert is_tensors(torch, [batch.row_to_col, batch.objective, batch.proven, batch.size])
    assert batch.objective.tolist() == [5.0, 5.0]
    assert len(batch) == 2
    assert is_tensors(torch, [batch[0].row_to_col, *(a.col_dual for a in batch)])
    assert batch.errors == {}


def test_a_list_is_a_batch(torch):
    """Each tensor has its own shape, dtype and layout, and may require a gradient."""
    dense = torch.tensor(COSTS)
    with warnings.catch_warnings(action="ignore"):  # torch's sparse layouts are in beta state
        given = [dense.requires_grad_(), torch.tensor(COSTS[:2]).bfloat16(), dense.to_sparse_csr()]
    batch = gm.assign(given)
    assert is_tensors(torch, [batch.row_to_col, batch.objective, *(a.row_to_col for a in batch)])
    alone = [gm.assign(one).objective for one in given]
    assert batch.objective.tolist() == alone
    assert gm.assign([torch.tensor(COSTS)]).row_to_col.tolist() == [[1, 0, 2]]
    none = gm.assign([torch.tensor(np.ones((0, 2))), torch.tensor(np.ones((2, 0)))])
    assert none.row_to_col.tolist() == [[-1, -1], [-1, -1]]


def test_a_list_on_several_devices(torch):
    if torch is torch_stand_in.torch:
        elsewhere = torch_stand_in.Tensor(COSTS, device="cuda")
    else:
        elsewhere = torch.ones((3, 3), device="meta")
    with pytest.raises(ValueError, match="tensors of a list must be on one device"):
        gm.assign([torch.tensor(COSTS), elsewhere])


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0), (0, 2, 3), (2, 0, 3), (2, 3, 0)])
def test_nothing_to_assign(torch, shape):
    a = gm.assign(torch.tensor(np.ones(shape)))
    assert tuple(a.row_to_col.shape) == shape[:-1]
    assert a.row_to_col.dtype == torch.int64
    assert (a.row_to_col.numpy() == -1).all()


@pytest.mark.parametrize("limited", [False, True])
def test_gradients_and_short_floats(torch, limited):
    costs = torch.tensor(COSTS)
    wish = {"cost_limit": 100} if limited else {}
    for given in (costs.requires_grad_(), costs.bfloat16(), costs.bfloat16().requires_grad_()):
        assert gm.assign(given, **wish).objective == 5.0
        assert gm.maximum_matching(given).size == 3
        assert gm.verify(given, gm.assign(given)).bound == 5.0


def test_sparse_layouts(torch):
    dense = torch.tensor(COSTS)
    with warnings.catch_warnings(action="ignore"):  # torch's are in beta state
        layouts = [dense.to_sparse_csr(), dense.to_sparse_csc(), as_coo(torch, dense)]
    for sparse in layouts:
        a = gm.assign(sparse)
        assert (a.objective, a.row_to_col.tolist()) == (6.0, [1, 0, 2]) or a.objective <= 6.0
        assert gm.verify(sparse, a).edges == 8
        m = gm.maximum_matching(sparse)
        assert (m.size, is_tensors(torch, [m.row_to_col])) == (3, True)
        gm.verify(sparse, m)


def as_coo(torch, dense):
    return dense.to_sparse_coo() if torch is torch_stand_in.torch else dense.to_sparse()


def of_3_dimensions(torch):
    if torch is torch_stand_in.torch:
        return torch_stand_in.Tensor(np.ones((2, 2, 2)), layout="sparse_coo")
    return torch.ones((2, 2, 2)).to_sparse()


def test_what_is_not_taken_is_told(torch):
    with pytest.raises(TypeError, match=r"must be CSR, CSC or COO; got .*bsr"):
        gm.assign(torch.tensor(np.eye(4)).to_sparse_bsr((2, 2)))
    with pytest.raises(ValueError, match="sparse tensor must have 2 dimensions; got 3"):
        gm.assign(of_3_dimensions(torch))
    if torch is torch_stand_in.torch:
        elsewhere = torch_stand_in.Tensor(COSTS, device="mps")
    else:
        elsewhere = torch.ones((2, 2), device="meta")
    with pytest.raises(TypeError, match="tensors of the CPU and of CUDA are taken; got one on m"):
        gm.assign(elsewhere)
    with pytest.raises(TypeError, match="got one on m"):
        gm.maximum_matching(elsewhere)


@pytest.mark.parametrize(
    ("on_error", "device", "expected"),
    [
        (None, "cpu", "raise"),
        (None, "cuda", "mark"),
        *((what, device, what) for what in ("raise", "mark") for device in ("cpu", "cuda")),
    ],
)
def test_errors_are_raised_on_the_cpu_and_marked_on_a_gpu(on_error, device, expected):
    tensor = torch_stand_in.Tensor(COSTS, device=device)
    assert checked_on_error(on_error, tensor) == expected


def test_other_wishes_for_errors_are_refused():
    with pytest.raises(ValueError, match="on_error must be one of"):
        checked_on_error("ignore", torch_stand_in.Tensor(COSTS))


REAL = ["bool", "uint8", "uint64", "int32", "float16", "bfloat16", "float64", "float8_e5m2"]
NOT_REAL = ["complex32", "complex64", "complex128", "quint8", "bits8"]


def test_costs_are_dense_and_real(torch):
    def check(tensor, message):
        with pytest.raises(TypeError, match=message):
            check_costs(tensor)

    check_costs(torch.tensor(COSTS))
    check(torch.tensor(COSTS + 1j), "must be real numbers; got dtype .*complex128")
    with warnings.catch_warnings(action="ignore"):
        check(torch.tensor(COSTS).to_sparse_csr(), "must be a dense tensor; got one of layout")
    check(COSTS, "must be a torch tensor; got ndarray")
    if torch is torch_stand_in.torch:
        for device in ("cpu", "cuda"):
            for dtype in REAL:
                check_costs(torch_stand_in.Tensor(COSTS, dtype=f"torch.{dtype}", device=device))
            for dtype in NOT_REAL:
                check(torch_stand_in.Tensor(COSTS, dtype=f"torch.{dtype}", device=device), dtype)


def test_a_pickle_keeps_tensors(torch):
    a = gm.assign(torch.tensor(COSTS))
    again = pickle.loads(pickle.dumps(a))
    assert again.row_to_col.tolist() == a.row_to_col.tolist()
    assert isinstance(again.row_to_col, torch.Tensor)


def test_ctrl_c_brings_tensors(torch):
    def interrupt(progress):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        gm.assign(torch.tensor(np.random.default_rng(0).random((50, 50))), callback=interrupt)
    assert isinstance(caught.value.result.row_to_col, torch.Tensor)


def test_an_infeasible_tensor(torch):
    costs = np.full((2, 2), np.inf)
    with pytest.raises(gm.InfeasibleError):
        gm.assign(torch.tensor(costs))
    assert gm.assign(torch.tensor(np.stack([costs])), on_error="mark").errors.keys() == {0}


@pytest.mark.skipif(not HAS_TORCH, reason="torch is not installed")
@pytest.mark.gpu
def test_on_a_device():
    import torch

    costs = torch.tensor(COSTS, device="cuda", requires_grad=True)
    for result in (gm.assign(costs), gm.maximum_matching(costs), gm.assign(costs.bfloat16())):
        assert {array.device for array in all_of(result)} == {costs.device}
        gm.verify(costs, result)
