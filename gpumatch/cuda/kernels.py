"""Compile, cache and launch the CUDA sources beside this file.

A source's ``#include "x.cuh"`` lines are resolved here, so that CuPy's cache of compiled code,
which looks at the text alone, sees every change of a header, and no include path or CUDA header is
needed. `SOURCES` lists every kernel; the tests compile them all with NVRTC, with no GPU.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

import numpy as np

COMPILE_OPTIONS = ("-std=c++17",)
BLOCK = 256  # threads a block, of every kernel here
OFFSET_TYPES = {"int32": "int", "int64": "long long"}
COST_TYPES = {"int32": "int", "int64": "long long", "float32": "float", "float64": "double"}
COUNTED_TYPES = {"uint8": "unsigned char", "int32": "int", "int64": "long long"}

_INCLUDE = re.compile(r'^#include "([\w/]+\.cuh)"\n', re.MULTILINE)


@dataclass(frozen=True, eq=False)  # one of each, which is quicker to look up than its contents
class Source:
    """A .cu file and the kernels in it.

    Attributes
    ----------
    file : str
        Name of the file in this package.
    kernels : tuple of str
        Names of the kernels; an ``{Offset}`` in them stands for the type of the CSR offsets, a
        ``{Cost}`` for that of the costs, a ``{Number}`` for that of what is counted.
    cooperative : bool
        Launched so that all blocks are resident: what a grid barrier needs. CuPy's flag is one a
        module, so kernels with larger grids live in another source.
    types : mapping
        The types that its kernels are templates of: dtype -> C++ name.
    """

    file: str
    kernels: tuple[str, ...]
    cooperative: bool = False
    types: Mapping[str, str] = field(default_factory=lambda: OFFSET_TYPES)

    def names(self, type_name: str) -> tuple[str, ...]:
        """The C++ names of the kernels for one type."""
        return tuple(instance(name, type_name) for name in self.kernels)

    def text(self) -> str:
        """The source with its headers in place."""
        return with_headers(_file_text(self.file))


APSB_APFB = Source(
    "matching/apsb_apfb.cu",
    (
        "cheap_matching_kernel<{Offset}>",
        "init_bfs_array_kernel<false, false>",
        "init_bfs_array_kernel<true, false>",
        "init_bfs_array_kernel<true, true>",
        "next_batch",
        # offsets; roots (WR), the ends' rows in the roots' entries, stop at the shortest (APsB)
        "gpubfs_kernel<{Offset}, false, false, false>",
        "gpubfs_kernel<{Offset}, false, false, true>",
        "gpubfs_kernel<{Offset}, true, false, false>",
        "gpubfs_kernel<{Offset}, true, true, true>",
        "alternate_kernel<false>",
        "alternate_kernel<true>",
        "fix_matching_kernel",
    ),
)
FRONTIER = Source(
    "frontier.cu",
    (
        "flag_free",
        "start_frontier",
        "search_gpubfs_wr<{Offset}, false, false>",
        "search_gpubfs_wr<{Offset}, true, true>",
        "search_cover<{Offset}>",
    ),
    cooperative=True,
)
MATCHING_ENGINE = Source(
    "matching/engine.cu", ("survey<{Offset}>", "matching_engine<{Offset}>"), cooperative=True
)
MIN_DEGREE = Source(
    "matching/min_degree.cu",
    (
        "count_degrees",
        "classify_counted",
        "classify<{Offset}>",
        "choose<{Offset}>",
        "choose_for_hubs<{Offset}>",
    ),
)
HUNGARIAN_REDUCTION = Source(
    "assignment/hungarian_reduction.cu",
    ("row_minima<{Cost}>", "column_minima<{Cost}>"),
    types=COST_TYPES,
)
HUNGARIAN_CLASSICAL = Source(
    "assignment/hungarian_classical.cu",
    # costs; whether rows begin at multiples of 16 bytes
    ("hungarian_classical<{Cost}, false>", "hungarian_classical<{Cost}, true>"),
    cooperative=True,
    types=COST_TYPES,
)
HUNGARIAN_TREE = Source(
    "assignment/hungarian_tree.cu",
    ("hungarian_tree<{Cost}, false>", "hungarian_tree<{Cost}, true>"),
    cooperative=True,
    types=COST_TYPES,
)
AUCTION = Source(
    "assignment/auction.cu",
    (
        "flag_bidders<{Cost}>",
        "open_auction<{Cost}>",
        *(
            f"{kernel}<{entries}>"
            for kernel in ("hold_rounds", "least_reduced")
            for entries in ("Dense<{Cost}, false>", "Dense<{Cost}, true>", "Sparse<{Cost}>")
        ),
    ),
    cooperative=True,
    types=COST_TYPES,
)
DGS = Source(
    "assignment/dgs.cu",
    (
        "transpose<{Cost}>",
        "pay<{Cost}>",
        "take_cheapest<{Cost}>",
        # who evaluates: a thread a vertex, a thread an exchange, a block a vertex
        *(f"evaluate<{{Cost}}, {form}>" for form in range(3)),
        *(f"switch_in_parallel<{{Cost}}, {form}>" for form in range(3)),
        "sweep_prices<{Cost}>",
    ),
    cooperative=True,
    types=COST_TYPES,
)
COUNTING = Source("counting.cu", ("count_from<{Number}>",), types=COUNTED_TYPES)
SOURCES = (
    APSB_APFB,
    FRONTIER,
    MATCHING_ENGINE,
    MIN_DEGREE,
    HUNGARIAN_REDUCTION,
    HUNGARIAN_CLASSICAL,
    HUNGARIAN_TREE,
    AUCTION,
    DGS,
    COUNTING,
)


def instance(name: str, type_name: str) -> str:
    """The C++ name of a kernel for one type of offsets, costs or numbers."""
    return name.format(Offset=type_name, Cost=type_name, Number=type_name)


class Kernels:
    """The compiled kernels of a source on the current device, for one type."""

    def __init__(self, source: Source, type_name: str) -> None:
        import cupy

        self._type_name = type_name
        self._module = cupy.RawModule(
            code=source.text(),
            options=COMPILE_OPTIONS,
            name_expressions=source.names(type_name),
            enable_cooperative_groups=source.cooperative,
        )
        self._functions: dict[str, Any] = {}
        self._resident: dict[tuple[str, int, int], int] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._functions:
            self._functions[name] = self._module.get_function(instance(name, self._type_name))
        return self._functions[name]

    def resident_blocks(self, name: str, block: int = BLOCK, shared: int = 0) -> int:
        """The blocks of `block` threads, `shared` bytes each, resident on the device at once."""
        from cupy.cuda import Device, driver

        key = name, block, shared
        if key not in self._resident:
            a_multiprocessor = driver.occupancyMaxActiveBlocksPerMultiprocessor(
                self[name].kernel.ptr, block, shared
            )
            multiprocessors = Device().attributes["MultiProcessorCount"]
            self._resident[key] = a_multiprocessor * multiprocessors
        return self._resident[key]


def kernels_for(source: Source, dtype: np.dtype) -> Kernels:
    """The source's kernels for offsets or costs of `dtype` on the current device, compiled once."""
    import cupy

    return _kernels(source, dtype, cupy.cuda.Device().id)


def require_memory(nbytes: int, purpose: str) -> None:
    """Raise MemoryError, before anything is launched, when the device can't give `nbytes`.

    What CuPy's pool holds may lie in pieces. So the bytes are taken in one, and left to the pool;
    if need be, the pool gives back before what lies idle.
    """
    import cupy

    if _is_to_be_had(nbytes):
        return
    device, pool = cupy.cuda.Device(), cupy.get_default_memory_pool()
    pool.free_all_blocks()
    if _is_to_be_had(nbytes):
        return
    free = device.mem_info[0] + pool.free_bytes()
    if pool.get_limit() > 0:
        free = min(free, pool.get_limit() - pool.used_bytes())
    pieces = " in pieces" if nbytes <= free else ""
    raise MemoryError(f"{purpose} needs {nbytes} bytes on GPU {device.id}; {free} are free{pieces}")


def _is_to_be_had(nbytes: int) -> bool:
    import cupy

    try:
        cupy.cuda.alloc(nbytes)
    except (MemoryError, OverflowError):  # more than 64 bits can count
        return False
    return True


def unmatched(count: int) -> Any:
    """The mates of so many vertices while they have none: -1 each."""
    import cupy

    mates = cupy.empty(count, np.int32)
    mates.data.memset_async(0xFF, mates.nbytes)  # a third of what cupy.full takes
    return mates


def blocks_for(vertices: int) -> int:
    """Blocks with one thread a vertex, up to what the device holds at once (the papers' MT)."""
    import cupy

    return max(1, min(-(-vertices // BLOCK), _most_blocks(cupy.cuda.Device().id)))


@functools.cache
def _most_blocks(device: int) -> int:
    import cupy

    attributes = cupy.cuda.Device(device).attributes
    return attributes["MultiProcessorCount"] * attributes["MaxThreadsPerMultiProcessor"] // BLOCK


def struct(*values: Any) -> Any:
    """A C struct for a kernel to take by value.

    Arrays become pointers, integers int, NumPy's scalars what they are. A part of an array is
    quicker to have by `pointer` than by a slice.
    """

    def member(value: Any) -> tuple[Any, Any]:
        if isinstance(value, np.generic):
            return value.dtype, value
        return (np.int32, value) if isinstance(value, int) else (np.uintp, value.data.ptr)

    kinds, contents = zip(*(member(value) for value in values))
    dtype = _struct_of(kinds)
    return np.array(contents, dtype).view(f"V{dtype.itemsize}")  # CuPy is slow to look into fields


def pointer(array: Any, offset: int = 0) -> np.uintp:
    """Where an array on the device has its byte `offset`, for `struct`."""
    return np.uintp(array.data.ptr + offset)


@functools.cache
def _struct_of(kinds: tuple[Any, ...]) -> Any:
    return np.dtype([(f"f{i}", kind) for i, kind in enumerate(kinds)], align=True)


@functools.cache
def _kernels(source: Source, dtype: np.dtype, _device: int) -> Kernels:
    return Kernels(source, source.types[dtype.name])


def with_headers(text: str) -> str:
    """The source with each header put in where it is first included."""
    seen: set[str] = set()

    def resolved(text: str) -> str:
        return _INCLUDE.sub(header, text)

    def header(include: re.Match[str]) -> str:
        name = include.group(1)
        if name in seen:
            return ""
        seen.add(name)
        return resolved(_file_text(name)).replace("#pragma once\n", "")

    return resolved(text)


def _file_text(file: str) -> str:
    return resources.files("gpumatch.cuda").joinpath(file).read_text(encoding="utf-8")


def every_instance() -> Iterator[tuple[Source, str]]:
    """Each source with each of its types: all there is to compile."""
    for source in SOURCES:
        for type_name in source.types.values():
            yield source, type_name
