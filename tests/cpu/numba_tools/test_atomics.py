"""The atomics alone and under threads: counters lose nothing, claims are unique, values cross."""

from __future__ import annotations

import re
import threading

import numpy as np
import pytest
from numba import njit, prange, typeof
from numba.core.errors import TypingError

from gpumatch.cpu.numba_tools.atomics import cas, fetch_add, load, store

THREADS = 4
TYPES = [np.int32, np.int64, np.uint8]
INT32 = typeof(np.zeros(2, np.int32))


@njit
def swap(array, index, expected, desired):
    return cas(array, index, expected, desired)


@njit
def add(array, index, value):
    return fetch_add(array, index, value)


@njit(nogil=True)
def write(array, index, value):
    store(array, index, value)


@njit(nogil=True)
def read(array, index):
    return load(array, index)


@njit(nogil=True)
def count(counter, times):
    for _ in range(times):
        fetch_add(counter, 1, 1)


@njit(nogil=True)
def claim_all(owner, me, won):
    for item in range(len(owner)):
        if cas(owner, item, -1, me):
            won[me] += 1


@njit(parallel=True)
def count_in_prange(counter, times):
    for _ in prange(times):
        fetch_add(counter, 0, 1)


@njit(parallel=True)
def tickets_in_prange(counter, tickets):
    for i in prange(len(tickets)):
        tickets[i] = fetch_add(counter, 0, 1)


@njit(nogil=True)
def send(data, flag, messages):
    for message in range(1, messages + 1):
        data[0] = message
        store(flag, 0, message)
        while load(flag, 0) != 0:
            pass


@njit(nogil=True)
def receive(data, flag, messages):
    correct = 0
    for message in range(1, messages + 1):
        while load(flag, 0) != message:
            pass
        correct += data[0] == message
        store(flag, 0, 0)
    return correct


def in_threads(*calls):
    """Run each (function, *arguments) in a thread of its own, together; their results in order."""
    results = [None] * len(calls)
    together = threading.Barrier(len(calls))

    def call(i, function, *arguments):
        together.wait()
        results[i] = function(*arguments)

    threads = [threading.Thread(target=call, args=(i, *c)) for i, c in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


@pytest.mark.parametrize("dtype", TYPES)
def test_cas_swaps_only_what_it_expects(dtype):
    array = np.array([7, 8, 9], dtype)
    assert swap(array, 1, 8, 3) is True
    assert swap(array, 1, 8, 4) is False
    assert array.tolist() == [7, 3, 9]


@pytest.mark.parametrize(
    ("function", "values", "instruction"),
    [
        (swap, (1, 2), "cmpxchg .* acq_rel acquire"),
        (add, (1,), "atomicrmw add .* acq_rel"),
        (write, (1,), "store atomic .* release"),
        (read, (), "load atomic .* acquire"),
    ],
    ids=["cas", "fetch_add", "store", "load"],
)
def test_each_is_one_atomic_instruction(function, values, instruction):
    """Few threads on few cores may lose nothing even by plain loads and stores."""
    array = np.zeros(2, np.int32)
    function(array, 0, *values)
    (code,) = (function.inspect_llvm(types) for types in function.signatures if types[0] == INT32)
    assert re.search(instruction, code)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_cas_on_negative_numbers(dtype):
    array = np.array([-1, -1], dtype)
    assert swap(array, 0, -1, -2)
    assert not swap(array, 0, -1, 5)
    assert array.tolist() == [-2, -1]


@pytest.mark.parametrize("dtype", TYPES)
def test_fetch_add_returns_the_old_value(dtype):
    array = np.array([1, 5], dtype)
    assert add(array, 1, 3) == 5
    assert array.tolist() == [1, 8]


def test_an_int64_counter_passes_two_to_the_31():
    array = np.array([2**31 - 1], np.int64)
    assert add(array, 0, 1) == 2**31 - 1
    assert array[0] == 2**31


@pytest.mark.parametrize("dtype", TYPES)
def test_load_and_store(dtype):
    array = np.zeros(3, dtype)
    write(array, 2, 42)
    assert array.tolist() == [0, 0, 42]
    assert read(array, 2) == 42


def test_strided_arrays_are_addressed_by_their_strides():
    array = np.zeros(6, np.int32)
    write(array[::2], 2, 1)
    assert array.tolist() == [0, 0, 0, 0, 1, 0]


@pytest.mark.parametrize(
    "array", [np.zeros(2), np.zeros((2, 2), np.int32)], ids=["floats", "two-dimensional"]
)
def test_other_arrays_are_refused(array):
    with pytest.raises(TypingError, match="an atomic needs"):
        read(array, 0)


def test_threads_lose_no_increment():
    counter = np.zeros(2, np.int64)
    count(counter, 0)  # compiled before the threads meet
    in_threads(*[(count, counter, 200_000)] * THREADS)
    assert counter.tolist() == [0, THREADS * 200_000]


def test_each_item_is_claimed_by_exactly_one_thread():
    owner, won = np.full(500_000, -1, np.int32), np.zeros(THREADS, np.int64)
    claim_all(owner[:0], 0, won)  # compiled before the threads meet
    in_threads(*[(claim_all, owner, me, won) for me in range(THREADS)])
    assert won.sum() == len(owner)
    assert np.array_equal(np.bincount(owner, minlength=THREADS), won)


def test_prange_loses_no_increment_and_hands_out_each_ticket_once():
    counter = np.zeros(1, np.int32)
    count_in_prange(counter, 100_000)
    assert counter[0] == 100_000
    counter[0] = 0
    tickets = np.empty(20_000, np.int32)
    tickets_in_prange(counter, tickets)
    assert np.array_equal(np.sort(tickets), np.arange(len(tickets)))


def test_a_release_carries_what_was_written_before_it():
    data, flag = np.zeros(1, np.int64), np.zeros(1, np.int32)
    _, correct = in_threads((send, data, flag, 500), (receive, data, flag, 500))
    assert correct == 500
