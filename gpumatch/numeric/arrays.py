"""Arrays of NumPy, of CuPy and of libraries with their protocols, recognised without imports.

A library that is not loaded has made no array, so only libraries in `sys.modules` are looked at. A
library that another thread is importing is there too, but may still lack some names. A missing
class has made no array either, because every import of the library waits until it is complete.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

PROTOCOLS = ("__array__", "__array_interface__", "__cuda_array_interface__", "__dlpack__")
"""What arrays of other libraries have, by which their memory is read."""
_DLPACK_CUDA = (2, 13)  # kDLCUDA, kDLCUDAManaged


def as_array(values: Any, name: str) -> Any:
    """`values` as an array of NumPy or CuPy, on their device; errors quote `name`.

    Raises
    ------
    TypeError
        If `values` is not an array and can't become one, or is or holds a masked array.
    ValueError
        If a pandas data frame has missing values that its types have no number for.
    """
    if type(values) is np.ndarray:
        return values
    refuse_masks(values, name)
    if isinstance(values, np.ndarray):
        return values
    if hasattr(values, "__cuda_array_interface__"):
        import cupy

        return cupy.asarray(values)
    if hasattr(values, "__dlpack__") and not hasattr(values, "__array__"):
        return from_dlpack(values)
    if hasattr(values, "to_numpy"):
        return _of_frame(values, name)
    try:
        return np.asarray(values)
    except ValueError as exc:
        raise TypeError(f"{name}: can't make an array of {type(values).__name__}: {exc}") from exc


def refuse_masks(values: Any, name: str) -> None:
    """Raise TypeError if `values` is a masked array, or a list that holds one."""
    if isinstance(values, np.ma.MaskedArray):
        raise TypeError(
            f"{name}: got a masked array: fill it, with inf to forbid a pair, or with 0 where "
            "there is no entry"
        )
    if isinstance(values, (list, tuple)) and values and not isinstance(values[0], (int, float)):
        for part in values:
            refuse_masks(part, name)


def _of_frame(frame: Any, name: str) -> Any:
    """An array of a data frame or of one of its columns, in a type that holds all columns.

    NumPy alone would make an array of objects of the nullable types of pandas.
    """
    given: Any = getattr(frame, "dtypes", ())
    kinds = {given} if hasattr(given, "kind") else {*given}
    numbers = [getattr(kind, "numpy_dtype", kind) for kind in kinds]
    if not numbers or not all(isinstance(n, np.dtype) and n.kind in "biuf" for n in numbers):
        return np.asarray(frame)
    number = np.result_type(*numbers)
    if number.kind == "f" and all(n.kind in "biu" for n in numbers):
        raise TypeError(f"{name}: no integer type holds columns of {sorted(map(str, kinds))}")
    if any(hasattr(kind, "numpy_dtype") for kind in kinds):
        missing = np.asarray(frame.isna())
        if missing.any():
            place = np.unravel_index(int(missing.argmax()), missing.shape)
            raise ValueError(f"{name}: a value is missing (NA), first at {[*map(int, place)]}")
    return np.asarray(frame.to_numpy(dtype=number))


def has_length(values: Any) -> bool:
    """True for a sequence, and for an array of at least one dimension.

    Arrays without dimensions have `__len__` too. They are numbers. Arrays of some libraries have no
    `__len__`, but a protocol.
    """
    is_one = hasattr(values, "__len__") or any(hasattr(values, name) for name in PROTOCOLS)
    return is_one and getattr(values, "ndim", 1) != 0


def from_dlpack(values: Any) -> Any:
    if values.__dlpack_device__()[0] in _DLPACK_CUDA:
        import cupy

        return cupy.from_dlpack(values)
    return np.from_dlpack(values)


def device_array() -> Any:
    """CuPy's class of arrays; None if CuPy is not loaded."""
    return getattr(sys.modules.get("cupy"), "ndarray", None)


def is_sparse(source: Any) -> bool:
    """True if `source` is a sparse array of SciPy or cupyx. It imports neither."""
    for name in ("scipy.sparse", "cupyx.scipy.sparse"):
        issparse = getattr(sys.modules.get(name), "issparse", None)
        if issparse is not None and issparse(source):
            return True
    return False


def is_instance(source: Any, module: str, *names: str) -> bool:
    """isinstance() for classes of a module that may not be loaded. If it is not, this is False."""
    loaded = sys.modules.get(module)
    return loaded is not None and any(
        isinstance(source, getattr(loaded, name, ())) for name in names
    )


def array_module(array: Any) -> Any:
    """NumPy for a host array, CuPy for a device array."""
    return np if isinstance(array, np.ndarray) else sys.modules["cupy"]


def index_array(values: Any, name: str) -> Any:
    """`values` as a one-dimensional integer array on their device; errors quote `name`."""
    array = as_array(values, name)
    if array.ndim != 1:
        raise ValueError(f"{name} must have 1 dimension; got {array.ndim}")
    if array.size == 0 and not hasattr(values, "dtype"):
        array = array.astype(np.int32)  # [] says nothing of its type
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} must be integers; got dtype {array.dtype}")
    return array


def array_of(xp: Any, values: Any) -> Any:
    """`values` as an array of `xp`, copied between host and device if necessary."""
    if xp is np and hasattr(values, "__cuda_array_interface__"):
        import cupy

        return cupy.asnumpy(values)
    return xp.asarray(values)


def exactly(array: Any, dtype: Any) -> Any:
    """The array as a contiguous array of `dtype` for kernels: the array itself if it is one."""
    if isinstance(array, np.ndarray):
        flags = array.flags
        is_so = flags.c_contiguous and flags.aligned and array.dtype == dtype
        return for_kernels(array) if is_so else np.array(array, dtype, order="C")
    return array_module(array).ascontiguousarray(array, dtype=dtype)


def for_kernels(array: np.ndarray) -> np.ndarray:
    """The array itself, or a writeable view of a read-only one.

    Numba would compile each kernel once more for read-only arrays. Kernels do not write to a
    caller's arrays.
    """
    return array if array.flags.writeable else np.asarray(_Writeable(array))


class _Writeable:
    """The memory of an array as one that may be written to. It keeps the array."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array
        facts = array.__array_interface__
        self.__array_interface__ = {**facts, "data": (facts["data"][0], False)}


def any_true(marks: Any) -> bool:
    """True if a bool array has any True."""
    if isinstance(marks, np.ndarray):
        return bool(marks.any())
    # CuPy has compiled maxima of bytes. It compiles any() for each class of sizes, for seconds
    # each.
    return marks.size != 0 and bool(marks.view(np.uint8).max())


def first_true(marks: Any) -> int | None:
    """The index of the first True; None if there is none."""
    return int(marks.argmax()) if any_true(marks) else None


def hint_of_type(dtype: Any) -> str:
    """What an error about numbers of a type that NumPy does not have says further."""
    return ": float32 holds them exactly" if str(dtype) == "bfloat16" else ""


def count_matched(mates: np.ndarray) -> int:
    """Count the mates of a side on the host that are vertices. Other marks are below 0."""
    return int(np.count_nonzero(mates >= 0))
