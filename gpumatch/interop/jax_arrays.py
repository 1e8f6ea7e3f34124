"""JAX arrays as arrays of NumPy and CuPy, and the way back; `tensors` says what the names are.

JAX makes arrays of 64 bits only where it is told to. So they are made in its context for these,
and keep their type afterwards. Indices and counts are int32, JAX's own type, so that they can be
used without that context. JAX is not imported.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpumatch.numeric.arrays import array_module, array_of, as_array, is_instance

__all__ = ["JaxHome", "device_of", "home_of", "is_own", "on_its_stream", "source_of"]


def is_own(source: Any) -> bool:
    """True for an array of JAX that has values: not for one that is traced."""
    if not is_instance(source, "jax", "Array"):
        return False
    return not isinstance(source, sys.modules["jax"].core.Tracer)


def source_of(array: Any) -> Any:
    """An array of NumPy or CuPy with the same memory; of NumPy if several devices share it.

    bfloat16 and shorter floats, which NumPy does not have, become float32.
    """
    kind = str(array.dtype)
    if "float" in kind and kind not in ("float16", "float32", "float64"):
        array = array.astype(np.float32)
    if len(array.devices()) > 1:
        return np.asarray(array)  # which gathers the parts
    return as_array(array.block_until_ready(), "the JAX array")


@contextlib.contextmanager
def on_its_stream(array: Any) -> Iterator[None]:
    """Let CuPy work on the device of the array.

    `source_of` waits for the array, and DLPack has JAX wait for CuPy, so any stream will do.
    """
    device = _first_device(array)
    if device.platform != "gpu":
        yield
        return
    import cupy

    with cupy.cuda.Device(device.local_hardware_id):
        yield


def device_of(array: Any) -> str:
    return str(_first_device(array))


def home_of(array: Any) -> JaxHome:
    device = _first_device(array)
    return JaxHome(device.platform, device.id)


def _first_device(array: Any) -> Any:
    """The device of an array, or the first of several that share it."""
    return min(array.devices(), key=lambda device: device.id)


@dataclass(frozen=True)
class JaxHome:
    """A device of JAX, by names that can be pickled."""

    platform: str
    number: int

    def array(self, array: Any) -> Any:
        """A JAX array of the same type on the device, with values even while JAX traces."""
        jax = _jax()
        with jax.ensure_compile_time_eval(), _in_64_bits(jax):
            if isinstance(array, np.ndarray) or array.size == 0:  # DLPack is for memory
                return jax.device_put(array_of(np, array), self._device(jax))
            return jax.numpy.from_dlpack(array_module(array).ascontiguousarray(array))

    def indices(self, array: Any) -> Any:
        """A JAX array of indices or counts, as int32."""
        return self.array(array.astype(np.int32) if array.dtype == np.int64 else array)

    def sparse(self, matrix: Any) -> Any:
        """A BCSR of a CSR matrix."""
        from jax.experimental.sparse import BCSR

        offsets = self.array if matrix.nnz > np.iinfo(np.int32).max else self.indices
        parts = self.array(matrix.data), self.indices(matrix.indices), offsets(matrix.indptr)
        return BCSR(parts, shape=matrix.shape)

    def _device(self, jax: Any) -> Any:
        """The device; the first one where a pickle finds no such device."""
        try:
            devices = jax.local_devices(backend=self.platform)
        except RuntimeError:
            devices = jax.local_devices(backend="cpu")
        return next((device for device in devices if device.id == self.number), devices[0])


def _jax() -> Any:
    """JAX, which is loaded unless a result comes out of a pickle."""
    import jax.experimental

    return jax


def _in_64_bits(jax: Any) -> Any:
    """JAX's context for types of 64 bits, which has moved."""
    return jax.enable_x64(True) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64()
