"""The communicator."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from gpumatch.distributed.communicator import Communicator


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
        assert world.statistics()["communication"]["seconds"]["again"] == 4.0
        yield "a Ctrl-C, and then a limit"
        world._on_interrupt()
        world.control = SimpleNamespace(tick=lambda _: True)
        assert world.wants_to_stop(0)
        world.settle()
        assert world.interrupted


GROUPS = (collectives,)
