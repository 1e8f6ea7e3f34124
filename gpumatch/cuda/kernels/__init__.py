"""Compile and cache CUDA sources, each declared as a `Source` beside the driver that launches it.

A source's ``#include "x.cuh"`` lines are resolved here, so that no include path or CUDA header is
needed. CuPy's cache of compiled code looks at the text alone, and so it sees every change of a
header. The tests compile every source with NVRTC, without a GPU.

If the installation has machine code of a source (`machine_code`), that is loaded. If it has none,
or the driver refuses it, CuPy compiles the source, and keeps the result on disk.
"""

from __future__ import annotations

import functools
import itertools
import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from gpumatch.cuda.kernels import machine_code
from gpumatch.cuda.structs import Declarations, Struct
from gpumatch.running.compile_time import compiling

__all__ = ["BLOCK", "COSTS", "OFFSETS", "Kernels", "Source", "blocks_for", "kernels_for"]

COMPILE_OPTIONS = ("-std=c++17",)
BLOCK = 256  # threads a block, if a kernel names no other number
OFFSETS = {"int32": "int", "int64": "long long"}
COSTS = {"int32": "int", "int64": "long long", "float32": "float", "float64": "double"}

_INCLUDE = re.compile(r'^#include "([\w/]+\.cuh)"\n', re.MULTILINE)


@dataclass(frozen=True, eq=False)  # one of each; comparing by identity is quicker
class Source:
    """A .cu file, the kernels in it, and the structs that they share with the host.

    Attributes
    ----------
    file : str
        Path of the file in this package.
    kernels : tuple of str
        Names of the kernels, in which ``{Offset}`` stands for an argument of that name.
    types : mapping
        The types that each such argument takes: its name -> dtype -> C++ name.
    structs : tuple of str
        Names of the structs that the host reads or writes, with the same arguments.
    cooperative : bool
        Whether all blocks are resident at once, which a grid barrier needs. CuPy has one flag a
        module, so kernels with larger grids are in another source.
    options : tuple of str
        What the compiler is told besides `COMPILE_OPTIONS`.
    apart : bool
        True if each kernel is compiled when it is first asked for. That is for large kernels of
        which a call needs few. Other kernels are compiled with all of their source, which is read
        once then.
    """

    file: str
    kernels: tuple[str, ...]
    types: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    structs: tuple[str, ...] = ()
    cooperative: bool = False
    options: tuple[str, ...] = ()
    apart: bool = False

    def instances(self) -> Iterator[dict[str, str]]:
        """C++ names of the arguments, in every combination."""
        for names in itertools.product(*(kinds.values() for kinds in self.types.values())):
            yield dict(zip(self.types, names))

    def names(self, arguments: Mapping[str, str]) -> tuple[str, ...]:
        """The C++ names of the kernels for some arguments."""
        return tuple(name.format(**arguments) for name in self.kernels)

    def programs(self) -> tuple[tuple[str, ...], ...]:
        """The kernels, by what is compiled at once."""
        return tuple((kernel,) for kernel in self.kernels) if self.apart else (self.kernels,)

    def text(self) -> str:
        """The source with its headers in place."""
        return _text_of(self.file)

    @functools.cached_property
    def declared(self) -> Declarations:
        """Its constants and structs."""
        return Declarations(self.text())

    def constant(self, name: str) -> int:
        """A constant or enumerator of the source."""
        return self.declared.constant(name)

    def struct(self, name: str) -> Struct:
        """A struct of the source that is not a template."""
        return self.declared.struct(name)

    def layout_assertions(self, arguments: Mapping[str, str]) -> str:
        """C++ that does not compile after this source if the host's mirrors are wrong."""
        structs = (self.declared.struct(name.format(**arguments)) for name in self.structs)
        return "\n".join(line for struct in structs for line in struct.layout_assertions())


class Kernels:
    """The compiled kernels of a source on the current device, for some arguments."""

    def __init__(self, source: Source, arguments: Mapping[str, str]) -> None:
        self._source, self._arguments = source, arguments
        named = (name.format(**arguments) for name in source.structs)
        self._structs = {name.partition("<")[0]: source.declared.struct(name) for name in named}
        self._functions: dict[str, Any] = {}
        self._resident: dict[tuple[str, int, int], int] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._functions:
            _check_not_captured(name)
            program = next(kernels for kernels in self._source.programs() if name in kernels)
            with compiling():
                functions = self._functions_of(program)
            self._functions |= zip(program, functions, strict=True)
        return self._functions[name]

    def _functions_of(self, program: tuple[str, ...]) -> list[Any]:
        """The functions of kernels that are compiled at once."""
        source, names = self._source, tuple(name.format(**self._arguments) for name in program)
        return _loaded(source, names) or _compiled(source, names)

    def struct(self, name: str) -> Struct:
        """A struct that the source names, by its name without arguments."""
        return self._structs[name]

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


def kernels_for(source: Source, **dtypes: np.dtype) -> Kernels:
    """The source's kernels on the current device, compiled once.

    Parameters
    ----------
    dtypes : dtype
        Of each argument that the kernels' names have: ``Offset=indptr.dtype``.
    """
    import cupy

    return _kernels(source, tuple(dtypes.items()), cupy.cuda.Device().id)


@functools.cache
def _kernels(source: Source, dtypes: tuple[tuple[str, np.dtype], ...], _device: int) -> Kernels:
    return Kernels(source, {name: source.types[name][dtype.name] for name, dtype in dtypes})


def _check_not_captured(name: str) -> None:
    """Raise RuntimeError if a graph is being captured, which loading a kernel would spoil."""
    import cupy

    stream = cupy.cuda.get_current_stream()
    if stream.ptr and stream.is_capturing():
        raise RuntimeError(
            f"the kernel {name} cannot be loaded while a CUDA graph is captured: make one call of "
            "this shape and type before"
        )


def _loaded(source: Source, names: tuple[str, ...]) -> list[Any] | None:
    """Functions of machine code; None if there is none, or the driver refuses it."""
    import cupy
    from cupy.cuda import Device, driver, runtime

    program = machine_code.find(
        machine_code.key_of(source.text(), names, COMPILE_OPTIONS + source.options),
        capability=int(Device().compute_capability),
        cuda=runtime.driverGetVersion() // 1000,
    )
    if program is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "kernels.cubin")
        file.write_bytes(program.code)
        module = cupy.RawModule(path=str(file), enable_cooperative_groups=source.cooperative)
        functions = [module.get_function(name) for name in program.names]
        try:
            for function in functions:
                function.kernel  # noqa: B018  this loads it
        except driver.CUDADriverError:
            return None
    return functions


def _compiled(source: Source, names: tuple[str, ...]) -> list[Any]:
    """Functions that CuPy compiles, or finds in its cache."""
    import cupy

    module = cupy.RawModule(
        code=source.text(),
        options=COMPILE_OPTIONS + source.options,
        name_expressions=names,
        enable_cooperative_groups=source.cooperative,
    )
    return [module.get_function(name) for name in names]


def blocks_for(vertices: int) -> int:
    """Blocks with one thread a vertex, up to what the device holds at once (the papers' MT)."""
    import cupy

    return max(1, min(-(-vertices // BLOCK), _most_blocks(cupy.cuda.Device().id)))


@functools.cache
def _most_blocks(device: int) -> int:
    import cupy

    attributes = cupy.cuda.Device(device).attributes
    return attributes["MultiProcessorCount"] * attributes["MaxThreadsPerMultiProcessor"] // BLOCK


@functools.cache
def _text_of(file: str) -> str:
    return with_headers(_file_text(file))


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
