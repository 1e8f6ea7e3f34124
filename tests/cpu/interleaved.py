"""Threads of compiled kernels in a drawn order: in Python, and one at a time.

Two threads that run at once meet where it matters once in thousands of runs. Here the kernels run
as Python, and before each atomic operation the turn goes to a thread that is drawn.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from types import ModuleType

import numpy as np
import pytest

from gpumatch.cpu.numba_tools import workers


def interleave(monkeypatch: pytest.MonkeyPatch, *modules: ModuleType, seed: int = 0) -> Turns:
    """Have kernels of these modules run so, wherever workers run them, however few edges wait."""
    turns = Turns(seed)
    operations = {
        "load": turns.load, "store": turns.store, "cas": turns.cas, "fetch_add": turns.fetch_add,
        "lesser": min, "greater": max, "prefetch": _nothing, "prefetch_range": _nothing,
    }  # fmt: skip
    for module in modules:
        for name, value in list(vars(module).items()):
            function = operations.get(name) or getattr(value, "py_func", None)
            if function is not None:
                monkeypatch.setattr(module, name, function)

    def run(self: workers.Workers, kernel: Callable[[int], bool], tasks: int) -> bool:
        count = min(self.threads, tasks)
        return kernel(0) if count <= 1 else turns.take([partial(kernel, k) for k in range(count)])

    monkeypatch.setattr(workers, "_EDGES_EACH", 1)
    monkeypatch.setattr(workers.Workers, "run", run)
    return turns


def one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have each thread run when the one before has returned, as if there were one processor."""

    def run(self: workers.Workers, kernel: Callable[[int], bool], tasks: int) -> bool:
        done = [kernel(worker) for worker in range(min(self.threads, tasks))]
        return all(done)

    monkeypatch.setattr(workers, "_EDGES_EACH", 1)
    monkeypatch.setattr(workers.Workers, "run", run)


def _nothing(*_):
    pass


class Turns:
    """Which thread's turn it is; `taken` counts how often it went to another."""

    def __init__(self, seed: int) -> None:
        self.random, self.taken = np.random.default_rng(seed), 0
        self.waiting: list[threading.Semaphore] = []  # of the threads that have not ended
        self.own = threading.local()

    def take(self, works: list[Callable[[], bool]]) -> bool:
        """Let a thread for each of these works run to its end; whether all return True."""
        results: list[bool | BaseException] = [False] * len(works)
        gates, ended = [threading.Semaphore(0) for _ in works], threading.Semaphore(0)
        self.waiting = list(gates)

        def run(k: int) -> None:
            self.own.gate = gates[k]
            gates[k].acquire()
            try:
                results[k] = works[k]()
            except BaseException as exc:
                results[k] = exc
            self.waiting.remove(gates[k])
            (self._drawn() if self.waiting else ended).release()

        threads = [threading.Thread(target=run, args=(k,)) for k in range(len(works))]
        for thread in threads:
            thread.start()
        self._drawn().release()
        ended.acquire()
        for thread in threads:
            thread.join()
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return all(results)

    def _drawn(self) -> threading.Semaphore:
        return self.waiting[int(self.random.integers(len(self.waiting)))]

    def _pass_on(self) -> None:
        gate = getattr(self.own, "gate", None)
        if gate is None:  # a thread that no worker has
            return
        following = self._drawn()
        if following is not gate:
            self.taken += 1
            following.release()
            gate.acquire()

    def load(self, array, index):
        self._pass_on()
        return array[index]

    def store(self, array, index, value):
        self._pass_on()
        array[index] = value

    def cas(self, array, index, expected, desired):
        self._pass_on()
        if array[index] != expected:
            return False
        array[index] = desired
        return True

    def fetch_add(self, array, index, value):
        self._pass_on()
        before = array[index]
        array[index] += value
        return before
