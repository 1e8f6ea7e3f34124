"""Links between GPUs, with threads in place of ranks and a stand-in for NCCL that moves NumPy's.

The stand-in reads and writes memory by address, length and type, as NCCL does.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from queue import Queue
from types import SimpleNamespace

import numpy as np
import pytest

from gpumatch.distributed import devices, nccl
from gpumatch.distributed.nccl import Links, links_of

SECONDS = 20
STREAM = 7
TYPES = "int8", "uint8", "int32", "uint32", "int64", "uint64", "float32", "float64"
NUMBER_OF = {f"NCCL_{name.upper()}": k for k, name in enumerate(TYPES)}
REDUCE = {11: np.min, 12: np.max, 13: np.sum}


class Array(np.ndarray):
    """One whose memory has an address as CuPy's has."""

    @property
    def data(self):
        return SimpleNamespace(ptr=self.ctypes.data)


def array(values, dtype):
    return np.array(values, dtype).view(Array)


def memory(address, size, kind):
    dtype = np.dtype(TYPES[kind])
    room = (ctypes.c_byte * (size * dtype.itemsize)).from_address(address)
    return np.frombuffer(room, dtype)


class Ranks:
    """What a communicator of MPI has, of a thread each."""

    def __init__(self, size):
        self.size, self.barrier = size, threading.Barrier(size, timeout=SECONDS)
        self.values, self.kept, self.local = [None] * size, {}, threading.local()
        self.boxes = defaultdict(Queue)
        self.made = []

    @property
    def rank(self):
        return self.local.rank

    def run(self, work):
        def serve(rank):
            self.local.rank = rank
            try:
                return work(rank)
            except BaseException:
                self.barrier.abort()
                raise

        with ThreadPoolExecutor(self.size) as pool:
            return list(pool.map(serve, range(self.size)))

    def allgather(self, value):
        self.values[self.rank] = value
        self.barrier.wait()
        every = list(self.values)
        self.barrier.wait()
        return every

    def bcast(self, value, root):
        return self.allgather(value)[root]

    def Get_attr(self, key):
        return self.kept.get((key, self.rank))

    def Set_attr(self, key, value):
        self.kept[key, self.rank] = value


class Communicator:
    """What is used of CuPy's `NcclCommunicator`; what a group receives comes at its end."""

    def __init__(self, ranks, size, identity, rank):
        assert (size, identity) == (ranks.size, "identity of 0")
        self.ranks, self.rank, self.later, self.aborted = ranks, rank, None, False
        ranks.made.append(rank)

    def send(self, address, size, kind, peer, stream):
        assert stream == STREAM
        self.ranks.boxes[self.rank, peer].put(memory(address, size, kind).copy())

    def recv(self, address, size, kind, peer, stream):
        assert stream == STREAM
        self.later.append((memory(address, size, kind), peer))

    def allReduce(self, source, target, size, kind, how, stream):
        assert stream == STREAM
        every = self.ranks.allgather(memory(source, size, kind).copy())
        memory(target, size, kind)[:] = REDUCE[how](every, axis=0)

    def bcast(self, address, size, kind, root, stream):
        assert stream == STREAM
        own = memory(address, size, kind)
        own[:] = self.ranks.bcast(own.copy(), root)

    def abort(self):
        self.aborted = True


class Library:
    """What is used of `cupy.cuda.nccl`."""

    available = True
    NCCL_MIN, NCCL_MAX, NCCL_SUM = REDUCE

    def __init__(self, ranks):
        self.ranks, self.local = ranks, threading.local()
        vars(self).update(NUMBER_OF)

    def get_unique_id(self):
        return f"identity of {self.ranks.rank}"

    def NcclCommunicator(self, size, identity, rank):
        self.local.link = Communicator(self.ranks, size, identity, rank)
        return self.local.link

    def groupStart(self):
        self.local.link.later = []

    def groupEnd(self):
        link = self.local.link
        for room, peer in link.later:
            room[:] = self.ranks.boxes[peer, link.rank].get(timeout=SECONDS)
        link.later = None


@pytest.fixture(params=[1, 2, 3])
def ranks(request, monkeypatch):
    """Ranks of which each has a GPU and NCCL."""
    ranks = Ranks(request.param)
    cuda = pytest.importorskip("cupy").cuda
    monkeypatch.setattr(cuda, "nccl", Library(ranks), raising=False)
    monkeypatch.setattr(nccl, "_bus_id", lambda: f"bus {ranks.rank}")
    monkeypatch.setattr(nccl, "_empty", lambda shape, dtype: np.empty(shape, dtype).view(Array))
    monkeypatch.setattr(nccl, "_stream", lambda: STREAM)
    return ranks


class Mpi:
    """What is used of mpi4py's module."""

    def Get_processor_name(self):
        return "here"

    class Comm:
        @staticmethod
        def Create_keyval():
            return 5


@pytest.mark.parametrize("dtype", TYPES)
def test_collectives_move_what_they_are_given(ranks, dtype):
    size = ranks.size

    def work(rank):
        links = Links.between(ranks)
        own = array([[rank, 1], [5 - rank, 2]], dtype)
        for how in ("min", "max", "sum"):
            wanted = getattr(np, how)([[[r, 1], [5 - r, 2]] for r in range(size)], axis=0)
            assert links.allreduce(own, how).tolist() == wanted.tolist()
            result = np.zeros_like(own)
            assert links.allreduce(own, how, result) is result
            assert result.tolist() == wanted.tolist()
        root = size - 1
        given = array([rank, rank + 1], dtype)
        links.broadcast(given, root)
        assert given.tolist() == [root, root + 1]
        counts = np.arange(size)  # the first has nothing
        part = array(np.full((rank, 2), rank), dtype)
        wanted = [[[r, r]] * r for r in range(size)]
        found = links.gather(part, counts, root)
        assert (found is None) == (rank != root)
        assert found is None or [each.tolist() for each in found] == wanted
        assert [each.tolist() for each in links.allgather(part, counts)] == wanted
        parts = [array([10 * rank + to] * to, dtype) for to in range(size)]
        taken = links.exchange(parts, np.full(size, rank))
        assert [each.tolist() for each in taken] == [[10 * r + rank] * rank for r in range(size)]
        assert {each.dtype for each in taken} == {np.dtype(dtype)}
        links.abort()
        return links._link.aborted

    assert all(ranks.run(work))


def test_links_are_kept_until_a_rank_takes_another_gpu(ranks, monkeypatch):
    mpi, where = Mpi(), [f"bus {rank}" for rank in range(ranks.size)]
    monkeypatch.setattr(nccl, "_bus_id", lambda: where[ranks.rank])

    def work(_):
        return links_of(mpi, ranks)

    first = ranks.run(work)
    assert all(isinstance(links, Links) for links in first)
    assert ranks.run(work) == first
    where[-1] = "another bus"
    second = ranks.run(work)
    assert all(one is not other for one, other in zip(first, second))
    assert sorted(ranks.made) == sorted([*range(ranks.size)] * 2)
    where[:] = ["one bus"] * ranks.size
    shared = ranks.run(work)
    assert all((links is None) == (ranks.size > 1) for links in shared)


@pytest.mark.parametrize("lacks", ["the module", "the library"])
def test_no_links_where_one_rank_has_no_nccl(ranks, monkeypatch, lacks):
    import cupy

    class Here(Library):
        @property
        def available(self):
            return self.ranks.rank != 0

    if lacks == "the library":
        monkeypatch.setattr(cupy.cuda, "nccl", Here(ranks))
    else:
        monkeypatch.setitem(sys.modules, "cupy.cuda.nccl", None)
        monkeypatch.delattr(cupy.cuda, "nccl")
    assert ranks.run(lambda _: Links.between(ranks)) == [None] * ranks.size
    assert not ranks.made


# -- the device of a rank --------------------------------------------------------------------------


def test_a_rank_takes_the_gpu_of_its_number_on_the_machine(monkeypatch):
    done = []
    world = SimpleNamespace(local_rank=lambda: 3, link_devices=lambda: done.append("linked"))
    monkeypatch.setattr(devices, "why_no_cuda", lambda: None)
    monkeypatch.setattr("gpumatch.cuda.assignment.dense.rows.use_own_device", done.append)
    devices.take_device(world)
    assert done == [3, "linked"]


def test_a_rank_without_a_gpu_says_why(monkeypatch):
    monkeypatch.setattr(devices, "why_no_cuda", lambda: "no driver")
    with pytest.raises(RuntimeError, match="backend 'cuda' can't run: no driver"):
        devices.take_device(None)
    assert devices.BACKENDS == ("cpu", "cuda")
