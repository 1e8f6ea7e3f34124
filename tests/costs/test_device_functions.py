"""Costs by CUDA C++ of the caller: the numbers and the optima of a function of the host."""

from __future__ import annotations

import numpy as np
import pytest

import gpumatch as gm
from gpumatch.costs import FunctionCosts

SOURCE = """
__device__ inline float bent(float t) { return t * t * 0.25f + fabsf(t); }

__device__ float cost(long long i, long long j, const float* x, const int* y) {
  return bent(x[i] - y[j]);
}
"""
WHOLE = "__device__ long long cost(long long i, long long j, const long long* c) {" \
    " return c[i * 31 + j]; }"  # fmt: skip


def floats(shape=(40, 40), seed=3):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=shape[0]).astype(np.float32) * 9, rng.integers(-20, 20, shape[1])
    y = y.astype(np.int32)
    step = x[:, None] - y.astype(np.float32)
    matrix = step * step * np.float32(0.25) + abs(step)
    costs = FunctionCosts(source=SOURCE, shape=shape, dtype=np.float32, arrays=(x, y))
    return costs, matrix.astype(np.float64)


def integers(**named):
    matrix = np.random.default_rng(5).integers(-30, 30, (31, 31))
    costs = FunctionCosts(source=WHOLE, shape=(31, 31), dtype=np.int64, arrays=[matrix], **named)
    return costs, matrix


def on_host(values):
    return values.get() if hasattr(values, "get") else values


@pytest.mark.parametrize("given", [
    ({}, "either tile or source"),
    ({"tile": lambda rows, cols: None, "source": SOURCE}, "either tile or source"),
    ({"source": 3}, "CUDA C\\+\\+ as a str; got int"),
    ({"tile": lambda rows, cols: None, "arrays": [3]}, "arrays are for a source"),
    ({"source": SOURCE, "shape": None}, "need a shape and a dtype"),
    ({"source": SOURCE, "dtype": None}, "need a shape and a dtype"),
], ids=["none", "both", "text", "arrays", "shape", "dtype"])  # fmt: skip
def test_what_is_no_function_is_refused(given):
    named, message = given
    with pytest.raises(TypeError, match=message):
        FunctionCosts(**{"shape": (3, 3), "dtype": float, **named})


def test_a_source_without_a_gpu_is_told_why(monkeypatch):
    pytest.importorskip("cupy")
    from gpumatch.costs import functions
    from gpumatch.cuda.assignment.points.device_functions import DeviceFunction

    def fails(*_):
        raise RuntimeError("cudaErrorInsufficientDriver")

    monkeypatch.setattr(functions, "why_no_cuda", lambda: "there is none")
    for name in ("block", "of"):  # arrays fail before any block
        monkeypatch.setattr(DeviceFunction, name, fails)
        with pytest.raises(RuntimeError, match="source needs a GPU and CuPy: there is none"):
            FunctionCosts(source=SOURCE, shape=(3, 3), dtype=float)


def test_the_compiler_takes_the_source():
    """And names its lines, with the caller's arrays in the call."""
    nvrtc = pytest.importorskip("cupy_backends.cuda.libs.nvrtc")
    from gpumatch.cuda.assignment.points import device_functions

    def log_of(text):
        source = device_functions._source(text, "float", ("float", "int"))
        program = nvrtc.createProgram(source.text(), "kernels.cu", (), ())
        try:
            nvrtc.compileProgram(program, ("-std=c++17", "-arch=sm_80", *source.options))
        except nvrtc.NVRTCError:
            return nvrtc.getProgramLog(program)
        finally:
            nvrtc.destroyProgram(program)
        return None

    assert log_of(SOURCE) is None
    assert "source(5): error" in log_of(SOURCE.replace("bent(x", "unbent(x"))
    assert "call of cost(1): error" in log_of("__device__ float other(int i) { return i; }")


def test_what_does_not_compile_is_told(monkeypatch):
    pytest.importorskip("cupy")
    from gpumatch.cuda.assignment.points import device_functions

    class CompileException(Exception):
        def get_message(self):
            return "source(2): error: no such thing"

    class Kernels(dict):
        def struct(self, name):
            return device_functions.SOURCE.struct(name)

        def __missing__(self, name):
            raise CompileException

    monkeypatch.setattr(device_functions, "kernels_for", lambda source: Kernels())
    function = device_functions.DeviceFunction(
        device_functions.SOURCE, "__device__ float cost(...)", (), np.dtype(float)
    )
    with pytest.raises(ValueError, match=r"must define `__device__ float cost(.|\n)*no such thing"):
        function._launch("fill_costs", 1)


@pytest.mark.gpu
@pytest.mark.emulated
class TestOnADevice:
    @pytest.fixture(autouse=True)
    def _is_small(self, monkeypatch):
        pytest.importorskip("cupy")
        from gpumatch.cuda.assignment.points import tuning as tunings
        from tests.clouds import SMALL
        from tests.cpu.assignment.tuned import tune

        tune(monkeypatch, tunings, **SMALL)

    def test_its_numbers_are_those_of_the_host(self):
        costs, matrix = floats((9, 13))
        assert costs.on_device
        assert (on_host(costs.dense()) == matrix).all()
        assert (costs.low, costs.high) == (matrix.min(), matrix.max())
        turned = costs.problem(True, True)
        assert (on_host(turned.dense()) == -matrix.T).all()
        rows, cols = np.array([3, 0, 8]), np.array([12, 0, 5])
        assert (on_host(costs.at(rows, cols)) == matrix[rows, cols]).all()
        assert (on_host(turned.at(cols, rows)) == -matrix[rows, cols]).all()
        part = turned.restricted(cols, rows).restricted(np.array([2, 1]), np.arange(3))
        assert (on_host(part.dense()) == -matrix.T[cols][[2, 1]][:, rows]).all()
        assert (on_host(part.at(np.array([1]), np.array([2]))) == -matrix[8, 0]).all()
        assert (costs.to_host().dense() == matrix).all()
        assert (costs.to_host().at(rows, cols) == matrix[rows, cols]).all()

    @pytest.mark.parametrize("wish", [
        {}, {"maximize": True}, {"cost_limit": 5.0}, {"cardinality": "any", "maximize": True},
    ], ids=str)  # fmt: skip
    @pytest.mark.parametrize("shape", [(40, 40), (45, 30)], ids=str)
    def test_floats_are_assigned_without_a_matrix(self, wish, shape, monkeypatch):
        from gpumatch.cuda.assignment.points.device_functions import FunctionLines

        costs, matrix = floats(shape)
        monkeypatch.setattr(FunctionCosts, "dense", None)
        searches, least = [], FunctionLines.least
        monkeypatch.setattr(
            FunctionLines, "least", lambda *given: searches.append(given) or least(*given)
        )
        a = gm.assign(costs, **wish)
        expected = gm.assign(matrix, backend="cpu", **wish)
        worth = [r.objective - wish.get("cost_limit", 0) * r.size for r in (a, expected)]
        assert worth[0] == pytest.approx(worth[1])
        assert a.proven
        assert searches
        assert gm.verify(costs, a).gap <= gm.verify(costs, a).allowance

    @pytest.mark.parametrize("wish", [{}, {"maximize": True}, {"cost_limit": -3}], ids=str)
    def test_integers_are_assigned_without_a_matrix(self, wish, monkeypatch):
        costs, matrix = integers(low=-30, high=30)
        monkeypatch.setattr(FunctionCosts, "dense", None)
        a = gm.assign(costs, **wish)
        expected = gm.assign(matrix, backend="cpu", **wish)
        assert (a.objective, a.size) == (expected.objective, expected.size)
        gm.verify(costs, a)

    def test_costs_beyond_their_range_are_told(self):
        costs, _ = integers(low=-29, high=30)
        with pytest.raises(ValueError, match="not from -29 to 30"):
            gm.assign(costs)

    def test_a_search_finds_the_cheapest(self):
        from gpumatch.cuda.assignment.points.products import lines_of

        costs, matrix = floats((9, 40))
        problem = costs.problem(True, False)
        search, xp = lines_of(problem), costs.xp
        price = np.random.default_rng(1).normal(size=40)
        search.set_prices(xp.asarray(price))
        found, values = map(on_host, search.least(5, xp.full(9, -20.0)))
        reduced = -matrix - price
        for row in range(9):
            order = [col for col in np.argsort(reduced[row])[:5] if reduced[row, col] < -20]
            assert found[row].tolist() == [*order, *[-1] * (5 - len(order))]
            np.testing.assert_allclose(values[row, : len(order)], reduced[row, order])
