"""What the device is asked for before an algorithm begins."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

cp = pytest.importorskip("cupy")

from gpumatch.cuda import memory  # noqa: E402  it imports cupy
from tests.cuda.pools import fresh_pool  # noqa: E402


@pytest.mark.gpu
def test_blocks_that_lie_idle_in_a_limited_pool_are_given_back():
    size = 2**20
    with fresh_pool() as pool:
        pool.set_limit(size=4 * size)
        cp.cuda.alloc(3 * size)
        assert pool.free_bytes() == 3 * size
        memory.require_memory(4 * size, "a search")


@pytest.mark.gpu
def test_memory_is_counted_in_one_piece():
    size = 2**20
    with fresh_pool() as pool:
        pool.set_limit(size=4 * size)
        cp.cuda.alloc(4 * size)
        pieces = [cp.cuda.alloc(size) for _ in range(4)]
        del pieces[2], pieces[0]
        assert pool.free_bytes() == 2 * size
        memory.require_memory(size, "a search")
        with pytest.raises(MemoryError, match="a search needs 2097152 bytes on GPU"):
            memory.require_memory(2 * size, "a search")
        with pytest.raises(MemoryError, match="a search needs 36893488147419103232 bytes on GPU"):
            memory.require_memory(2**65, "a search")


class Pool:
    """A device of 1,000 bytes, no more than `whole` in a piece, and CuPy's pool with its limit."""

    def __init__(self, monkeypatch, *, idle=0, used=0, whole=1000, limit=0):
        self.idle, self.used, self.whole, self.limit, self.asked = idle, used, whole, limit, []
        cuda = SimpleNamespace(alloc=self.alloc, Device=lambda: self)
        monkeypatch.setattr(
            memory, "cp", SimpleNamespace(cuda=cuda, get_default_memory_pool=lambda: self)
        )

    id = 3

    @property
    def mem_info(self):
        return 1000 - self.idle - self.used, 1000

    def alloc(self, nbytes):
        self.asked.append(nbytes)
        if nbytes >= 2**64:
            raise OverflowError
        most = min(self.whole, self.limit or 1000) - self.used - self.idle
        if nbytes > most:
            raise MemoryError

    def free_all_blocks(self):
        self.idle = 0

    def free_bytes(self):
        return self.idle

    def get_limit(self):
        return self.limit

    def used_bytes(self):
        return self.used


def test_what_is_free_is_asked_for_once(monkeypatch):
    pool = Pool(monkeypatch, idle=300, used=200)
    memory.require_memory(500, "a search")
    assert (pool.asked, pool.idle) == ([500], 300)


def test_the_pool_gives_back_what_lies_idle(monkeypatch):
    pool = Pool(monkeypatch, idle=300, used=200)
    memory.require_memory(501, "a search")
    assert (pool.asked, pool.idle) == ([501, 501], 0)


@pytest.mark.parametrize(
    ("given", "nbytes", "free"),
    [
        ({"idle": 300, "used": 200}, 801, "800 are free"),
        ({"used": 200}, 2**70, "800 are free"),
        ({"used": 200, "limit": 600}, 401, "400 are free"),
        ({"used": 200, "limit": 100}, 1, "0 are free"),
        ({"used": 200, "whole": 700}, 501, "800 are free in pieces"),
    ],
    ids=["idle", "beyond 64 bits", "limit", "beyond the limit", "pieces"],
)
def test_what_is_not_to_be_had_is_told(monkeypatch, given, nbytes, free):
    Pool(monkeypatch, **given)
    with pytest.raises(MemoryError) as caught:
        memory.require_memory(nbytes, "a search")
    assert str(caught.value) == f"a search needs {nbytes} bytes on GPU 3; {free}"
