"""Processes that each run one seed after the other; one may crash or hang without harm.

The first hang of a seed is tried again in a new process with twice the time, because the first call
of a kernel compiles it.
"""

from __future__ import annotations

import faulthandler
import math
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection, wait
from typing import Any

from tests.fuzz.trials import Outcome, Trial, run, shrunk

SHRINKING = 60.0
"""Seconds for smaller problems of a seed that has failed."""
GRACE = 5.0
"""Seconds for which a problem may run on when the time is up."""


def serve(pipe: Connection, backend: str, door: str | None) -> None:
    """Run the seeds that come through the pipe."""
    from tests.numba_cache import use_folder

    use_folder()
    faulthandler.enable()
    while True:
        task = pipe.recv()
        if task is None:
            return
        seed, seconds_to_shrink = task
        pipe.send(seed)  # from here on, its time counts
        outcome = run(Trial(seed, backend=backend, door=door))
        pipe.send(outcome)
        if outcome.is_fault:
            pipe.send(shrunk(outcome, backend, seconds_to_shrink))


Serve = Callable[[Connection, str, str | None], None]


class Worker:
    """One process, and the seed that it is at."""

    def __init__(self, serve: Serve, backend: str, door: str | None) -> None:
        self._context = multiprocessing.get_context("spawn")
        self._serve, self._arguments = serve, (backend, door)
        self.seed: int | None = None
        self.fault: Outcome | None = None
        self.retried: set[int] = set()
        self._start()

    def _start(self) -> None:
        self.pipe, other = self._context.Pipe()
        self.process = self._context.Process(
            target=self._serve, args=(other, *self._arguments), daemon=True
        )
        self.process.start()
        other.close()

    def give(self, seed: int, limit: float, seconds_to_shrink: float) -> None:
        self.seed, self.fault = seed, None
        self.limit = limit * (2 if seed in self.retried else 1)
        self.began = math.inf
        if not self.process.is_alive():
            self.restart()
            self.seed = seed
        self.pipe.send((seed, seconds_to_shrink))

    @property
    def is_late(self) -> bool:
        limit = self.limit + (SHRINKING if self.fault else 0)
        return time.monotonic() > self.began + limit

    def take(self) -> Outcome | None:
        """What has come, if it ends the seed."""
        try:
            outcome = self.pipe.recv()
        except (EOFError, OSError):
            return self._lost("crashed")
        if isinstance(outcome, int):
            self.began = time.monotonic()
            return None
        if outcome.is_fault and self.fault is None:
            self.fault = outcome  # the smallest one follows
            return None
        self.seed = None
        return outcome

    def hung(self) -> Outcome | None:
        """The outcome of a seed whose time is up; None if it is tried again."""
        assert self.seed is not None
        if self.fault is None and self.seed not in self.retried:
            self.retried.add(self.seed)
            seed, limit = self.seed, self.limit
            self.restart()
            self.give(seed, limit, SHRINKING)
            return None
        return self._lost("hung")

    def _lost(self, kind: str) -> Outcome:
        seed, fault = self.seed, self.fault
        self.process.join(1)
        code = self.process.exitcode
        seconds = max(0.0, time.monotonic() - self.began)
        self.restart()
        if fault is not None:  # it was lost while it looked for a smaller one
            return fault
        assert seed is not None
        text = f"the process ended with {code}" if kind == "crashed" else f"after {seconds:.0f} s"
        return Outcome(seed, 1, _door_of(seed, *self._arguments), "unknown", kind, seconds, 0, text)

    def restart(self) -> None:
        self.end()
        self.seed = self.fault = None
        self._start()

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


def _door_of(seed: int, backend: str, door: str | None) -> str:
    from tests.fuzz.doors import drawn_door

    return door or drawn_door(Trial(seed, backend=backend))


def run_seeds(
    seeds: Iterator[int],
    *,
    seconds: float,
    jobs: int,
    backend: str,
    limit: float,
    door: str | None,
    report: Callable[[Outcome], Any],
    serve: Serve = serve,
) -> None:
    """Run seeds on all workers until the time is up, or there are no more."""
    end = time.monotonic() + seconds
    os.environ.setdefault("NUMBA_NUM_THREADS", str(os.cpu_count() or 1))
    workers = [Worker(serve, backend, door) for _ in range(jobs)]
    try:
        for worker, seed in zip(workers, seeds):
            worker.give(seed, limit, SHRINKING)
        while time.monotonic() < end + GRACE:
            busy = {worker.pipe: worker for worker in workers if worker.seed is not None}
            if not busy:
                return
            outcomes = [busy[pipe].take() for pipe in wait(list(busy), timeout=0.5)]
            outcomes += [w.hung() for w in busy.values() if w.seed is not None and w.is_late]
            for outcome in filter(None, outcomes):
                report(outcome)
            for worker in workers:
                seed = next(seeds, None) if worker.seed is None and time.monotonic() < end else None
                if seed is not None:
                    worker.give(seed, limit, SHRINKING)
    finally:
        for worker in workers:
            if worker.fault is not None:
                report(worker.fault)
            worker.end()
