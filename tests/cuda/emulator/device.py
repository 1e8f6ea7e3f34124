"""CuPy's arrays without a GPU, so that code which is shared by host and device runs on both.

The arrays hold NumPy's, but are none. As with CuPy, NumPy cannot read them, they do not mix with
NumPy's, and what is reduced to one number stays an array. So data that is moved without being asked
for shows. Kernels of the emulator take them.
"""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import importlib
import operator
import pkgutil
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse

import gpumatch.cuda
from gpumatch.cuda.assignment.batched import batch as device_batch
from gpumatch.cuda.kernels import Source
from tests.cuda.emulator import ArraysOfDevice, Emulator, Stream, lead_drivers_here, new_array

__all__ = ["BATCHES", "BLOCK", "Cupy", "Emulators", "lead_all_drivers_here", "ndarray"]

BLOCK = 64  # two warps


BATCHES = dataclasses.replace(
    device_batch.SOURCE,
    kernels=tuple(name for name in device_batch.SOURCE.kernels if not name.endswith(("4>", "8>"))),
)
"""Without kernels for hundreds of columns: g++ takes seconds for them, and nothing calls them."""


class Emulators(dict[Source, Emulator]):
    """The emulator of any source, compiled when it is first asked for, for blocks of `BLOCK`."""

    def __missing__(self, source: Source) -> Emulator:
        block = {"kBlock": BLOCK} if "constexpr int kBlock = " in source.text() else {}
        self[source] = Emulator(BATCHES if source == device_batch.SOURCE else source, block)
        return self[source]


def lead_all_drivers_here(monkeypatch: Any, emulators: Emulators) -> Cupy:
    """Have a device on the CPU: all code that asks for CuPy gets what is returned."""
    cp = Cupy()
    drivers = [
        importlib.import_module(found.name)
        for found in pkgutil.walk_packages(gpumatch.cuda.__path__, "gpumatch.cuda.")
    ]
    lead_drivers_here(monkeypatch, emulators, *drivers, block=BLOCK, cp=cp)
    monkeypatch.setattr(device_batch.driver, "funcSetAttribute", lambda *_: None)
    monkeypatch.setitem(sys.modules, "cupy", cp)
    monkeypatch.setitem(sys.modules, "cupyx.scipy.sparse", SPARSE)
    return cp


class ndarray(np.lib.mixins.NDArrayOperatorsMixin):
    """An array of the device: new, or at a place in its memory."""

    def __init__(
        self, shape: Any, dtype: Any = float, memptr: Any = None, strides: Any = None
    ) -> None:
        at = {} if memptr is None else {"buffer": memptr.memory, "offset": memptr.offset}
        made = np.ndarray(shape, dtype, strides=strides, **at) if at else new_array(shape, dtype)
        self.host = made

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return self.host.__array_interface__

    @property
    def device(self) -> Any:
        return _DEVICE

    @property
    def data(self) -> Any:
        return SimpleNamespace(ptr=self.host.ctypes.data, memset_async=self._fill_bytes)

    def _fill_bytes(self, value: int, count: int) -> None:
        self.host.reshape(-1).view(np.uint8)[:count] = value

    def get(self, out: Any = None) -> np.ndarray:
        if out is None:
            return self.host.copy()
        out[...] = self.host
        return out

    def set(self, values: np.ndarray) -> None:
        self.host[...] = values

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        raise TypeError("an array of the device is to be moved by `get`")

    def __array_ufunc__(self, ufunc: Any, method: str, *given: Any, **named: Any) -> Any:
        return _call(getattr(ufunc, method), *given, **named)

    def __array_function__(self, function: Any, _: Any, given: Any, named: Any) -> Any:
        return _call(function, *given, **named)

    def __getattr__(self, name: str) -> Any:
        if name == "host" or name.startswith("__"):  # among these, what NumPy reads arrays by
            raise AttributeError(name)
        found = getattr(self.host, name)
        if name in ("min", "max"):
            return functools.partial(_least_or_most, found)
        return functools.partial(_call, found) if callable(found) else _on_device(found)

    def __getitem__(self, key: Any) -> Any:
        return _on_device(self.host[_on_host(key)])

    def __setitem__(self, key: Any, value: Any) -> None:
        _refuse_host_arrays(value)
        self.host[_on_host(key)] = _on_host(value)

    def __len__(self) -> int:
        return len(self.host)

    def __iter__(self) -> Any:
        return (self[k] for k in range(len(self)))

    __repr__ = lambda self: repr(self.host)  # noqa: E731
    __str__ = lambda self: str(self.host)  # noqa: E731
    __bool__ = lambda self: bool(self.host)  # noqa: E731
    __int__ = lambda self: int(self.host)  # noqa: E731
    __float__ = lambda self: float(self.host)  # noqa: E731
    __index__ = lambda self: operator.index(self.host)  # noqa: E731


def _least_or_most(found: Any, *given: Any, **named: Any) -> Any:
    """Call an array's `min` or `max`, which has no ``initial`` in CuPy."""
    if "initial" in named:
        raise TypeError("min and max of CuPy take no initial")
    return _call(found, *given, **named)


class _Device(SimpleNamespace):
    """The only device."""

    def __enter__(self) -> None: ...
    def __exit__(self, *_: Any) -> None: ...


_DEVICE = _Device(  # small; its number is no other device's, for what is kept by number
    id=-1,
    compute_capability="80",
    attributes={
        "MultiProcessorCount": 2,
        "MaxThreadsPerMultiProcessor": 2048,
        "MaxSharedMemoryPerBlockOptin": 48 * 1024,
    },
)


class Cupy:
    """What drivers and shared code ask of the module `cupy`."""

    ndarray = ndarray

    def __init__(self) -> None:
        self.cuda = SimpleNamespace(
            Device=lambda *_: _DEVICE,
            MemoryPointer=lambda memory, offset: _Place(memory, offset),
            Stream=Stream,
            UnownedMemory=_memory_at,
            alloc=lambda size: _Place(new_array(size, np.uint8), 0),
            get_current_stream=Stream,
            runtime=SimpleNamespace(getDeviceCount=lambda: 1, getDevice=lambda: _DEVICE.id),
        )

    def __getattr__(self, name: str) -> Any:
        own = ArraysOfDevice.__dict__.get(name)
        made = getattr(ArraysOfDevice if isinstance(own, staticmethod) else np, name)
        if isinstance(made, np.ufunc):
            return _Ufunc(made)
        is_function = callable(made) and not isinstance(made, type)
        return functools.partial(_call, made) if is_function else made

    def asarray(self, values: Any, dtype: Any = None) -> ndarray:
        """A copy of what is on the host, or an array of the device itself."""
        if isinstance(values, ndarray):
            return values if dtype is None or dtype == values.dtype else values.astype(dtype)
        return _on_device(np.array(values, dtype))

    def array(self, values: Any, dtype: Any = None, order: str = "K") -> ndarray:
        return self.asarray(values, dtype).copy(order)

    def asnumpy(self, values: Any) -> np.ndarray:
        return values.get()


class SparseMatrix:
    """A matrix of `cupyx.scipy.sparse`: SciPy's, with arrays of the device."""

    kind: ClassVar[Any]

    def __init__(self, given: Any, shape: Any = None, **named: Any) -> None:
        self.host = self.kind(_on_host(given), shape=shape, **named)

    def get(self) -> Any:
        return self.host.copy()

    def __getattr__(self, name: str) -> Any:
        if name == "host" or name.startswith("__"):  # among these, what NumPy reads arrays by
            raise AttributeError(name)
        found = getattr(self.host, name)
        if name in ("min", "max"):
            return functools.partial(_least_or_most, found)
        return functools.partial(_call, found) if callable(found) else _on_device(found)


MATRICES = {
    f"{kind}_matrix": type(
        f"{kind}_matrix", (SparseMatrix,), {"kind": getattr(scipy.sparse, f"{kind}_matrix")}
    )
    for kind in ("bsr", "coo", "csc", "csr", "dia")
}
SPARSE = SimpleNamespace(issparse=lambda given: isinstance(given, SparseMatrix), **MATRICES)


class _Ufunc:
    def __init__(self, ufunc: np.ufunc) -> None:
        self._ufunc = ufunc

    def __call__(self, *given: Any, **named: Any) -> Any:
        return _call(self._ufunc, *given, **named)

    def at(self, *given: Any) -> None:
        _call(self._ufunc.at, *given)


class _Place:
    """A place in memory."""

    def __init__(self, memory: np.ndarray, offset: int) -> None:
        self.memory, self.offset = memory, offset

    @property
    def ptr(self) -> int:
        return self.memory.ctypes.data + self.offset

    def __add__(self, offset: int) -> _Place:
        return _Place(self.memory, self.offset + offset)


def _memory_at(address: int, size: int, _: Any) -> np.ndarray:
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))


def _call(function: Callable[..., Any], *given: Any, **named: Any) -> Any:
    """By NumPy, with its arrays in the place of the device's."""
    _refuse_host_arrays(given)
    _refuse_host_arrays(list(named.values()))
    out = named.get("out")
    out = out[0] if isinstance(out, tuple) else out
    result = function(*map(_on_host, given), **{k: _on_host(part) for k, part in named.items()})
    return out if isinstance(out, ndarray) else _on_device(result)


def _refuse_host_arrays(values: Any) -> None:
    if isinstance(values, (tuple, list)):
        for part in values:
            _refuse_host_arrays(part)
    elif isinstance(values, np.ndarray) and values.ndim > 0:
        raise TypeError("arrays of host and device do not mix")


def _on_host(value: Any) -> Any:
    if isinstance(value, (ndarray, SparseMatrix)):
        return value.host
    return type(value)(map(_on_host, value)) if type(value) in (tuple, list) else value


def _on_device(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        made = ndarray.__new__(ndarray)
        made.host = np.asarray(value)
        return made
    if scipy.sparse.issparse(value):
        return MATRICES[f"{value.format}_matrix"](value)
    return type(value)(map(_on_device, value)) if type(value) in (tuple, list) else value
