"""The communicator."""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace
from unittest import mock

import numpy as np

from gpumatch.distributed import communicator
from gpumatch.distributed.communicator import Communicator
from tests.distributed.ranks.records import counted


def collectives(comm, xp=np):
    """The communicator alone."""
    rank, size = comm.rank, comm.size
    with Communicator(comm) as world:
        if xp is not np:
            world.link_devices()
            by = "MPI and NCCL" if xp.cuda.runtime.getDeviceCount() >= size else "MPI"
            assert world.statistics()["communication"]["by"] == by
        yield "allgather and gather"
        own = xp.arange(2 * rank, dtype=np.int32).reshape(rank, 2)
        every = world.allgather(own)
        assert [len(part) for part in every] == list(range(size))
        assert world.brought == sum(range(size))
        at_root = world.gather(own, root=size - 1)
        assert (at_root is None) == (rank != size - 1)
        if at_root is not None:
            assert all((a == b).all() for a, b in zip(at_root, every))
        yield "allreduce"
        numbers = xp.array([rank, -rank], np.int64)
        for how, want in (("min", [0, 1 - size]), ("max", [size - 1, 0])):
            assert world.allreduce(numbers, how).tolist() == want
        assert world.total(0.5) == 0.5 * size
        volume = world.volume
        for array, want in ((numbers, [0, 1 - size]), (numbers[:0], [])):
            yield f"allreduce into an array of {array.size}"
            result = xp.empty_like(array)
            world.allreduce_into(result, array, "min")
            world.catch_up()
            assert result.tolist() == want
        assert world.volume == volume + numbers.nbytes
        yield "broadcast"
        flags = world.broadcast(xp.array([True, False, True]) if rank == 0 else xp.empty(0, bool))
        assert flags.tolist() == [True, False, True]
        floats = world.broadcast(xp.array([[0.5, rank]]) if rank == 0 else xp.empty(0))
        assert floats.tolist() == [[0.5, 0]]
        yield "exchange"
        parts = [xp.full(other + 1, rank, np.int64) for other in range(size)]
        taken = world.exchange(parts)
        assert [part.tolist() for part in taken] == [[other] * (rank + 1) for other in range(size)]
        assert world.volume > 0
        assert world.calls >= 6
        yield "a step that comes again"
        for _ in range(2):
            with world.step("again"):
                world.waiting += 1.5
                world.moving += 0.5
        seconds = world.statistics()["communication"]["seconds"]["again"]
        assert math.isclose(seconds, 4.0), seconds  # differences of sums, which are rounded
        yield "a Ctrl-C, and then a limit"
        world._on_interrupt()
        world.control = SimpleNamespace(tick=lambda _: True)
        assert world.wants_to_stop(0)
        world.settle()
        assert world.interrupted


# -- arrays that go from device to device ----------------------------------------------------------


class Links:
    """As `gpumatch.distributed.nccl.Links`, for arrays of NumPy, which MPI takes."""

    def __init__(self, comm):
        self.comm = comm

    def allreduce(self, array, how, result=None):
        found = getattr(np, how)(self.comm.allgather(array), axis=0)
        result = np.empty_like(array) if result is None else result
        result[...] = found
        return result

    def broadcast(self, array, root):
        array[...] = self.comm.bcast(array, root)

    def gather(self, array, counts, root):
        every = self.allgather(array, counts)
        return every if self.comm.rank == root else None

    def allgather(self, array, counts):
        every = self.comm.allgather(array)
        assert [len(part) for part in every] == counts.tolist()
        return every

    def exchange(self, parts, counts):
        taken = self.comm.alltoall(parts)
        assert [len(part) for part in taken] == counts.tolist()
        return taken


class Event:
    """Of a device that has done all when it is waited for."""

    clock = itertools.count(1)
    at = 0

    def record(self):
        self.at = next(self.clock)


def linked(comm):
    """All of that by links, which are waited for."""
    links, waits = Links(comm), []
    with (
        mock.patch.object(
            Communicator, "_links_for", lambda _, array: None if array.dtype == bool else links
        ),
        mock.patch.multiple(
            communicator,
            _wait_for_device=lambda: waits.append(True),
            _event=Event,
            _seconds=lambda before, after: 100.0 * (0 < before.at < after.at),
        ),
    ):
        yield from collectives(comm)
        yield from counted(comm)
        numbers = np.array([comm.rank, 2, -comm.rank])
        with Communicator(comm) as world:
            yield "before and after each, the device is waited for"
            for call in (
                lambda: world.allgather(numbers),
                lambda: world.gather(numbers),
                lambda: world.allreduce(numbers, "max"),
                lambda: world.broadcast(numbers),
                lambda: world.exchange([numbers] * comm.size),
            ):
                waits.clear()
                call()
                assert len(waits) == 2
            yield "reductions that nothing waits for"
            waits.clear()
            before = world.calls, world.volume, world.moving, world.waiting
            results = np.empty((2, 3), numbers.dtype)
            for result, how in zip(results, ("sum", "max")):
                world.allreduce_into(result, numbers, how)
            assert not waits
            assert (world.calls, world.volume) == (before[0] + 2, before[1] + 2 * numbers.nbytes)
            assert (world.moving, world.waiting) == before[2:]
            for _ in range(2):  # the second has nothing to wait for
                world.catch_up()
                assert len(waits) == 1
                assert world.moving == before[2] + 200
            most, size = comm.size - 1, comm.size
            assert results.tolist() == [
                [size * most // 2, 2 * size, -size * most // 2],
                [most, 2, 0],
            ]


GROUPS = collectives, linked
