"""Deveci, Kaya, Uçar, Çatalyürek (Euro-Par 2013), section 4: GPU, multicore, sequential, SciPy.

Every algorithm starts from the same cheap matching, made once a graph. What is compared is the time
of the search after it: "we compare the running time of the matching algorithms after this common
initialization". Multicore algorithms get 8 threads. Each graph is run as it is, and with its rows
and columns permuted at random (RCP). SciPy takes no start, so it is timed from no matching.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from scipy.sparse import csr_array

import gpumatch as gm
from bench.harness import Contender, Limits, Overrun, Result, Sample, repeat
from bench.instances import Instance, generated, real, small, with_permutations
from bench.peers import Peer
from gpumatch.contracts import MatchingTask
from gpumatch.cpu.matching import cheap
from gpumatch.dispatch.registry import BackendName
from gpumatch.running.control import Control

THREADS = 8
THRESHOLD = 1.0  # seconds of a sequential algorithm that put a graph into the sets S1
GPU_ALGORITHMS = ("apfb-gpubfs", "apfb-gpubfs-wr", "apsb-gpubfs", "apsb-gpubfs-wr")
MULTICORE = ("p-dbfs", "p-pfp", "p-hk")
SEQUENTIAL = ("pfp", "hk")  # those of the paper, by which it chooses its sets
BEST_GPU = "apfb-gpubfs-wr ct"
FIGURE2 = ("uniform-*", "delaunay_n*")  # for Hamrle3, as sparse and irregular, and delaunay


# -- problem and contenders ----------------------------------------------------------------------


class Start:
    """A graph with the start that all contenders share, on the host and, if needed, the device.

    Attributes
    ----------
    facts : dict
        What is kept of the graph, with the seconds it took to move it to the device.
    """

    def __init__(self, instance: Instance, matrix: csr_array, device: str) -> None:
        graph = gm.BipartiteGraph(matrix)
        _ = graph.indptr, graph.col_indptr  # both directions are there before any clock runs
        start = _cheap_matching(graph)
        self.matrix = matrix
        self.facts = {**instance.facts(matrix), "start": int((start >= 0).sum())}
        self._on_host = self._on_device = graph, start
        if device == "cuda":
            begin = _device_clock()
            self._on_device = graph.to_device(), start
            self.facts["transfer"] = _device_clock() - begin

    def on(self, backend: str) -> tuple[gm.BipartiteGraph, np.ndarray]:
        """The graph where `backend` wants it, and the start."""
        return self._on_device if backend == "cuda" else self._on_host


problem = Start


def _cheap_matching(graph: gm.BipartiteGraph) -> np.ndarray:
    """The column of each row in the common start."""
    row_to_col = np.full(graph.nrows, -1, dtype=np.int32)
    col_to_row = np.full(graph.ncols, -1, dtype=np.int32)
    cheap.run(MatchingTask(graph, row_to_col, col_to_row, Control()))
    return row_to_col


def _device_clock() -> float:
    """The time when the GPU has finished its work."""
    import cupy

    cupy.cuda.Device().synchronize()
    return time.perf_counter()


@dataclass(frozen=True)
class Search:
    """One of the library's algorithms, from the common start; its search is what counts."""

    name: str
    algorithm: str
    backend: BackendName
    threads: int = 1
    options: Mapping[str, Any] = field(default_factory=dict)

    def measure(self, problem: Start, limits: Limits) -> Result:
        return repeat(lambda: self._sample(problem, limits.cap), limits)

    def _sample(self, problem: Start, cap: float) -> Sample:
        graph, start = problem.on(self.backend)
        matching = gm.maximum_matching(
            graph,
            algorithm=self.algorithm,
            backend=self.backend,
            init="none",
            initial=start,
            threads=self.threads,
            time_limit=cap,
            **self.options,
        )
        if not matching.proven:
            raise Overrun
        levels = tuple(phase["levels"] for phase in matching.stats["trace"])
        return Sample(matching.stats["seconds"]["search"], matching.size, levels)


def contenders(device: str, threads: int) -> list[Contender]:
    """All contenders; those for the GPU run on `device`, ``"cuda"`` or ``"reference"``, if any."""
    on_cpu = [Search(name, name, "cpu", threads) for name in MULTICORE]
    on_cpu += [Search(name, name, "cpu") for name in (*SEQUENTIAL, "hkdw")]
    on_gpu = [] if device == "cpu" else list(_on_gpu(cast(BackendName, device)))
    return [*on_gpu, *on_cpu, Peer("scipy")]


def _on_gpu(backend: BackendName) -> Iterator[Search]:
    """The paper's eight; those with CT driven by a queue, and two with the paper's host loop."""
    for algorithm in GPU_ALGORITHMS:
        for launch in ("ct", "mt"):
            options = {"launch": launch}
            yield Search(f"{algorithm} {launch}", algorithm, backend, options=options)
    if backend == "cuda":
        for algorithm in GPU_ALGORITHMS:
            has_roots = algorithm.endswith("-wr")
            for more, value in (("frontier", "queue"), *[("host_loop", "level")] * has_roots):
                options = {"launch": "ct", more: value}
                yield Search(f"{algorithm} ct {value}", algorithm, backend, options=options)


# -- graphs --------------------------------------------------------------------------------------

warming = small


def instances(quick: bool, data: str | None) -> list[Instance]:
    """Original and permuted graphs, in an order that is useful wherever a run is cut off."""
    if quick:
        return with_permutations(_quick())
    middle, small, large = (list(_kinds(k)) for k in (20, 19, 21))
    return with_permutations([*middle, *small, *real(data), *large])


def _kinds(k: int) -> Iterator[Instance]:
    """A graph of each of the paper's kinds, about 2**k rows where there are few entries a row."""
    side = round(2 ** (k / 2))
    yield generated(f"delaunay_n{k}", "delaunay", k)
    yield generated(f"rgg_n_2_{k - 1}", "rgg", k - 1)
    yield generated(f"kron_g500-logn{k - 2}", "kron", k - 2)
    yield generated(f"hugetrace-{side}", "trace", side)
    yield generated(f"hugebubbles-{side}", "bubbles", side)
    yield generated(f"road-{side // 2}", "road", side // 2)
    yield generated(f"grid-{side}-p.65", "grid", side, 0.65)
    yield generated(f"uniform-2^{k}-d3", "uniform", 2**k, 3)


def _quick() -> list[Instance]:
    """A few graphs so small that all of it takes seconds."""
    return [
        generated("delaunay_n7", "delaunay", 7),
        generated("grid-12-p.65", "grid", 12, 0.65),
        generated("uniform-2^7-d3", "uniform", 128, 3),
    ]
