"""Random changes of sessions by the thousand, on all cores.

python -m tests.live_fuzz --kind matrix --runs 10000 --changes 1000 --seed 100000

Sessions are compared with problems solved afresh ten times a run. It tells how far it is after
each task of 25 seeds, so that a run that is cut off still counts.
"""

from __future__ import annotations

import argparse
import os
import time
from multiprocessing import get_context

from tests.live_changes import run, run_graph, run_points

KINDS = {"matrix": run, "points": run_points, "graph": run_graph}
SHARE = 25  # seeds that a process gets at a time


def _some(kind: str, first: int, count: int, changes: int) -> list[tuple[int, str]]:
    """The seeds that fail, with their errors."""
    failed = []
    for seed in range(first, first + count):
        try:
            KINDS[kind](seed, changes, between=max(1, changes // 10))
        except Exception as exc:
            failed.append((seed, repr(exc)[:300]))
    return failed


def _task(task: tuple[str, int, int, int]) -> list[tuple[int, str]]:
    return _some(*task)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", choices=KINDS, default="matrix")
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--changes", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    begin = time.perf_counter()
    firsts = range(options.seed, options.seed + options.runs, SHARE)
    _some(options.kind, 0, 16, 5)  # compiles, before all others ask for it
    with get_context("spawn").Pool(options.jobs) as pool:
        tasks = [(options.kind, first, SHARE, options.changes) for first in firsts]
        failed, done = [], 0
        for some in pool.imap(_task, tasks):
            failed, done = failed + some, done + SHARE
            for seed, error in some:
                print(f"seed {seed}: {error}", flush=True)
            print(f"{done} runs, {len(failed)} failed", flush=True)
    seconds = time.perf_counter() - begin
    print(
        f"{options.runs} runs of {options.changes} changes, {len(failed)} failed, {seconds:.0f} s"
    )
    return bool(failed)


if __name__ == "__main__":
    raise SystemExit(main())
