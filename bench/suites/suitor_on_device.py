"""Suitor and its duals on a GPU, of up to a billion edges, on graphs made there.

Each of 2^k vertices v stands at a place P(v), where P is a bijection that scatters. Its neighbours
stand at P(v) xor a, for some random numbers a. So the graph is symmetric and simple, all degrees
are equal, and its memory is read at random. Weights are float32: uniform, whole numbers up to 1000,
or equal.

python -m bench.suites.suitor_on_device results.json

Milliseconds are wall times between two synchronisations. "half" is Suitor alone, "tight" all steps;
"steps" has the least of each step. All results are checked: mates name each other, no edge is
heavier than the matched edges of both of its ends, and the duals cover every edge.
"""

from __future__ import annotations

import functools
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bench import machine
from gpumatch.numeric.half_approximate import HalfMatching, solve
from gpumatch.running.control import Control

GRAPHS = [
    *((20, 8, "uniform"), (24, 8, "uniform"), (24, 8, "equal"), (24, 120, "uniform")),
    *((26, 30, "uniform"), (26, 30, "1 to 1000"), (26, 30, "equal"), (27, 15, "uniform")),
]
KINDS = ("uniform", "equal", "1 to 1000")
REPEATS = 3

_KERNELS = r"""
typedef unsigned u;
typedef unsigned long long uu;

__device__ u there(u x, u mask, int h) {
  x = x * 0x9e3779b1u & mask;
  x ^= x >> h;
  x = x * 0x85ebca6bu & mask;
  x ^= x >> h;
  return x * 0xc2b2ae35u & mask;
}
__device__ u back(u x, u mask, int h, u i1, u i2, u i3) {
  x = x * i3 & mask;
  x ^= x >> h;
  x = x * i2 & mask;
  x ^= x >> h;
  return x * i1 & mask;
}
extern "C" __global__ void make(u n, int degree, int h, u i1, u i2, u i3, const u* steps,
                                long long* indptr, int* indices, float* weights, int kind) {
  const u mask = n - 1;
  const long long nnz = static_cast<long long>(n) * degree, stride = gridDim.x * blockDim.x;
  for (long long e = blockIdx.x * blockDim.x + threadIdx.x; e < nnz; e += stride) {
    const u v = e / degree, w = back(there(v, mask, h) ^ steps[e % degree], mask, h, i1, i2, i3);
    uu x = min(v, w) * 0x9e3779b97f4a7c15ull + max(v, w) * 0xd6e8feb86659fd93ull;
    x = (x ^ x >> 31) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 29) * 0x94d049bb133111ebull;
    x ^= x >> 32;
    indices[e] = w;
    weights[e] = kind == 0 ? ((x >> 40) + 1) * 5.9604645e-8f : kind == 1 ? 1 : 1 + (x >> 40) % 1000;
    if (e % degree == 0) indptr[v] = e;
    if (e == nnz - 1) indptr[n] = nnz;
  }
}
extern "C" __global__ void check(u n, const long long* indptr, const int* indices,
                                 const float* weights, const double* dual, const double* first,
                                 const int* mate, uu* faults) {
  uu bare = 0, undominated = 0, unmutual = 0;
  for (u v = blockIdx.x * blockDim.x + threadIdx.x; v < n; v += gridDim.x * blockDim.x) {
    unmutual += mate[v] >= 0 && mate[mate[v]] != v;
    for (long long e = indptr[v]; e < indptr[v + 1]; ++e) {
      bare += dual[v] + dual[indices[e]] < weights[e];
      undominated += weights[e] > first[v] && weights[e] > first[indices[e]];
    }
  }
  if (bare + undominated + unmutual) atomicAdd(faults, bare + undominated + unmutual);
}
"""


@functools.cache
def _module() -> Any:
    import cupy

    return cupy.RawModule(code=_KERNELS)


def graph_of(k: int, degree: int, kind: str) -> tuple[Any, Any, Any]:
    """Offsets, neighbours and weights of 2^k vertices, on the current device."""
    import cupy as cp

    n = 1 << k
    steps = np.random.default_rng(k).choice(n - 1, degree, replace=False).astype(np.uint32) + 1
    arrays = (
        cp.empty(n + 1, cp.int64),
        cp.empty(n * degree, cp.int32),
        cp.empty(n * degree, cp.float32),
    )
    inverses = [np.uint32(pow(c, -1, 1 << 32)) for c in (0x9E3779B1, 0x85EBCA6B, 0xC2B2AE35)]
    sizes = np.uint32(n), np.int32(degree), np.int32((k + 1) // 2)
    _module().get_function("make")(
        (4096,),
        (256,),
        (*sizes, *inverses, cp.asarray(steps), *arrays, np.int32(KINDS.index(kind))),
    )
    return arrays


class _Timed:
    """The steps, each with the milliseconds of all its calls."""

    def __init__(self, steps: Any) -> None:
        self._steps = steps
        self.spent: dict[str, list[float]] = {}

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._steps, name)
        if not callable(found):
            return found

        def call(*arguments: Any) -> Any:
            result, taken = _clocked(lambda: found(*arguments))
            self.spent.setdefault(name, []).append(taken)
            return result

        return call


def _clocked(call: Callable[[], Any]) -> tuple[Any, float]:
    import cupy

    device = cupy.cuda.Device()
    device.synchronize()
    begin = time.perf_counter()
    result = call()
    device.synchronize()
    return result, round(1e3 * (time.perf_counter() - begin), 3)


def measured(k: int, degree: int, kind: str) -> dict[str, Any]:
    """What one graph takes, and what its duals prove."""
    import cupy as cp

    from gpumatch.cuda.general.half_approximate import DeviceSteps

    graph = graph_of(k, degree, kind)

    def run(bound: str, steps: Any) -> tuple[HalfMatching, float]:
        return _clocked(lambda: solve(steps, Control(), bound))

    def steps() -> Any:
        return DeviceSteps(*graph, Control())

    run("tight", steps())  # compiles
    halves, wholes = ([run(bound, steps()) for _ in range(REPEATS)] for bound in ("half", "tight"))
    timed = _Timed(steps())
    run("tight", timed)
    (half, _), (tight, _) = halves[-1], wholes[-1]
    faults = cp.zeros(1, cp.uint64)
    _module().get_function("check")(
        (8192,),
        (256,),
        (np.uint32(1 << k), *graph, tight.dual, half.dual, tight.mate, faults),
    )
    if int(faults[0]):
        raise AssertionError(f"{int(faults[0])} faults")
    bound = float(tight.dual.sum())
    weights = [float(timed.weights_of(found.entry).sum()) / 2 for found in (half, tight)]
    return {
        "vertices": 1 << k,
        "degree": degree,
        "weights": kind,
        "edges": graph[1].size // 2,
        "half_ms": [taken for _, taken in halves],
        "tight_ms": [taken for _, taken in wholes],
        "steps": {name: [min(taken), len(taken)] for name, taken in timed.spent.items()},
        "half_share": weights[0] / bound,
        "tight_share": weights[1] / bound,
    }


def main(out: Path) -> None:
    """Measure all graphs, and write them after each."""
    import cupy

    rows = []
    for graph in GRAPHS:
        rows.append(measured(*graph))
        print(json.dumps(rows[-1]), flush=True)
        out.write_text(json.dumps({"run": machine.describe(), "graphs": rows}, indent=1) + "\n")
        cupy.get_default_memory_pool().free_all_blocks()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
