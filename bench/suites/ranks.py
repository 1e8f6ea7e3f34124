"""Assignment on MPI ranks: steps, communication and counts, as in Tables 4 and 5 of Date and Nagi.

    mpiexec -n 2 python -m bench.suites.ranks --out ranks.json --sizes 1000 1414
    python -m bench report ranks.json

Costs are integers drawn uniformly from [0, 10n]. A run adds its results to those in the file. The
seconds of a run are those of its slowest rank.

Counts do not depend on the machine, so times on other machines can be modelled from them. With
p GPUs that read costs at B bytes a second each:

    time = readings · 4 n² / (p B) + levels · (l + a ceil(log2 p)) + reductions · 8 n / b

A level costs l seconds on any rank, and its reduction a seconds for each doubling of the ranks. A
reduction of all columns goes at b bytes a second. As `gpumatch.distributed` has the numbers of the
columns on the host, each level also copies 20 n bytes at h bytes a second; an engine that kept them
on the GPU would not. `MACHINE` has these constants. They are assumed, not measured. Counts for
more rows than were measured follow the power law through the last two.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench.report.tables import markdown

ALGORITHMS = ("engine", "hungarian-classical", "hungarian-tree")
COUNTED = ("updates", "rows", "whole")  # of each phase, where an algorithm has them
FACTOR = 10
SEED = 1


class Machine(NamedTuple):
    """What the model knows of a machine: bytes and seconds, see the module."""

    read: float  # B
    level: float  # l
    hop: float  # a
    link: float  # b
    host: float  # h


MACHINE = Machine(read=3.0e12, level=20e-6, hop=5e-6, link=2.0e11, host=2.5e10)
MODELLED = (1, 2, 4, 8, 16, 64, 256, 1024)
LARGE = (50_000, 100_000, 200_000)
COSTS, COPIED = 4, 20  # bytes of a cost, and those copied for each column


def measure(n: int, algorithm: str) -> dict[str, Any]:
    """One run on all ranks; the same on each."""
    from mpi4py import MPI

    import gpumatch
    from gpumatch.distributed.communicator import even_starts

    comm = MPI.COMM_WORLD
    begin, end = even_starts(n, comm.size)[[comm.rank, comm.rank + 1]]
    rng = np.random.default_rng(SEED)
    whole = rng.integers(0, FACTOR * n + 1, (n, n), dtype=np.int32)  # the same for any ranks
    block = whole[begin:end].copy()
    del whole
    comm.Barrier()
    start = time.perf_counter()
    result = gpumatch.distributed.assign(block, comm=comm, algorithm=algorithm)
    seconds = comm.allreduce(time.perf_counter() - start, MPI.MAX)
    gpumatch.distributed.verify(block, result, comm=comm)
    stats = result.stats
    trace = stats["trace"]
    return {
        "n": n,
        "ranks": comm.size,
        "algorithm": algorithm,
        "seconds": seconds,
        "objective": result.objective,
        "steps": stats["seconds"],
        "communication": stats["communication"],
        "phases": stats["phases"],
        "levels": stats["levels"],
        **{
            name: sum(phase.get(name, 0) for phase in trace)
            for name in ("updates", "rows", "whole")
        },
    }


def model(counts: Counts, ranks: int, on_host: bool, machine: Machine = MACHINE) -> float:
    """Seconds of the engine on so many GPUs."""
    n = counts.n
    scanned = COSTS * n * n * counts.scans
    volume = 8 * n * (counts.whole + 1) if ranks > 1 else 0
    level = machine.level + machine.hop * math.ceil(math.log2(ranks))
    level += COPIED * n / machine.host if on_host else 0
    return scanned / (ranks * machine.read) + counts.levels * level + volume / machine.link


class Counts(NamedTuple):
    """What the engine counts on n rows: readings of all costs, levels, whole reductions."""

    n: float
    scans: float
    levels: float
    whole: float

    @classmethod
    def of(cls, run: dict[str, Any]) -> Counts:
        n = run["n"]  # costs are read three times before the trees grow
        return cls(n, run["rows"] / n + 3, run["levels"], run["whole"])

    def grown(self, before: Counts, n: float) -> Counts:
        """For another n, by the power laws through these counts and those for fewer rows."""
        step = math.log(n / self.n) / math.log(self.n / before.n)
        return Counts(*(own * (own / other) ** step for own, other in zip(self, before)))


def _machine_of(run: dict[str, Any]) -> str:
    sources = run["sources_sha256"][:12]
    return f"{run['date']}: {run['processor']}, {run['threads']} threads; sources {sources}"


def report(data: dict[str, Any], threshold: float = 0.0) -> str:
    """What was counted, and what the model makes of it."""
    measured = data["measured"]
    counted = [
        [run["n"], run["algorithm"], run["ranks"], run["phases"], run["updates"], run["levels"],
         run["communication"]["calls"]]
        for run in measured
    ]  # fmt: skip
    engine = [
        Counts.of(run) for run in measured if run["algorithm"] == "engine" and run["ranks"] == 1
    ]
    before, last = sorted(engine)[-2:]
    modelled = [last, *(last.grown(before, n) for n in LARGE)]
    rows = [
        [f"{counts.n:.0f}", "host" if on_host else "GPU", f"{counts.scans:.0f}",
         f"{counts.levels:.0f}", *(f"{model(counts, p, on_host):.2f}" for p in MODELLED)]
        for counts in modelled
        for on_host in (True, False)
    ]  # fmt: skip
    header = ["n", "numbers on the", "readings", "levels", *(f"{p}" for p in MODELLED)]
    names = ["n", "algorithm", "ranks", "searches", "dual updates", "levels", "collectives"]
    return "\n\n".join(
        [
            *(_machine_of(run) for run in data["runs"]),
            "### Counted\n\n" + markdown(names, counted),
            "### Modelled seconds on so many GPUs\n\n" + markdown(header, rows),
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000])
    parser.add_argument("--algorithms", nargs="+", choices=ALGORITHMS, default=ALGORITHMS)
    options = parser.parse_args()
    from mpi4py import MPI

    from bench import machine

    is_first = MPI.COMM_WORLD.rank == 0
    settings = {"factor": FACTOR, "seed": SEED, "threshold": 0.0}
    data: dict[str, Any] = {"suite": "ranks", "settings": settings, "runs": [], "measured": []}
    if options.out and options.out.exists():
        data = json.loads(options.out.read_text())
    data["runs"].append(machine.describe())
    measure(50, "engine")  # compiles and loads
    for n in options.sizes:
        for algorithm in options.algorithms:
            run = measure(n, algorithm)
            data["measured"].append({**run, "run": len(data["runs"]) - 1})
            if is_first:
                print(
                    f"n {n}, {run['ranks']} ranks, {algorithm}: {run['seconds']:.3f} s", flush=True
                )
                if options.out:
                    options.out.write_text(json.dumps(data, indent=1) + "\n")


if __name__ == "__main__":
    main()
