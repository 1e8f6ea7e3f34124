"""Costs that a device function of the caller computes, in CUDA C++: device_functions.cu.

The function is compiled into the kernels, with no operation fused that it does not fuse itself.
Device memory: what the caller's arrays take, and the results.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import cupy as cp
import numpy as np

from gpumatch.contracts import Costs
from gpumatch.cuda.assignment.points.tiles import Tiles
from gpumatch.cuda.kernels import Source, blocks_for, kernels_for

__all__ = ["DeviceFunction", "FunctionLines"]

SOURCE = Source(
    "assignment/points/device_functions.cu",
    ("fill_costs", "costs_at", "find_cheapest"),
    structs=("Given",),
    options=("--fmad=false",),
)
_BLOCK, _PARTS = SOURCE.constant("kBlock"), SOURCE.constant("kParts")
_BEGIN, _END = "// called: begin\n", "// called: end\n"
MOST = 32
"""Columns that a search finds for a row: the lanes of a warp."""
TYPES = {
    "bool": "bool", "int8": "signed char", "uint8": "unsigned char", "int16": "short",
    "uint16": "unsigned short", "int32": "int", "uint32": "unsigned", "int64": "long long",
    "uint64": "unsigned long long", "float32": "float", "float64": "double",
}  # fmt: skip
"""What dtypes are called in C++."""


@dataclass(frozen=True, eq=False)
class _CallersSource(Source):
    """The kernels with the caller's function in them."""

    function: str = ""
    call: str = ""

    def text(self) -> str:
        own = super().text()
        before, after = own[: own.index(_BEGIN)], own[own.index(_END) :]
        return f'#line 1 "source"\n{self.function}\n#line 1 "gpumatch"\n{before}{self.call}{after}'


@functools.lru_cache(maxsize=64)
def _source(function: str, cost: str, parts: tuple[str, ...]) -> _CallersSource:
    """The kernels for costs of a type and arrays of some types."""
    given = "".join(
        f", reinterpret_cast<const {part}*>(given.parts[{k}])" for k, part in enumerate(parts)
    )
    call = (
        f"using Cost = {cost};\n"
        "__device__ inline Cost cost_of(const Given& given, long long i, long long j) {\n"
        f'#line 1 "call of cost"\n  return static_cast<Cost>(cost(i, j{given}));\n}}\n'
    )
    named = {field.name: getattr(SOURCE, field.name) for field in dataclasses.fields(SOURCE)}
    return _CallersSource(**named, function=function, call=call)


@dataclass(frozen=True)
class DeviceFunction:
    """A function of a row and a column, compiled for the current device.

    Attributes
    ----------
    source : Source
    signature : str
        How the function must begin, for messages.
    parts : tuple of arrays
        What it reads.
    number : dtype
        int64 or float64: the type of the costs in results.
    rows, cols : int64 arrays, optional
        The function's numbers of the rows and columns, if they are some of all.
    is_turned, is_negated : bool
        True if a search takes columns for rows, or the negated costs.
    low, high : int or float
        What costs must be within in a search.
    """

    source: Source
    signature: str
    parts: tuple[Any, ...]
    number: Any
    rows: Any = None
    cols: Any = None
    is_turned: bool = False
    is_negated: bool = False
    low: Any = 0
    high: Any = 0

    @classmethod
    def of(cls, text: str, dtype: Any, arrays: Sequence[Any]) -> DeviceFunction:
        """The function of a source. Raises ValueError or TypeError if it has none."""
        if len(arrays) > _PARTS:
            raise ValueError(f"arrays must be at most {_PARTS}; got {len(arrays)}")
        parts = tuple(cp.ascontiguousarray(cp.asarray(part)) for part in arrays)
        for k, part in enumerate(parts):
            if part.dtype.name not in TYPES:
                raise TypeError(f"arrays[{k}] must hold numbers; got dtype {part.dtype}")
        if dtype.name not in TYPES:
            raise TypeError(f"costs of a source cannot be {dtype}")
        cost, types = TYPES[dtype.name], tuple(TYPES[part.dtype.name] for part in parts)
        taken = "".join(f", const {name}* part{k}" for k, name in enumerate(types))
        signature = f"__device__ {cost} cost(long long i, long long j{taken})"
        number = np.dtype(np.float64 if dtype.kind == "f" else np.int64)
        return cls(_source(text, cost, types), signature, parts, number)

    def block(self, rows: slice, cols: slice) -> Any:
        """The costs of ranges of the function's rows and columns."""
        shape = rows.stop - rows.start, cols.stop - cols.start
        values = cp.empty(shape, self.number)
        if values.size:
            lengths = rows.start, shape[0], cols.start, shape[1]
            self._launch("fill_costs", values.size, *map(np.int32, lengths), values)
        return values

    def at(self, rows: Any, cols: Any) -> Any:
        """The costs of pairs."""
        values = cp.empty(rows.size, self.number)
        if rows.size:
            pairs = (cp.ascontiguousarray(side, np.int64) for side in (rows, cols))
            self._launch("costs_at", rows.size, *pairs, np.int64(rows.size), values)
        return values

    def cheapest(self, price: Any, bound: Any, count: int) -> tuple[Any, Any]:
        """The columns with the least costs less prices below the bounds, and these numbers."""
        shape = bound.size, count
        found, values = cp.full(shape, -1, np.int32), cp.empty(shape, self.number)
        stray = cp.zeros(1, np.int32)
        if found.size:
            self._launch(
                "find_cheapest",
                32 * bound.size,
                *(np.int32(bound.size), np.int32(price.size)),
                *(cp.ascontiguousarray(side, self.number) for side in (price, bound)),
                *(np.int32(count), self.number.type(self.low), self.number.type(self.high)),
                *(stray, found, values),
            )
        if int(stray[0]):
            raise ValueError(
                f"source returns costs that are not from {self.low} to {self.high}, which low and "
                "high say"
            )
        return found, values

    def _launch(self, kernel: str, threads: int, *arguments: Any) -> None:
        kernels = kernels_for(self.source)
        parts: list[Any] = [part.data.ptr for part in self.parts]
        given = kernels.struct("Given")(
            parts=[*parts, *[0] * (_PARTS - len(parts))],
            rows=self.rows,
            cols=self.cols,
            is_turned=int(self.is_turned),
            is_negated=int(self.is_negated),
        )
        try:
            launch = kernels[kernel]
        except Exception as exc:
            if not hasattr(exc, "get_message"):  # only a CompileException of CuPy has it
                raise
            raise ValueError(
                f"source does not compile. It must define `{self.signature}`, or a function that "
                f"takes the same. The compiler says:\n{exc.get_message()}"
            ) from None
        launch((blocks_for(threads),), (_BLOCK,), (given, *arguments))


class FunctionLines(Tiles):
    """The search in all lines, by a kernel that computes the costs and keeps none."""

    is_exact = True

    def __init__(self, costs: Costs, function: DeviceFunction) -> None:
        super().__init__(costs)
        self.function = function

    def least(self, count: int, bound: Any) -> tuple[Any, Any]:
        """As of a `Search`."""
        count = min(count, self.costs.shape[1])
        if count > MOST:
            return super().least(count, bound)
        return self.function.cheapest(self.price, bound, count)
