"""Graphs of 1 to 100 edges, and some larger: what a call costs if there is little to match.

The graph is where the call runs, and the whole call is timed, warm. "kernels" is the part of the
GPU's call in which its kernels run, as Nsight Compute (``ncu``) counts it, with clocks and caches
left as they are. It does not include the fills and copies of a few bytes between them.
"""

from __future__ import annotations

import csv
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scipy.sparse import csr_array, load_npz, save_npz

import gpumatch as gm
from bench.harness import Contender, Limits, Result
from bench.instances import Instance, generated, small
from bench.peers import Peer
from bench.report.tables import Graph, Time, markdown, page, time_of
from bench.suites.cpu import whole_call

THREADS = 1
THRESHOLD = 0.0  # every graph counts
KERNELS, GPU, CPU = "kernels", "gpu", "cpu"
CALLS = 5  # calls whose kernels are counted, after as many that are not
_NCU = ("ncu", "--csv", "--metrics", "gpu__time_duration.sum", "--print-units", "base")
_AS_IT_IS = ("--clock-control", "none", "--cache-control", "none", "--profile-from-start", "off")
_LOADING = 60.0  # seconds that a process has to start and compile


# -- problem and contenders ----------------------------------------------------------------------


class Both:
    """A graph on the host and, if there is a GPU, on the device."""

    def __init__(self, instance: Instance, matrix: csr_array, device: str) -> None:
        self.matrix = matrix
        self.facts = instance.facts(matrix)
        self.graphs = {CPU: gm.BipartiteGraph(matrix)}
        if device == "cuda":
            self.graphs[GPU] = self.graphs[CPU].to_device()
        for graph in self.graphs.values():
            _ = graph.indptr, graph.col_indptr


problem = Both


@dataclass(frozen=True)
class Resident:
    """The whole call, on the graph that is on the host or on the device."""

    name: str
    threads: int

    def measure(self, problem: Both, limits: Limits) -> Result:
        where = "cuda" if self.name == GPU else "cpu"
        return whole_call(problem.graphs[self.name], limits, backend=where, threads=self.threads)


@dataclass(frozen=True)
class Kernels:
    """What the kernels of a call on the GPU take together, and how many there are."""

    name: str = KERNELS

    @property
    def installed(self) -> bool:
        return shutil.which("ncu") is not None

    def measure(self, problem: Both, limits: Limits) -> Result:
        with tempfile.TemporaryDirectory() as folder:
            graph, log = Path(folder, "graph.npz"), Path(folder, "log.csv")
            save_npz(graph, problem.matrix)
            call = (sys.executable, "-m", "bench.suites.tiny", str(graph))
            printed = subprocess.run(
                [*_NCU, *_AS_IT_IS, "--log-file", str(log), *call],
                timeout=limits.cap + _LOADING,
                check=True,
                capture_output=True,
                text=True,
            ).stdout
            durations = durations_in(log.read_text().splitlines())
        a_call, rest = divmod(len(durations), CALLS)
        if a_call == 0 or rest != 0:
            raise RuntimeError(f"ncu saw {len(durations)} kernels in {CALLS} calls")
        seconds = [sum(durations[k * a_call :][:a_call]) for k in range(CALLS)]
        size = int(printed.split()[-1])
        return {"seconds": seconds, "size": size, "levels": [], "kernels": a_call}


def durations_in(lines: Iterable[str]) -> list[float]:
    """Seconds of each kernel, from what ``ncu --csv --print-units base`` writes."""
    table = csv.DictReader(line for line in lines if line.startswith('"'))
    return [1e-9 * float(row["Metric Value"].replace(",", "")) for row in table]


def contenders(device: str, threads: int) -> list[Contender]:
    """Our call on either device, its kernels if there is ``ncu``, and SciPy."""
    ours: list[Contender] = [Resident(CPU, threads)]
    if device == "cuda":
        ours = [*([Kernels()] if Kernels().installed else []), Resident(GPU, threads), *ours]
    return [*ours, Peer("scipy")]


# -- graphs --------------------------------------------------------------------------------------

warming = small


def instances(quick: bool, data: str | None) -> list[Instance]:
    """Uniform random graphs, of one edge to 300,000."""
    if quick:
        return [generated("uniform-3-d1", "uniform", 3, 1)]
    few = [generated(f"uniform-{n}-d1", "uniform", n, 1) for n in (1, 3, 10)]
    return few + [generated(f"uniform-{n}-d3", "uniform", n, 3) for n in (10, 33, 10**3, 10**5)]


# -- report --------------------------------------------------------------------------------------


def report(data: dict[str, Any], threshold: float) -> str:
    """Microseconds graph by graph."""
    rows = [
        [
            name,
            graph["entries"],
            graph["results"].get(KERNELS, {}).get("kernels"),
            *(microseconds(graph, code) for code in (KERNELS, GPU, CPU, "scipy")),
        ]
        for name, graph in data["graphs"].items()
    ]
    header = ["graph", "edges", "kernels", "kernels us", "GPU us", "CPU us", "SciPy us"]
    return page(
        data,
        ["### The whole call\n\n" + markdown(header, rows)],
    )


def microseconds(graph: Graph, contender: str) -> Time | None:
    taken = time_of(graph, contender)
    return None if taken is None else Time(1e6 * taken.seconds, taken.at_least)


# -- the calls that ncu looks at -----------------------------------------------------------------


def main(file: str) -> None:
    """Match the graph in a file, with the profiler on after the first calls."""
    from cupy.cuda import profiler

    graph = gm.BipartiteGraph(load_npz(file)).to_device()
    for is_seen in (False, True):
        if is_seen:
            profiler.start()
        for _ in range(CALLS):
            size = gm.maximum_matching(graph).size
    profiler.stop()
    print(size)


if __name__ == "__main__":
    main(sys.argv[1])
