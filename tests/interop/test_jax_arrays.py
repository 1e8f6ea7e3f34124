"""JAX arrays in, JAX arrays out, outside of compiled programs."""

import os
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest

import gpumatch as gm

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # other tests share the GPU
jax = pytest.importorskip("jax")
jax.config.update("jax_num_cpu_devices", 2)

import jax.numpy as jnp  # noqa: E402
from jax.sharding import Mesh, NamedSharding, PartitionSpec  # noqa: E402

C = np.array([[4, 1, 3], [2, 0, 5], [3, 2, 2]], np.int32)
A = np.array([[1, 1, 0], [1, 1, 1], [0, 0, 1]], np.int32)

pytestmark = pytest.mark.filterwarnings("error::UserWarning")  # JAX's word for a lost type


@pytest.fixture(
    params=[("cpu", 0), ("cpu", 1), pytest.param(("cuda", 0), marks=pytest.mark.gpu)],
    ids=["cpu", "second-cpu", "cuda"],
)
def device(request):
    platform, number = request.param
    return jax.devices(platform)[number]


def check(arrays, device):
    for array in arrays:
        assert isinstance(array, jax.Array)
        assert array.devices() == {device}


def common(result):
    names = ("row_to_col", "col_to_row", "row_ind", "col_ind", "unmatched_rows", "unmatched_cols")
    calls = result.row_permutation(), result.col_permutation(), result.edges()
    return [*(getattr(result, name) for name in names), *calls, *result]


def test_an_assignment(device):
    costs = jax.device_put(C, device)
    a = gm.assign(costs)
    assert isinstance(a, gm.Assignment)
    check([*common(a), a.row_dual, a.col_dual, a.pair_costs], device)
    assert {array.dtype for array in common(a)} == {np.dtype(np.int32)}
    assert (a.objective, a.gap, a.proven) == (5, 0, True)
    assert a.col_ind.tolist() == [1, 0, 2]
    assert int(costs[a.row_ind, a.col_ind].sum()) == 5
    assert a.to_dict() == {0: 1, 1: 0, 2: 2}
    assert repr(a) == repr(gm.assign(C))
    assert gm.verify(costs, a).bound == gm.verify(C, a).bound == 5
    again = gm.assign(costs, initial=a, cost_limit=jax.device_put(np.int32(9), device))
    assert again.row_to_col.tolist() == [1, 0, 2]
    bottleneck = gm.assign(costs, objective="bottleneck")
    check(common(bottleneck), device)
    gm.verify(costs, bottleneck)
    check(bottleneck.threshold_cover(), device)


def test_a_matching(device):
    graph = jax.device_put(A, device)
    m = gm.maximum_matching(graph)
    check([*common(m), *m.vertex_cover(), *m.independent_set(), *m.cover_ind()], device)
    assert gm.verify(graph, m).size == m.size == 3
    assert gm.maximum_matching(graph, initial=m).stats["start_size"] == 3
    capacity = jax.device_put(np.array([2, 1, 1]), device)
    b = gm.maximum_matching(graph, row_capacity=capacity, backend="cpu")
    check([b.row_ind, b.row_degree, b.row_capacity], device)
    gm.verify(graph, b)


def test_a_transport(device):
    costs, supply = jax.device_put(C, device), jax.device_put(np.array([3, 1, 2]), device)
    t, own = gm.transport(costs, supply, [2, 2, 2]), gm.transport(C, [3, 1, 2], [2, 2, 2])
    check([t.flow, t.row_ind, t.col_ind, t.row_dual, t.col_dual], device)
    assert (t.objective, t.flow.tolist()) == (own.objective, own.flow.tolist())
    gm.verify(costs, t)
    assert (t.total, repr(t)) == (6, repr(own))
    batch = gm.transport(jax.device_put(np.stack([C, C]), device), [[3, 1, 2]] * 2, [[2, 2, 2]] * 2)
    check([batch.objective, batch.row_dual, batch[1].flow], device)


def test_batches(device):
    costs = jax.device_put(np.stack([C, C.T]), device)
    for batch in (gm.assign(costs), gm.assign([*costs])):
        check([batch.row_to_col, batch.objective, batch.gap, batch.size, batch.proven], device)
        assert batch.objective.tolist() == [5, 5]
        check([batch[0].row_to_col, *(a.col_dual for a in batch), batch[-1].row_ind], device)
        assert (len(batch), repr(batch)) == (2, repr(gm.assign(np.stack([C, C.T]))))
    ranked = gm.k_best(costs, 2)
    check([ranked.row_to_col, ranked.objective, ranked.counts, ranked[0].objective], device)
    alone = gm.k_best(costs[0], 3)
    check([alone.row_to_col, alone[1].row_to_col], device)
    check([one.row_to_col for one in alone[1:3]], device)
    assert repr(alone) == repr(gm.k_best(C, 3))
    assert alone.objective.tolist() == gm.k_best(C, 3).objective.tolist()


def test_a_list_of_more_than_one_device_or_library():
    first, second = (jax.device_put(C, one) for one in jax.devices("cpu")[:2])
    with pytest.raises(ValueError, match="of a list must be on one device"):
        gm.assign([first, second])
    assert isinstance(gm.assign([first, C]).row_to_col, np.ndarray)


def test_an_array_that_devices_share():
    devices = jax.devices("cpu")[:2]
    rows = NamedSharding(Mesh(devices, "rows"), PartitionSpec("rows"))
    costs = jax.device_put(np.array([[1, 9], [9, 1]]), rows)
    a = gm.assign(costs)
    check([a.row_to_col], devices[0])
    assert gm.verify(costs, a).bound == a.objective == 2


def test_other_optima(device):
    costs, graph = jax.device_put(C, device), jax.device_put(A, device)
    within = 0 if device.platform == "gpu" else 1  # above 0 is for costs on the host
    given, own = (
        gm.alternatives(costs, gm.assign(costs), within=within),
        gm.alternatives(C, gm.assign(C), within=within),
    )
    check([given.edges(), given.witness(0, 1), given.matrix.data, given.matrix.indices], device)
    with in_64_bits():
        assert given.matrix.todense().tolist() == own.matrix.toarray().tolist()
    gm.verify(costs, given)
    forced = gm.forced_edges(graph, gm.maximum_matching(graph))
    check([forced.edges(), forced.row_to_col], device)
    gm.verify(graph, forced)


def test_points(device):
    X, Y = np.array([[0.0], [5.0]], np.float32), np.array([[6.0], [1.0]], np.float32)
    points = gm.PointCosts(jax.device_put(X, device), jax.device_put(Y, device))
    a = gm.assign(points)
    check([a.row_to_col, a.row_dual], device)
    assert (a.row_to_col.tolist(), a.objective) == ([1, 0], 2.0)
    gm.verify(points, a)
    both = gm.PointCosts.batch(jax.device_put(X[None], device), jax.device_put(Y[None], device))
    check([gm.assign(both).row_to_col], device)


def in_64_bits():
    return jax.enable_x64(True) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64()


def test_numbers_of_64_bits_are_exact(device):
    """Duals, costs and objectives keep their type, though JAX's own default is 32 bits."""
    large = np.array([[2**60, 2**60 + 1], [2**60 + 1, 2**60 + 7]])
    masses = [2**40, 2**40 + 1]
    with in_64_bits():
        whole, real = jax.device_put(large, device), jax.device_put(np.sqrt(large / 3), device)
    assert (whole.dtype, real.dtype) == (np.int64, np.float64)
    for costs in (whole, real):
        host = np.asarray(costs)
        a, own = gm.assign(costs), gm.assign(host)
        assert a.row_dual.dtype == a.pair_costs.dtype == host.dtype
        assert a.row_dual.tolist() == own.row_dual.tolist()
        assert a.pair_costs.tolist() == own.pair_costs.tolist()
        assert sum(a.row_dual.tolist()) + sum(a.col_dual.tolist()) == pytest.approx(own.objective)
        again = pickle.loads(pickle.dumps(a))
        assert again.row_dual.dtype == host.dtype
        assert again.row_dual.tolist() == own.row_dual.tolist()
        gm.verify(costs, again)
        batch = gm.assign(costs[None] if costs is real else [costs])
        assert batch.objective.tolist() == [own.objective]
    t = gm.transport(jax.device_put(C[:2, :2], device), masses, masses)
    assert (t.flow.dtype, t.total, sum(t.flow.tolist())) == (np.int64, 2**41 + 1, 2**41 + 1)
    gm.verify(C[:2, :2], t)
    assert jnp.asarray(np.zeros(1)).dtype == np.float32  # the caller's own default stays


def test_a_pickle_keeps_library_and_device(device):
    for result in (
        gm.assign(jax.device_put(C, device)),
        gm.assign(jax.device_put(C[None], device)),
        gm.maximum_matching(jax.device_put(A, device)),
    ):
        again = pickle.loads(pickle.dumps(result))
        check([again.row_to_col], device)
        assert again.row_to_col.tolist() == result.row_to_col.tolist()


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16, bool])
def test_short_types(dtype, device):
    costs = jax.device_put(jnp.asarray(C, dtype), device)
    a = gm.assign(costs)
    check([a.row_to_col], device)
    assert a.objective == gm.assign(np.asarray(costs, np.float32)).objective


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 2, 3), (2, 0, 3)])
def test_nothing_to_assign(shape, device):
    a = gm.assign(jax.device_put(np.ones(shape, np.float32), device))
    check([a.row_to_col], device)
    assert a.row_to_col.shape == shape[:-1]


def test_errors_and_ctrl_c():
    with pytest.raises(gm.InfeasibleError):
        gm.assign(jnp.full((2, 2), jnp.inf))
    assert gm.assign(jnp.full((1, 2, 2), jnp.inf), on_error="mark").errors.keys() == {0}

    def interrupt(progress):
        raise KeyboardInterrupt

    costs = jnp.asarray(np.random.default_rng(0).random((50, 50), np.float32))
    with pytest.raises(KeyboardInterrupt) as caught:
        gm.assign(costs, callback=interrupt)
    assert isinstance(caught.value.result.row_to_col, jax.Array)


def test_compiled_programs_are_as_before():
    costs, seen = jnp.asarray(C), []

    def program(given):
        with pytest.raises(jax.errors.TracerArrayConversionError):
            gm.assign(given)
        a = gm.assign(costs)  # is known while the program is compiled
        seen.append(a.row_to_col.tolist())
        return given[a.row_ind, a.col_ind].sum()

    assert int(jax.jit(program)(costs)) == 5
    assert seen == [[1, 0, 2]]


def test_jax_is_not_imported():
    text = (
        "import sys, numpy as np, gpumatch as gm\n"
        "a = gm.assign(np.eye(3)); gm.verify(np.eye(3), a); gm.maximum_matching(np.eye(3))\n"
        "assert 'jax' not in sys.modules and 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", text], check=True)


def test_a_list_of_several_libraries_is_a_batch_of_arrays():
    torch = pytest.importorskip("torch")
    matrix = np.array([[4.0, 1.0], [2.0, 3.0]])
    with warnings.catch_warnings():  # torch says of sparse tensors that they are new
        warnings.simplefilter("ignore")
        sparse = torch.tensor(matrix).to_sparse_csr()
    parts = [matrix, jnp.asarray(matrix), torch.tensor(matrix, requires_grad=True), sparse]
    batch = gm.assign(parts)
    assert type(batch[1].row_to_col) is np.ndarray
    assert batch.objective.tolist() == [3.0] * 4
    assert gm.verify(parts, batch)
