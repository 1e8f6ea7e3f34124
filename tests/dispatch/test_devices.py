"""Whether there is a GPU, and what is said where there is none."""

from __future__ import annotations

import sys

import pytest

import gpumatch as gm
from gpumatch.dispatch import devices
from gpumatch.dispatch.devices import why_no_cuda


def test_without_cupy_the_package_to_install_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)  # import cupy raises ImportError
    with pytest.raises(RuntimeError, match=r"CuPy is missing .*pip install 'gpumatch\[cuda13\]'"):
        gm.maximum_matching([[1]], backend="cuda")


def test_a_cupy_that_cannot_write_its_cache_is_no_gpu(monkeypatch, tmp_path):
    (tmp_path / "cupy.py").write_text("raise PermissionError(13, 'Permission denied', '/nowhere')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    monkeypatch.setattr(devices, "_has_driver", lambda: True)
    reason = why_no_cuda()
    assert reason is not None
    assert "'/nowhere'" in reason
    assert "CUPY_CACHE_DIR" in reason


def test_cupy_is_not_imported_where_there_is_no_driver(monkeypatch, tmp_path):
    (tmp_path / "cupy.py").write_text("raise AssertionError")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    monkeypatch.setattr(devices, "_DRIVER", "libof-nothing.so.1")
    devices._has_driver.cache_clear()
    reason = why_no_cuda()
    devices._has_driver.cache_clear()
    wanted = "no NVIDIA GPU answers (libof-nothing.so.1 is not found): install the NVIDIA driver"
    assert reason == wanted


class FakeRuntime:
    """What `why_no_cuda` asks of cupy.cuda.runtime."""

    class CUDARuntimeError(RuntimeError):
        pass

    def __init__(self, devices):
        self.devices = devices

    def getDeviceCount(self):  # CuPy's name
        if self.devices is None:
            raise self.CUDARuntimeError("cudaErrorInsufficientDriver")
        return self.devices


@pytest.mark.parametrize(
    ("devices", "reason"),
    [
        (1, None),
        (0, "there is no NVIDIA GPU on this machine"),
        (None, "no NVIDIA GPU answers (cudaErrorInsufficientDriver): install the NVIDIA driver"),
    ],
)
def test_why_no_cuda_tells_apart_what_is_missing(devices, reason, monkeypatch):
    cupy = pytest.importorskip("cupy")
    monkeypatch.setattr(cupy.cuda, "runtime", FakeRuntime(devices))
    assert why_no_cuda() == reason


@pytest.mark.parametrize(
    ("platform", "driver", "is_there"),
    [("linux", "libc.so.6", True), ("linux", "libnone.so.1", False), ("win32", "libnone", True)],
)
def test_whether_there_is_a_driver_is_asked_on_linux_only(platform, driver, is_there, monkeypatch):
    monkeypatch.setattr(devices, "_DRIVER", driver)
    monkeypatch.setattr(devices.sys, "platform", platform)
    devices._has_driver.cache_clear()
    assert devices._has_driver() is is_there
    devices._has_driver.cache_clear()
