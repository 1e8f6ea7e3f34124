"""Random problems at every door, checked by other means.

One problem is a pure function of one seed: its door, size, values, container and options.
``python -m tests.fuzz --minutes 60`` draws seeds until the time is up, and
``python -m tests.fuzz --replay SEED`` runs one again. What fails is drawn again in smaller sizes
from the same seed, and the smallest that fails is printed (``--replay SEED/8``).

trials.py           what a problem is drawn with, and how it is counted
sizes.py            around every threshold of the code
values.py           dtypes and families of costs
containers.py       the forms in which a matrix is given
problems.py         an assignment problem with its options
oracles.py          its optimum, by SciPy and by exact arithmetic
judgement.py        what must hold for a result
transformations.py  what must not change the optimum, or change it in a known way
doors/              one file for each way into the library
workers.py          processes that may crash or hang;  __main__.py  the command
"""

from __future__ import annotations

import argparse
import collections
import itertools
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.fuzz.trials import CLASS_NAMES, Outcome, Trial, run
from tests.fuzz.workers import run_seeds
from tests.numba_cache import use_folder

SAYS = "Solve random problems at every door until the time is up, and report what fails."
SEEDS_OF_A_RUN = 10**9


class Report:
    """Counts of problems by door and size class, and all faults."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.counts: collections.Counter[tuple[str, str]] = collections.Counter()
        self.seconds: collections.Counter[str] = collections.Counter()
        self.unproven = 0
        self.faults: list[Outcome] = []

    def add(self, outcome: Outcome) -> None:
        self.counts[outcome.door, outcome.size_class] += 1
        self.seconds[outcome.door] += outcome.seconds
        self.unproven += outcome.unproven
        if outcome.is_fault:
            self.faults.append(outcome)
            print(described(outcome), flush=True)

    def __str__(self) -> str:
        doors = sorted({door for door, _ in self.counts})
        names = [name for name in (*CLASS_NAMES, "unknown") if self._of_class(name)]
        width = max(map(len, doors), default=0) + 2
        lines = ["".join([" " * width, *(f"{name:>9}" for name in names), f"{'all':>9}{'s':>8}"])]
        for door in doors:
            counts = [self.counts[door, name] for name in names]
            numbers = "".join(f"{count:9d}" for count in (*counts, sum(counts)))
            lines.append(f"{door:<{width}}{numbers}{self.seconds[door]:8.0f}")
        totals = [self._of_class(name) for name in names]
        lines.append(
            f"{'all':<{width}}" + "".join(f"{count:9d}" for count in (*totals, self.total))
        )
        kinds = collections.Counter(
            f"{outcome.door}: {outcome.kind} at {outcome.place or 'an unknown place'}"
            for outcome in self.faults
        )
        lines.append(
            f"{self.total} problems in {time.monotonic() - self.began:.0f} s, "
            f"{len(self.faults)} faults of {len(kinds)} kinds, "
            f"{self.unproven} results on floats that say that they are not proven"
        )
        for kind, count in kinds.most_common():
            seeds = [
                outcome.name for outcome in self.faults
                if kind.startswith(f"{outcome.door}: {outcome.kind} at {outcome.place}")
            ]  # fmt: skip
            lines.append(f"  {count:4d} {kind}: {' '.join(seeds[:4])}")
        return "\n".join(lines)

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    def _of_class(self, name: str) -> int:
        return sum(count for (_, own), count in self.counts.items() if own == name)

    def to_dict(self) -> dict[str, Any]:
        by_door: dict[str, dict[str, int]] = {}
        for (door, name), count in sorted(self.counts.items()):
            by_door.setdefault(door, {})[name] = count
        return {
            "seconds": time.monotonic() - self.began,
            "problems": self.total,
            "by size class": {name: self._of_class(name) for name in CLASS_NAMES},
            "by door": by_door,
            "not proven": self.unproven,
            "faults": [outcome._asdict() for outcome in self.faults],
        }


def described(outcome: Outcome) -> str:
    """A fault with all that is known of it, and how to see it again."""
    return (
        f"\n{outcome.kind} at {outcome.door} ({outcome.size_class}, {outcome.seconds:.1f} s): "
        f"{outcome.message}\n{outcome.details}"
        f"  python -m tests.fuzz --door '{outcome.door}' --replay {outcome.name}"
    )


def main(argv: list[str] | None = None) -> int:
    options = _options(argv)
    use_folder()
    report = Report()
    if options.replay is not None:
        seed, _, shrink = options.replay.partition("/")
        trial = Trial(int(seed), int(shrink or 1), options.backend, options.door)
        report.add(run(trial))
        for name, value in trial.notes.items():
            print(f"{name} = {value!r}")
        print(report)
        return int(bool(report.faults))
    first = options.seed * SEEDS_OF_A_RUN
    if _ranks() > 1:
        _run_on_all_ranks(report, first, options)
    else:
        run_seeds(
            _seeds(first, options.problems), seconds=options.minutes * 60, jobs=options.jobs,
            backend=options.backend, limit=options.limit, door=options.door, report=report.add,
        )  # fmt: skip
    if not _is_first_rank():
        return int(bool(report.faults))
    print(report)
    if options.out:
        options.out.write_text(json.dumps(report.to_dict(), indent=1) + "\n")
    return int(bool(report.faults))


def _seeds(first: int, count: int | None) -> Iterator[int]:
    return itertools.count(first) if count is None else iter(range(first, first + count))


def _ranks() -> int:
    """The ranks of the MPI job that this process belongs to, without starting MPI for it."""
    return int(os.environ.get("PMI_SIZE", os.environ.get("OMPI_COMM_WORLD_SIZE", "1")))


def _is_first_rank() -> bool:
    return int(os.environ.get("PMI_RANK", os.environ.get("OMPI_COMM_WORLD_RANK", "0"))) == 0


def _run_on_all_ranks(report: Report, first: int, options: argparse.Namespace) -> None:
    """The same seeds on all ranks; the first one's clock counts, and it alone reports.

    A fault ends the job, because the other ranks may wait for the one that has found it.
    """
    from mpi4py import MPI

    comm, end = MPI.COMM_WORLD, time.monotonic() + options.minutes * 60
    for seed in itertools.count(first):
        if not comm.bcast(time.monotonic() < end):
            return
        report.add(run(Trial(seed, door="distributed")))
        if report.faults:
            comm.Abort(1)


def _options(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=SAYS)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--problems", type=int, help="end after so many problems, too")
    parser.add_argument("--seed", type=int, default=0, help="another seed draws other problems")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--backend", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--door", help="one door only, as the report names it")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds a problem may take")
    parser.add_argument("--out", type=Path, help="a JSON file for the report")
    parser.add_argument("--replay", metavar="SEED[/SHRINK]", help="run one problem again")
    options = parser.parse_args(argv)
    if options.door is not None:
        from tests.fuzz.doors import DOORS

        if options.door not in DOORS:
            parser.error(f"--door must be one of {', '.join(map(repr, DOORS))}")
    return options


if __name__ == "__main__":
    sys.exit(main())
