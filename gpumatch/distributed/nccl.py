"""Collectives on CuPy arrays through NCCL, in CuPy's current stream: a GPU a rank.

`links_of` makes them once for a communicator of MPI and the GPUs that its ranks use, because NCCL
takes a second for that. MPI keeps them with the communicator.

Reference: *NCCL User Guide*, https://docs.nvidia.com/deeplearning/nccl/user-guide.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Links", "links_of"]

_TYPES = {
    "int8": "NCCL_INT8", "uint8": "NCCL_UINT8", "int32": "NCCL_INT32", "uint32": "NCCL_UINT32",
    "int64": "NCCL_INT64", "uint64": "NCCL_UINT64", "float32": "NCCL_FLOAT32",
    "float64": "NCCL_FLOAT64",
}  # fmt: skip
_OPERATIONS = {"min": "NCCL_MIN", "max": "NCCL_MAX", "sum": "NCCL_SUM"}


class _Kept(NamedTuple):
    gpus: list[str]
    links: Links | None


def links_of(mpi: Any, comm: Any) -> Links | None:
    """What links the ranks' current GPUs, None if two ranks share one. All ranks call it."""
    gpus = comm.allgather(f"{mpi.Get_processor_name()} {_bus_id()}")
    key = _key(mpi)
    kept = comm.Get_attr(key)
    if kept is None or kept.gpus != gpus:
        has_own = len(set(gpus)) == comm.size
        kept = _Kept(gpus, Links.between(comm) if has_own else None)
        comm.Set_attr(key, kept)
    return kept.links


@functools.cache
def _key(mpi: Any) -> int:
    return mpi.Comm.Create_keyval()


def _bus_id() -> str:
    import cupy

    return str(cupy.cuda.Device().pci_bus_id)


class Links:
    """An NCCL communicator. All ranks call each method together; arrays are contiguous."""

    def __init__(self, nccl: Any, link: Any, rank: int, size: int) -> None:
        self._nccl, self._link, self.rank, self.size = nccl, link, rank, size

    @classmethod
    def between(cls, comm: Any) -> Links | None:
        """Of all ranks; None, on all of them, if one of them has no NCCL."""
        try:
            from cupy.cuda import nccl
        except ImportError:
            nccl = None
        has_nccl = nccl is not None and bool(getattr(nccl, "available", False))
        if not all(comm.allgather(has_nccl)):
            return None
        identity = comm.bcast(nccl.get_unique_id() if comm.rank == 0 else None, root=0)
        link = nccl.NcclCommunicator(comm.size, identity, comm.rank)
        return cls(nccl, link, comm.rank, comm.size)

    def abort(self) -> None:
        """Give up what runs."""
        self._link.abort()

    def allreduce(self, array: Any, how: str, result: Any = None) -> Any:
        """The least, the greatest or the sum, element by element, in a new array or `result`."""
        result = _empty(array.shape, array.dtype) if result is None else result
        self._link.allReduce(
            array.data.ptr, result.data.ptr, array.size,
            self._type(array), getattr(self._nccl, _OPERATIONS[how]), _stream(),
        )  # fmt: skip
        return result

    def broadcast(self, array: Any, root: int) -> None:
        """Put the root's array into the others' arrays."""
        self._link.bcast(array.data.ptr, array.size, self._type(array), root, _stream())

    def gather(self, array: Any, counts: np.ndarray, root: int) -> list[Any] | None:
        """The arrays of all ranks, so many things each, on the root."""
        taken = [self._room(array, count) for count in counts] if self.rank == root else None
        with self._together():
            self._send(array, root)
            for rank, part in enumerate(taken or []):
                self._receive(part, rank)
        return taken

    def allgather(self, array: Any, counts: np.ndarray) -> list[Any]:
        """The arrays of all ranks, so many things each, on all ranks."""
        return self.exchange([array] * self.size, counts)

    def exchange(self, parts: Sequence[Any], counts: np.ndarray) -> list[Any]:
        """Give ``parts[r]`` to rank r; from which this one takes ``counts[r]`` things."""
        taken = [self._room(parts[0], count) for count in counts]
        with self._together():
            for rank, part in enumerate(parts):
                self._send(part, rank)
            for rank, part in enumerate(taken):
                self._receive(part, rank)
        return taken

    @contextmanager
    def _together(self) -> Iterator[None]:
        self._nccl.groupStart()
        yield
        self._nccl.groupEnd()

    def _send(self, array: Any, rank: int) -> None:
        self._move(self._link.send, array, rank)

    def _receive(self, array: Any, rank: int) -> None:
        self._move(self._link.recv, array, rank)

    def _move(self, call: Callable[..., None], array: Any, rank: int) -> None:
        if array.size:
            call(array.data.ptr, array.size, self._type(array), rank, _stream())

    def _type(self, array: Any) -> int:
        return int(getattr(self._nccl, _TYPES[array.dtype.name]))

    @staticmethod
    def _room(array: Any, count: int) -> Any:
        return _empty((int(count), *array.shape[1:]), array.dtype)


def _empty(shape: tuple[int, ...], dtype: np.dtype) -> Any:
    import cupy

    return cupy.empty(shape, dtype)


def _stream() -> int:
    import cupy

    return int(cupy.cuda.get_current_stream().ptr)
