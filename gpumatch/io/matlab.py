"""Matrices in MATLAB's files up to version 7.2, as the SuiteSparse collection has them.

Only what may be a matrix is read: numeric and sparse variables, and the field A of the struct
Problem. SciPy reads all, but believes what a file says of its own sizes, and crashes where it lies.

References
----------
MathWorks: MAT-File Format, version 5, R2019b.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.sparse import csc_array

__all__ = ["parse_matlab"]

Order = Literal["little", "big"]
_HEADER = 128
_MATRIX, _COMPRESSED = 14, 15  # types of elements
_NUMBERS = {
    **{1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4"},
    **{7: "f4", 9: "f8", 12: "i8", 13: "u8"},
}
_STRUCT, _SPARSE = 2, 5  # classes of matrices
_DENSE = dict(zip(range(6, 16), ("f8", "f4", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")))
_IS_COMPLEX = 0x0800


class _Element(NamedTuple):
    kind: int
    data: memoryview


class _Matrix(NamedTuple):
    """What is common to matrices of all classes, and the elements that are not."""

    kind: int
    is_complex: bool
    shape: tuple[int, ...]
    name: str
    parts: list[_Element]


def parse_matlab(content: bytes, max_bytes: int) -> Any:
    """The matrix of the collection (Problem.A), or else the only matrix."""
    if content.startswith((b"\x89HDF", b"MATLAB 7.3")):
        raise ValueError("is of MATLAB 7.3 (HDF5): save it with -v7")
    mark = content[_HEADER - 4 : _HEADER]
    if mark not in (b"\x00\x01IM", b"\x01\x00MI"):
        raise ValueError("is no MATLAB file of version 5 to 7.2")
    order: Order = "little" if mark.endswith(b"IM") else "big"
    variables = [_matrix(data, order) for data in _variables(content, order, max_bytes)]
    for variable in variables:
        if variable.name == "Problem":
            return _values(_field(variable, "A", order), order)
    matrices = [variable for variable in variables if variable.kind in (_SPARSE, *_DENSE)]
    if len(matrices) != 1:
        names = ", ".join(matrix.name for matrix in matrices)
        raise ValueError(f"has {len(matrices)} matrices, expected one: {names}")
    return _values(matrices[0], order)


def _variables(content: bytes, order: Order, max_bytes: int) -> Iterator[memoryview]:
    """The data of each variable, decompressed as long as all take at most `max_bytes`."""
    room = max_bytes
    for element in _elements(memoryview(content)[_HEADER:], order):
        if element.kind == _COMPRESSED:
            inflate = zlib.decompressobj()
            inflated = inflate.decompress(element.data, room)
            if not inflate.eof and len(inflated) < room:
                raise ValueError("a compressed variable is cut off")
            room -= len(inflated)
            if room <= 0:
                raise ValueError(f"more than max_bytes = {max_bytes} bytes of content")
            element = next(_elements(memoryview(inflated), order), element)
        if element.kind != _MATRIX:
            raise ValueError(f"has a variable of type {element.kind}, expected a matrix")
        yield element.data


def _elements(data: memoryview, order: Order) -> Iterator[_Element]:
    """The elements, one after the other, that these bytes hold."""
    at, end = 0, len(data)
    while at + 8 <= end:
        kind, size = (int.from_bytes(data[k : k + 4], order) for k in (at, at + 4))
        if kind >> 16:  # the short form: size and type in four bytes, data in four
            kind, size, begin, after = kind & 0xFFFF, kind >> 16, at + 4, at + 8
            room = 4
        else:
            begin, room = at + 8, end - at - 8
            after = begin + (size if kind == _COMPRESSED else -8 * (-size // 8))
        if size > room:
            raise ValueError(f"promises {size} bytes in {room}")
        yield _Element(kind, data[begin : begin + size])
        at = after


def _matrix(data: memoryview, order: Order) -> _Matrix:
    parts = list(_elements(data, order))
    if len(parts) < 3:
        raise ValueError("a matrix has no size or no name")
    flags = int.from_bytes(parts[0].data[:4], order)
    shape = tuple(_array(parts[1], order).tolist())
    if len(shape) < 2 or min(shape) < 0:
        raise ValueError(f"a matrix has the shape {shape}")
    name = bytes(parts[2].data).decode("latin-1")
    return _Matrix(flags & 0xFF, bool(flags & _IS_COMPLEX), shape, name, parts[3:])


def _field(struct: _Matrix, wanted: str, order: Order) -> _Matrix:
    """The matrix in this field of a struct."""
    if struct.kind == _STRUCT and math.prod(struct.shape) == 1 and len(struct.parts) >= 2:
        (width,) = _array(struct.parts[0], order).tolist()[:1] or (0,)
        names = bytes(struct.parts[1].data)
        for number, field in enumerate(struct.parts[2:]):
            name = names[number * width : (number + 1) * width].partition(b"\0")[0]
            if name.decode("latin-1") == wanted and field.kind == _MATRIX:
                return _matrix(field.data, order)
    raise ValueError(f"its {struct.name} has no matrix {wanted}")


def _values(matrix: _Matrix, order: Order) -> Any:
    """The matrix as a dense or sparse array. Whoever makes it canonical checks its entries."""
    kind, is_complex, shape, name, parts = matrix
    index = 2 if kind == _SPARSE else 0
    if kind not in (_SPARSE, *_DENSE) or len(parts) < index + 1 + is_complex:
        raise ValueError(f"{name or 'A'} is no matrix of numbers")
    values = _array(parts[index], order)
    if is_complex:
        values = values + 1j * _array(parts[index + 1], order)
    if kind == _SPARSE:
        rows, pointers = (_array(part, order) for part in parts[:2])
        stored = int(pointers[-1]) if len(pointers) == shape[1] + 1 else -1
        if not 0 <= stored <= min(len(rows), len(values)):
            raise ValueError(f"{name or 'A'} promises more entries than it has")
        return csc_array((values[:stored], rows[:stored], pointers), shape=shape)
    if math.prod(shape) != len(values):
        raise ValueError(f"{name or 'A'} promises shape {shape}, but has {len(values)} values")
    dense = values.reshape(shape, order="F")
    return dense if is_complex else dense.astype(_DENSE[kind])


def _array(element: _Element, order: Order) -> np.ndarray:
    """The numbers of an element, in this machine's byte order."""
    if element.kind not in _NUMBERS:
        raise ValueError(f"has an element of type {element.kind} where numbers are expected")
    dtype = np.dtype(_NUMBERS[element.kind]).newbyteorder("<" if order == "little" else ">")
    if len(element.data) % dtype.itemsize:
        raise ValueError(f"has {len(element.data)} bytes of {dtype.name}")
    return np.frombuffer(element.data, dtype).astype(dtype.newbyteorder("="))
