"""The results of a batch on a device lie in one piece of memory. Here they are NumPy's arrays."""

from __future__ import annotations

import ctypes
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from gpumatch.costs import CostBatch, SideBySide
from gpumatch.problems import device_batches


def part_at(address, like):
    """An array of what is at an address."""
    kind = ctypes.c_char * like.nbytes
    return np.frombuffer(kind.from_address(address), like.dtype).reshape(like.shape)


def test_results_share_a_piece_of_memory_without_overlap(monkeypatch):
    """What is written at the addresses is read by name."""

    class Memory:
        def __init__(self, room):
            self.room, self.ptr = room, room.ctypes.data

        def __add__(self, begin):
            return self.room[begin:]

    cupy = SimpleNamespace(
        cuda=SimpleNamespace(alloc=lambda nbytes: Memory(np.zeros(nbytes, np.uint8))),
        ndarray=lambda shape, dtype, memory: np.ndarray(shape, dtype, memory),
    )
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    for number in (np.dtype(np.int64), np.dtype(np.float64)):
        room = device_batches.Room(7, 3, 5, number)
        places, arrays = room.addresses(), room.arrays()
        assert (
            (places.most_rows, places.most_cols) == (3, 5) == (arrays.most_rows, arrays.most_cols)
        )
        for k, (address, array) in enumerate(zip(places[:7], arrays[:7])):
            assert (address - places[0]) % 256 == 0
            part_at(address, array)[...] = k % 2 if array.dtype == bool else 10 * k + 1
        for k, array in enumerate(arrays[:7]):
            assert (array == (k % 2 if array.dtype == bool else 10 * k + 1)).all()
        arrays.mates[:] = np.arange(7 * 8).reshape(7, 8)
        arrays.numbers[:] = np.arange(7 * 11).reshape(7, 11)
        assert room.read("row_to_col")[1].tolist() == [8, 9, 10]
        assert room.read("col_to_row")[1].tolist() == [11, 12, 13, 14, 15]
        assert room.read("row_dual")[1].tolist() == [11, 12, 13]
        assert room.read("col_dual")[1].tolist() == [14, 15, 16, 17, 18]
        assert room.read("pair_costs")[1].tolist() == [19, 20, 21]
        assert room.read("size").tolist() == arrays.pairs.tolist()
        assert room.read("gap").tolist() == arrays.gap.tolist()


@pytest.mark.parametrize("sizes", [None, (4, [5, 2, 0]), "side by side"])
def test_where_the_problems_of_an_array_begin(sizes):
    costs = np.random.default_rng(3).random((3, 4, 5))
    problems = SideBySide(costs, [2, 0, 3]) if sizes == "side by side" else CostBatch(costs, sizes)
    arrays = SimpleNamespace(shape=costs.shape, data=SimpleNamespace(ptr=costs.ctypes.data))
    addresses, steps, shapes, apart = device_batches._places(arrays, problems, costs.dtype)
    assert np.array_equal(shapes, problems.sizes)
    assert apart == (20 if sizes is None else None)
    for k, own in enumerate(costs if sizes is None else problems):
        first = int(addresses[0]) + 8 * apart * k if apart else int(addresses[k])
        step = int(steps[0] if apart else steps[k])
        for row in range(own.shape[0]):
            like = np.ascontiguousarray(own[row])
            assert part_at(first + 8 * step * row, like).tolist() == own[row].tolist()


def test_where_the_problems_of_a_list_begin():
    wide = np.random.default_rng(4).random((6, 10))
    given = [wide[:3, 2:7], wide[3:, :4]]
    arrays = [
        SimpleNamespace(data=SimpleNamespace(ptr=own.ctypes.data), strides=own.strides)
        for own in given
    ]
    addresses, steps, _, apart = device_batches._places(arrays, CostBatch(given), wide.dtype)
    assert (steps.tolist(), apart) == ([10, 10], None)
    assert addresses.tolist() == [own.ctypes.data for own in given]
