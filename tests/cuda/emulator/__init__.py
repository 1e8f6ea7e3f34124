"""Run CUDA kernels on the CPU, their threads in a random order, so that races show without a GPU.

g++ compiles the kernels' own text. cuda.h and threads.cpp say what stands for CUDA there.
`ArraysOfDevice` lets drivers believe that NumPy is CuPy.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import itertools
import os
import re
import shutil
import subprocess
import tempfile
import weakref
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

from gpumatch.cuda import launches, memory
from gpumatch.cuda.kernels import Source
from gpumatch.cuda.structs import Struct
from gpumatch.numeric.arrays import count_matched

HERE = Path(__file__).parent
LIBRARIES = HERE.parents[2] / ".pytest_cache" / "emulator"
KEPT, KEPT_HEADERS = 200, 3  # headers have 30 MB each
COMPILER = shutil.which("g++")
_OPTIONS = ("-std=c++17", "-O1", "-fPIC", "-fno-gnu-unique", "-w", "-Wno-psabi")
"""Without unique symbols, each library has shared variables of its own, of the size it needs."""
_COMMAND = (COMPILER or "g++", *_OPTIONS)
_SEEN = "-fsanitize=thread"  # each access to memory calls a function of threads.cpp

_ODDS = 4, 30

_SIZED_BY_LAUNCH = re.compile(r"extern __shared__ (?:__align__\(\d+\) )?([\w ]+) (\w+)\[\];")
_OF_CLUSTERS = {  # functions that name clusters in assembly
    "wait_for_cluster": "wait_for_all();",
    "of_block": "return static_cast<T*>(shared_of_block(place, block));",
    "open_mail": "*mail = kArrival;",
    "expect_mail": "count_mail(mail, bytes - kArrival);",
    "send_to_block": "*static_cast<T*>(shared_of_block(place, block)) = value;"
    " count_mail(shared_of_block(mail, block), -static_cast<int>(sizeof(T)));",
    "wait_for_mail": "while ((times_of_mail(mail) & 1) == parity) wait_for_next(mail);",
}
_VARIABLE = r"(\w+)((?:\[[^\]]*\])*)"
_SHARED = re.compile(rf"__shared__ ([^;]+?) ({_VARIABLE}(?:, {_VARIABLE})*);")


class Emulator:
    """The kernels of a source on the CPU, in the place of `gpumatch.cuda.kernels.Kernels`.

    Parameters
    ----------
    source : Source
    constants : mapping
        Integer constants of the source to be changed, so that small problems go everywhere.
    odds : int
        One access to memory in so many lets another thread go on. If it is 0, it is one in 4 and
        one in 30 in as many launches: some races show when threads go on often, others when one
        is far ahead.
    stay : int
        If not 0, a thread of another block goes on one time in so many only, so that blocks may be
        far ahead of each other.
    hold : int
        If not 0, one warp at a time is held back: it goes on when no other thread may, or after so
        many turns of the others. It shows memory that is written again before all have read it.
    at_once : int, optional
        How many blocks run at once: a cluster. All do if they wait for each other, or if launches
        set no size of their memory.
    patience : int
        If no thread has written anything for so many turns, the process is aborted, because all
        threads wait for each other.
    most_turns : int
        A launch of more turns aborts the process, because it seems to have no end.
    """

    _alive: ClassVar[weakref.WeakSet[Emulator]] = weakref.WeakSet()

    def __init__(self, source: Source, constants: Mapping[str, int]) -> None:
        self._source = source
        has_own_size = "extern __shared__" in source.text() and not source.cooperative
        self.at_once = 1 if has_own_size else None
        self._text = _for_threads(source, constants)
        self._libraries: dict[tuple[str, ...], ctypes.CDLL] = {}
        self._begin_again()
        Emulator._alive.add(self)

    def _begin_again(self) -> None:
        self.seed, self.odds, self.blocks, self.stay, self.hold = 0, 0, 2, 0, 0
        self.patience, self.most_turns = 2**28, 2**32

    @classmethod
    def all_begin_again(cls) -> None:
        """Let what ran before not change the order in which threads go on."""
        for emulator in cls._alive:
            emulator._begin_again()

    def bound_to(self, arguments: Mapping[str, str]) -> _Kernels:
        """The kernels for some arguments of their templates, compiled when they are asked for."""
        key = tuple(arguments.values())
        if key not in self._libraries:
            self._libraries[key] = _compiled(self._text, self._source.names(arguments))
        return _Kernels(self, self._source, self._libraries[key], arguments)

    def kernels_for(self, **dtypes: np.dtype) -> _Kernels:
        """The same, as drivers ask for them: by the dtypes that the arguments stand for."""
        types = self._source.types
        return self.bound_to({name: types[name][dtype.name] for name, dtype in dtypes.items()})

    def vary(self, rng: np.random.Generator) -> None:
        """Let other threads go on at other times, in other numbers of blocks."""
        self.seed = int(rng.integers(2**31))
        self.odds, self.blocks = int(rng.choice([2, 6, 30])), int(rng.choice([1, 2, 3]))


class _Kernels:
    def __init__(
        self, emulator: Emulator, source: Source, library: Any, arguments: Mapping[str, str]
    ) -> None:
        self._emulator, self._library, self._arguments = emulator, library, arguments
        named = (name.format(**arguments) for name in source.structs)
        structs = ((name, source.declared.struct(name)) for name in named)
        self._structs = {name.partition("<")[0]: _Struct(struct) for name, struct in structs}
        self._names = source.kernels

    def struct(self, name: str) -> Any:
        return self._structs[name]

    def resident_blocks(self, *_: Any) -> int:
        return self._emulator.blocks

    def __getitem__(self, name: str) -> Any:
        number = self._names.index(name)
        launch: Any = functools.partial(self._launch, f"launch_{number}")
        launch.kernel = SimpleNamespace(ptr=0)
        return launch

    def _launch(self, symbol: str, grid: Any, block: Any, arguments: Any, **_: Any) -> None:
        if Stream.captured is not None:
            again = functools.partial(self._launch, symbol, grid, block, arguments)
            Stream.captured.append(again)
            return
        assert 0 not in grid, "CuPy launches one block in place of none, with gridDim of 1"
        held = [_by_value(argument) for argument in arguments]
        pointers = (ctypes.c_void_p * len(held))(*(array.ctypes.data for array in held))
        emulator, kernel = self._emulator, getattr(self._library, symbol)
        together = emulator.at_once or grid[0]
        rows = grid[1] if len(grid) > 1 else 1
        self._library.let_blocks_stay(emulator.stay)
        self._library.hold_warps_back(emulator.hold)
        self._library.let_threads_wait(ctypes.c_ulonglong(emulator.patience))
        self._library.let_launches_last(ctypes.c_ulonglong(emulator.most_turns))
        for row, first in itertools.product(range(rows), range(0, grid[0], together)):
            emulator.seed += 1
            self._library.begin_with_row(row, rows)
            self._library.begin_with_block(first)
            count = min(together, grid[0] - first)
            odds = emulator.odds or _ODDS[emulator.seed.bit_count() % 2]
            kernel(count, block[0], emulator.seed, odds, pointers)
        _check_guards()


class _Struct:
    """A struct whose pointers are given as arrays of NumPy."""

    def __init__(self, struct: Struct) -> None:
        self._struct, self.dtype, self.nbytes = struct, struct.dtype, struct.nbytes
        self._lengths = {field.name: field.length for field in struct.fields}

    def __call__(self, **values: Any) -> np.ndarray:
        return self._struct(**{name: self._address(name, one) for name, one in values.items()})

    def _address(self, name: str, value: Any) -> Any:
        value = host_array(value)
        if isinstance(value, dict):  # a struct in the struct, which has no array of pointers
            return {key: self._address("", one) for key, one in value.items()}
        if not isinstance(value, np.ndarray):
            return value
        if self._lengths.get(name) is None:
            return np.uintp(value.ctypes.data)
        return [np.uintp(part.ctypes.data) for part in value]


def _by_value(argument: Any) -> np.ndarray:
    """An argument in memory: an array by its address, all else as it is."""
    argument = host_array(argument)
    if isinstance(argument, np.ndarray) and argument.dtype.kind != "V":
        argument = np.uintp(argument.ctypes.data)
    return np.atleast_1d(np.asarray(argument)).copy()


def host_array(value: Any) -> Any:
    """The array of NumPy in one of the stand-in for CuPy; anything else as it is."""
    return getattr(value, "host", value)


def _one_for_each_block(shared: re.Match[str]) -> str:
    """Variables of blocks, in a statement each."""
    return " ".join(
        f"static PerBlock<{shared[1]}{size}> {name}_of_all; auto& {name} = {name}_of_all.own();"
        for name, size in re.findall(_VARIABLE, shared[2])
    )


def _for_threads(source: Source, constants: Mapping[str, int]) -> str:
    """The text of a source as g++ gets it, with other constants."""
    text = re.sub(r"asm volatile\(.*\);", "", source.text())
    text = text.replace("  long long time;\n", "  long long time = 0;\n")
    text = _SIZED_BY_LAUNCH.sub(
        r"static PerBlock<\1[1 << 14]> \2_of_all;\n#define \2 \2_of_all.own()", text
    )
    text = _SHARED.sub(_one_for_each_block, text)
    for name, body in _OF_CLUSTERS.items():
        text = re.sub(rf"( {name}\(.*\) {{\n)(?:.*\n)*?}}\n", rf"\1  {body}\n}}\n", text)
    for name, value in constants.items():
        text, count = re.subn(
            rf"(constexpr (?:int|long long) {name} =) [^;]+;", rf"\1 {value};", text
        )
        assert count == 1, name
    return "\n".join(['#include "cuda.h"', "namespace kernels {", text, "}"])


def _compiled(text: str, names: Iterable[str]) -> ctypes.CDLL:
    lines = [text, "using namespace kernels;"]
    for k, name in enumerate(names):
        lines.append(
            f'extern "C" void launch_{k}(unsigned b, unsigned t, unsigned s, unsigned o, '
            f"void** a) {{ launch_kernel(kernels::{name}, b, t, s, o, a); }}"
        )
    return ctypes.CDLL(str(_library_of("\n".join(lines))))


def _library_of(text: str) -> Path:
    """What g++ makes of kernels; kept for other workers of pytest, and for other runs."""
    library = _kept(".so", _threads(), (HERE / "cuda.h").read_text(), text)
    if not library.exists():
        threads, headers = _object_of_threads(), _folder_of_headers()
        with tempfile.TemporaryDirectory(dir=LIBRARIES) as folder:
            kernels, compiled = Path(folder, "kernels.cpp"), Path(folder, "kernels.o")
            kernels.write_text(text)
            _compile(_SEEN, f"-I{headers}", "-c", kernels, "-o", compiled)
            made = Path(folder, "kernels.so")
            _compile("-shared", "-Wl,-Bsymbolic", compiled, threads, "-o", made)
            made.replace(library)
    os.utime(library)
    return library


def _object_of_threads() -> Path:
    """What g++ makes of threads.cpp, for all libraries."""
    LIBRARIES.mkdir(parents=True, exist_ok=True)
    kept = _kept(".o", _threads(), (HERE / "cuda.h").read_text())
    if not kept.exists():
        with tempfile.TemporaryDirectory(dir=LIBRARIES) as folder:
            made = Path(folder, "threads.o")
            _compile("-O2", "-fno-semantic-interposition", "-c", HERE / "threads.cpp", "-o", made)
            made.replace(kept)
    os.utime(kept)
    for old in sorted(LIBRARIES.glob("*.*o"), key=_last_use, reverse=True)[KEPT:]:
        old.unlink(missing_ok=True)
    return kept


def _folder_of_headers() -> Path:
    """Where cuda.h is, beside what g++ makes of it for all kernels: half a second less for each.

    g++ reads cuda.h itself if what is beside it was made with other options.
    """
    key = hashlib.sha256(repr((_OPTIONS, (HERE / "cuda.h").read_text())).encode()).hexdigest()
    kept = LIBRARIES / f"{key[:32]}.headers"
    if not kept.exists():
        with tempfile.TemporaryDirectory(dir=LIBRARIES) as folder:
            made = Path(folder, "headers")
            made.mkdir()
            header = Path(shutil.copy(HERE / "cuda.h", made))
            _compile(_SEEN, "-x", "c++-header", header, "-o", made / "cuda.h.gch")
            with contextlib.suppress(OSError):  # another worker was first
                made.rename(kept)
    os.utime(kept)
    for old in sorted(LIBRARIES.glob("*.headers"), key=_last_use, reverse=True)[KEPT_HEADERS:]:
        shutil.rmtree(old, ignore_errors=True)
    return kept


def _threads() -> str:
    return (HERE / "threads.cpp").read_text()


def _kept(ending: str, *parts: str) -> Path:
    """The file for what the compiler makes of these texts."""
    return (
        LIBRARIES / f"{hashlib.sha256(repr((_COMMAND, *parts)).encode()).hexdigest()[:32]}{ending}"
    )


def _compile(*arguments: str | Path) -> None:
    subprocess.run([*_COMMAND, *map(str, arguments)], check=True)


def _last_use(library: Path) -> int:
    try:
        return library.stat().st_mtime_ns
    except FileNotFoundError:  # another worker has removed it
        return 0


# -- drivers ---------------------------------------------------------------------------------------


def _cut(values: Any) -> Any:
    """What tensor cores read of float32: 11 bits."""
    return (values.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)


def lead_drivers_here(
    monkeypatch: Any,
    emulators: Mapping[Source, Emulator],
    *modules: Any,
    block: int,
    cp: Any = None,
) -> None:
    """Let drivers take NumPy for CuPy and emulators for their kernels, of 2 blocks of `block`."""
    cp = ArraysOfDevice() if cp is None else cp

    def kernels_for(source: Source, **dtypes: np.dtype) -> _Kernels:
        return emulators[source].kernels_for(**dtypes)

    stand_ins = {
        "cp": cp,
        "kernels_for": kernels_for,
        "blocks_for": lambda _: 2,
        "BLOCK": block,
        "_BLOCK": block,
        "count_matched": count_matched,
        "rough_product": lambda rows, cols: _cut(rows) @ _cut(cols).T,
        "set_unmatched": lambda mates: mates.fill(-1),
        "unmatched": lambda count: cp.full(count, -1, np.int32),
    }
    for module in modules:
        for name in stand_ins.keys() & vars(module).keys():
            monkeypatch.setattr(module, name, stand_ins[name])
    for name in ("set_unmatched", "unmatched"):
        monkeypatch.setattr(memory, name, stand_ins[name])
    monkeypatch.setattr(launches, "cp", cp)
    monkeypatch.setattr(launches, "cupyx", SimpleNamespace(zeros_pinned=np.zeros))
    defaults = {"block": block, "shared": 0, "most": None}
    monkeypatch.setattr(launches.Cooperative.__init__, "__kwdefaults__", defaults)
    monkeypatch.setattr(memory, "require_memory", lambda *_: None)


# -- NumPy in the place of CuPy --------------------------------------------------------------------


class _Array(np.ndarray):
    """An array of NumPy with an address where CuPy's have it."""

    @property
    def data(self) -> Any:  # type: ignore[override]  # as of CuPy
        return SimpleNamespace(ptr=self.ctypes.data, memset_async=self._fill_bytes)

    def get(self, out: Any = None) -> Any:
        if out is None:
            return np.array(self)
        out[...] = self
        return out

    def set(self, values: np.ndarray) -> None:
        self[...] = values

    def _fill_bytes(self, value: int, count: int) -> None:
        self.reshape(-1).view(np.uint8)[:count] = value


class Stream(contextlib.nullcontext[Any]):
    """A stream, and the launches that it captures for a graph."""

    captured: ClassVar[list[Callable[[], None]] | None] = None

    def __init__(self, **_: Any) -> None:
        super().__init__(self)

    def begin_capture(self) -> None:
        Stream.captured = []

    def end_capture(self) -> Any:
        """The graph: it makes the launches each time that it is launched."""
        captured, Stream.captured = Stream.captured or [], None
        return SimpleNamespace(launch=lambda _: [launch() for launch in captured])

    def synchronize(self) -> None:
        """Nothing is left to wait for."""


_GARBAGE, _GUARD = 0xA5, 256  # what new memory holds, and how many bytes no kernel may write
_guarded: weakref.WeakValueDictionary[int, np.ndarray] = weakref.WeakValueDictionary()


def new_array(shape: Any, dtype: Any = float) -> np.ndarray:
    """An array of garbage, with a guard behind it."""
    dtype = np.dtype(dtype)
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    whole = np.full(size + _GUARD, _GARBAGE, np.uint8)
    _guarded[id(whole)] = whole
    return whole[:size].view(dtype).reshape(shape).view(_Array)


def _check_guards() -> None:
    whole = bytes([_GARBAGE]) * _GUARD
    for one in list(_guarded.values()):
        assert one[-_GUARD:].tobytes() == whole, "a kernel has written behind an array"


class ArraysOfDevice:
    """NumPy with arrays that look like CuPy's to a driver."""

    cuda = SimpleNamespace(get_current_stream=Stream, Stream=Stream)
    ndarray = np.ndarray
    empty = staticmethod(new_array)

    @staticmethod
    def empty_like(array: np.ndarray) -> np.ndarray:
        return new_array(array.shape, array.dtype)

    @staticmethod
    def full(shape: Any, value: Any, dtype: Any = None) -> np.ndarray:
        array = new_array(shape, np.asarray(value).dtype if dtype is None else dtype)
        array[...] = value
        return array

    @staticmethod
    def zeros(shape: Any, dtype: Any = float) -> np.ndarray:
        return ArraysOfDevice.full(shape, 0, dtype)

    def __getattr__(self, name: str) -> Any:
        made = getattr(np, name)
        is_function = callable(made) and not isinstance(made, type)
        return functools.partial(_call, made) if is_function else made


def _call(function: Any, *arguments: Any, **named: Any) -> Any:
    result = function(*arguments, **named)
    if isinstance(result, np.ndarray):
        with contextlib.suppress(TypeError):
            return result.view(_Array)
    return result
