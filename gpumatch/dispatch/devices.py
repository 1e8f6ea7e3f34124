"""The check for a GPU to run on, and the reason if there is none."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import sys

_DRIVER = "libcuda.so.1"


def why_no_cuda() -> str | None:
    """None if a GPU can be used, else the reason why not, and what would help."""
    if "cupy" not in sys.modules and importlib.util.find_spec("cupy") and not _has_driver():
        return f"no NVIDIA GPU answers ({_DRIVER} is not found): install the NVIDIA driver"
    try:
        import cupy
    except ImportError as exc:
        return f"CuPy is missing ({exc}): pip install 'gpumatch[cuda13]' (or cuda12)"
    except OSError as exc:  # CuPy makes a folder for its kernels when it is imported
        return f"CuPy cannot be imported ({exc}): set CUPY_CACHE_DIR to a folder it can write to"
    try:
        if cupy.cuda.runtime.getDeviceCount() > 0:
            return None
        return "there is no NVIDIA GPU on this machine"
    except cupy.cuda.runtime.CUDARuntimeError as exc:
        return f"no NVIDIA GPU answers ({exc}): install the NVIDIA driver"


@functools.cache
def _has_driver() -> bool:
    """False if CuPy would not find the driver. The check saves its import, on Linux only."""
    if sys.platform != "linux":
        return True
    try:
        ctypes.CDLL(_DRIVER)
    except OSError:
        return False
    return True
