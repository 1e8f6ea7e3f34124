"""Transport on the CPU: masses from rows to columns, against POT and OR-tools.

What is timed is the whole call from costs and masses to the flow, warm. Peers get their inputs in
the form that they take, made before the clock starts. OR-tools takes integer costs: floats are
rounded to multiples of the 2^28th part of the largest, so its flow may cost more than the optimum.

    gpumatch     `gpumatch.transport`; the certificate is checked
    pot          `ot.emd`, a network simplex for dense costs
    or-tools     `SimpleMinCostFlow`, a cost-scaling push-relabel
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array, issparse, load_npz, save_npz

import gpumatch as gm
from bench.harness import Contender, Limits, Overrun, Result, Sample, repeat
from bench.peers import in_process, is_installed, self_timed
from bench.report.tables import markdown, means, milliseconds, page, section, time_of
from graphs.masses import Problem, masses

THREADS = 2
THRESHOLD = 0.0  # every problem counts
OURS, POT, OR_TOOLS = "gpumatch", "pot", "or-tools"
DIGITS = 28  # bits of the costs that OR-tools gets, if they are floats


# -- problems ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TransportInstance:
    """One problem. `source` is what `graphs.masses.masses` takes."""

    family: str
    source: tuple[Any, ...]
    seed: int = 0

    suffix: ClassVar[str] = ".transport"  # a folder

    @property
    def group(self) -> str:
        return "-".join(map(str, self.source))

    @property
    def name(self) -> str:
        return f"{self.group}-s{self.seed}"

    @property
    def base(self) -> str:
        """The name: each problem is an original."""
        return self.name

    def takes(self, contender: str) -> bool:
        """Whether a contender is to be measured on it: POT takes no sparse costs."""
        return contender != POT or self.source[0] != "network"

    def facts(self, problem: Problem) -> dict[str, Any]:
        """What is kept of the problem in addition to its results."""
        rows, cols = problem.costs.shape
        entries = problem.costs.nnz if issparse(problem.costs) else rows * cols
        return {
            "family": self.family, "group": self.group, "seed": self.seed, "rows": rows,
            "cols": cols, "entries": entries, "mass": int(problem.supply.sum()),
        }  # fmt: skip

    def original(self) -> Problem:
        kind, *sizes = self.source
        return masses(kind, *sizes, seed=self.seed)

    def of(self, original: Problem) -> Problem:
        """The problem, from its original: that itself."""
        return original

    @staticmethod
    def save(problem: Problem, file: Path) -> None:
        file.mkdir(parents=True, exist_ok=True)
        if issparse(problem.costs):
            save_npz(file / "sparse.npz", problem.costs)
        else:
            np.save(file / "dense.npy", problem.costs)
        np.savez(file / "masses.npz", supply=problem.supply, demand=problem.demand)

    @staticmethod
    def load(file: Path) -> Path:
        """The folder itself: peers read it too."""
        return file


class Masses:
    """A folder with a problem, and its facts."""

    def __init__(self, instance: TransportInstance, file: Path, device: str) -> None:
        self.file = file
        self.facts = instance.facts(read(file))


def problem(instance: TransportInstance, file: Path, device: str) -> Masses:
    return Masses(instance, file, device)


def read(file: Path) -> Problem:
    """The problem in a folder."""
    with np.load(file / "masses.npz") as sides:
        supply, demand = sides["supply"], sides["demand"]
    sparse = file / "sparse.npz"
    costs = csr_array(load_npz(sparse)) if sparse.exists() else np.load(file / "dense.npy")
    return Problem(costs, supply, demand)


# -- contenders ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ours:
    """The library."""

    name: str
    threads: int

    def measure(self, problem: Masses, limits: Limits) -> Result:
        given = read(problem.file)
        last: list[Any] = []

        def sample() -> Sample:
            begin = time.perf_counter()
            t = gm.transport(*given, backend="cpu", threads=self.threads, time_limit=limits.cap)
            seconds = time.perf_counter() - begin
            if not t.proven:
                raise Overrun
            last[:] = [t]
            return Sample(seconds, int(t.flow.sum()), more={"objective": float(t.objective)})

        result = repeat(sample, limits)
        begin = time.perf_counter()
        gm.verify(given.costs, last[0], supply=given.supply, demand=given.demand)
        return {**result, "certificate": time.perf_counter() - begin}


def pot(given: Problem) -> Callable[[], Sample]:
    """`ot.emd`, from masses as floats."""
    import ot

    supply, demand = (side.astype(np.float64) for side in given[1:])
    costs = np.ascontiguousarray(given.costs, np.float64)
    total = int(given.supply.sum())

    def call() -> Sample:
        begin = time.perf_counter()
        plan = ot.emd(supply, demand, costs, numItermax=10**9)
        seconds = time.perf_counter() - begin
        used = plan.nonzero()
        terms = (plan[used] * costs[used]).tolist()
        return Sample(seconds, total, more={"objective": math.fsum(terms)})

    return call


def or_tools(given: Problem) -> Callable[[], Sample]:
    """`ortools.graph.python.min_cost_flow`; adding the arcs is part of the time."""
    from ortools.graph.python import min_cost_flow

    nrows, ncols = given.costs.shape
    if issparse(given.costs):
        pairs = given.costs.tocoo()
        rows, cols, costs = pairs.row, pairs.col, pairs.data
    else:
        rows, cols = (part.ravel() for part in np.indices((nrows, ncols)))
        costs = given.costs.ravel()
    scale = 1.0
    if costs.dtype.kind == "f":
        scale = 2.0**DIGITS / float(np.abs(costs).max())
    units = np.rint(costs * scale).astype(np.int64)
    tails, heads = rows.astype(np.int32), (nrows + cols).astype(np.int32)
    room = np.minimum(given.supply[rows], given.demand[cols])
    balance = np.concatenate([given.supply, -given.demand])
    total = int(given.supply.sum())

    def call() -> Sample:
        begin = time.perf_counter()
        solver = min_cost_flow.SimpleMinCostFlow()
        arcs = solver.add_arcs_with_capacity_and_unit_cost(tails, heads, room, units)
        solver.set_nodes_supplies(np.arange(nrows + ncols, dtype=np.int32), balance)
        status = solver.solve()
        seconds = time.perf_counter() - begin
        if status != solver.OPTIMAL:
            raise RuntimeError(f"OR-tools ended with status {status}")
        flow = solver.flows(arcs)
        reached = math.fsum((flow * costs.astype(np.float64)).tolist())
        return Sample(seconds, total, more={"objective" if scale == 1 else "reached": reached})

    return call


CODES = {POT: pot, OR_TOOLS: or_tools}
_MODULES = {POT: "ot", OR_TOOLS: "ortools"}


@dataclass(frozen=True)
class TransportPeer:
    """A peer by its name in `CODES`."""

    name: str

    @property
    def installed(self) -> bool:
        return is_installed(_MODULES[self.name])

    def measure(self, problem: Masses, limits: Limits) -> Result:
        return in_process(_call, (self.name, problem.file), limits, self_timed)


def _call(given: tuple[str, Path]) -> Callable[[], Sample]:
    """In the peer's process: a call that solves the problem and times itself."""
    name, file = given
    return CODES[name](read(file))


def contenders(device: str, threads: int) -> list[Contender]:
    """The library on the CPU, and the peers that are installed."""
    return [Ours(OURS, threads), *(peer for peer in map(TransportPeer, CODES) if peer.installed)]


def instances(quick: bool, data: str | None) -> list[TransportInstance]:
    """Points with masses, few columns, images, and sparse networks."""
    if quick:
        sources: list[tuple[Any, ...]] = [("plane", 30), ("few", 60, 4), ("network", 30, 4, 100)]
        sides = [6]
    else:
        sources = [
            *(("plane", n) for n in (500, 1000, 2000)),
            *(("few", *shape) for shape in ((2000, 10), (20_000, 10), (20_000, 100))),
            *(("network", *size) for size in ((10_000, 10, 1000), (100_000, 10, 1000))),
            ("network", 100_000, 10, 10**9),
        ]
        sides = [32, 64]
    images = [(kind, side) for kind in ("noise", "smooth", "shapes") for side in sides]
    return [TransportInstance(source[0], source) for source in [*sources, *images]]


def warming(quick: bool) -> list[TransportInstance]:
    """One of each kind."""
    sources = [("plane", 20), ("few", 40, 4), ("noise", 5), ("network", 20, 4, 50)]
    return [TransportInstance("warm", source, seed=9) for source in sources]


# -- report --------------------------------------------------------------------------------------


def report(data: dict[str, Any], threshold: float) -> str:
    """Times problem by problem, and the means of the ratios."""
    graphs = list(data["graphs"].values())
    codes = [code for code in (OURS, *CODES) if any(code in one["results"] for one in graphs)]
    rows = [
        [
            graph["group"], f"{graph['entries']:,}",
            *(milliseconds(time_of(graph, code)) for code in codes), _certificate(graph),
        ]
        for graph in graphs
    ]  # fmt: skip
    header = ["problem", "pairs", *(f"{code} ms" for code in codes), "certificate ms"]
    return page(
        data,
        section("Transport on the CPU", markdown(header, rows)),
        means(graphs, [code for code in codes if code != OURS], OURS),
    )


def _certificate(graph: dict[str, Any]) -> str | None:
    seconds = graph["results"].get(OURS, {}).get("certificate")
    return None if seconds is None else f"{1e3 * seconds:.3g}"
