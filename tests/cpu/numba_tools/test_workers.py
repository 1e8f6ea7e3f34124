"""Workers come back together, whatever they return, and if any of them fails."""

from __future__ import annotations

import multiprocessing
import os
import threading
from concurrent.futures import ThreadPoolExecutor, wait

import numpy as np
import pytest

import gpumatch as gm
from gpumatch.cpu.numba_tools import workers


@pytest.fixture
def two(monkeypatch):
    """Two workers, and `waits`, which is set when the caller begins to wait for the other."""
    waits = threading.Event()

    def recorded(futures):
        waits.set()
        wait(futures)

    monkeypatch.setattr(workers, "wait", recorded)
    monkeypatch.setattr(workers, "_EDGES_EACH", 1)
    with workers.Workers(2, edges=9) as crew:
        yield crew, waits
        waits.set()


@pytest.mark.parametrize("ended_by", ["False", "exception"])
def test_no_kernel_runs_on_when_the_callers_has_ended(two, ended_by):
    crew, waits = two
    ended = []

    def kernel(worker):
        if worker == 0 and ended_by == "exception":
            raise KeyboardInterrupt
        if worker == 1:
            assert waits.wait(timeout=60)
            ended.append(worker)
        return worker == 1

    if ended_by == "exception":
        with pytest.raises(KeyboardInterrupt):
            crew.run(kernel, 2)
    else:
        assert crew.run(kernel, 2) is False
    assert ended == [1]


@pytest.mark.parametrize(
    ("answers", "done"), [((True, True), True), ((True, False), False), ((False, True), False)]
)
def test_a_run_is_done_when_all_are(two, answers, done):
    crew, _ = two
    assert crew.run(lambda worker: answers[worker], 2) is done


def test_an_error_of_another_worker_comes_out(two):
    crew, _ = two

    def kernel(worker):
        if worker == 1:
            raise ValueError("of the other")
        return True

    with pytest.raises(ValueError, match="of the other"):
        crew.run(kernel, 2)


@pytest.mark.parametrize(("edges", "count"), [(0, 1), (2**16 - 1, 1), (2**16, 2), (2**20, 4)])
def test_few_edges_get_few_threads(edges, count):
    with workers.Workers(4, edges) as crew:
        assert crew.threads == count


def test_no_more_kernels_are_called_than_there_are_tasks(two):
    crew, _ = two
    called = []
    assert crew.run(lambda worker: called.append(worker) or True, 1)
    assert called == [0]


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_numbers_are_dealt_in_turns(two, count):
    crew, _ = two
    of_threads: dict[int, list[int]] = {}

    def work(number):
        of_threads.setdefault(threading.get_ident(), []).append(number)

    crew.deal(work, count)
    dealt = [[*range(worker, count, 2)] for worker in range(2)]
    assert sorted(of_threads.values()) == [numbers for numbers in dealt if numbers]


def test_the_next_call_finds_the_threads_of_the_last(two):
    crew, _ = two
    crew.run(lambda worker: True, 2)
    threads = threading.active_count()
    for _ in range(9):
        with workers.Workers(2, edges=9) as another:
            another.run(lambda worker: True, 2)
        assert threading.active_count() == threads


def test_calls_of_several_threads_do_not_wait_for_each_other(monkeypatch):
    """A worker of each call waits until those of all calls run."""
    monkeypatch.setattr(workers, "_EDGES_EACH", 1)
    meet = threading.Barrier(4, timeout=60)

    def call(_):
        with workers.Workers(2, edges=9) as crew:
            return crew.run(lambda worker: meet.wait() >= 0, 2)

    with ThreadPoolExecutor(2) as callers:
        assert [*callers.map(call, range(2))] == [True, True]


def size_with_two_threads():
    graph = np.ones((400, 400))
    return gm.maximum_matching(graph, threads=2, algorithm="engine").size


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_has_threads_of_its_own():
    assert size_with_two_threads() == 400
    with multiprocessing.get_context("fork").Pool(1) as child:
        assert child.apply_async(size_with_two_threads).get(timeout=60) == 400
