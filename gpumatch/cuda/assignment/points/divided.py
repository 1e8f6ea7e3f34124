"""A search whose rows are divided among all GPUs of the machine.

Each GPU has a copy of the columns' points, its share of the rows' points, and lists of its own. It
is led by a thread, because a search waits for its device in between. Prices and bounds go out, and
what is found comes back: some hundred bytes a row, by copies from device to device. Products take
up to 4 GiB on each.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import cupy as cp
import numpy as np

from gpumatch.contracts import Costs, Points
from gpumatch.cuda.assignment.points.products import SHARED, lines_of
from gpumatch.cuda.assignment.points.tiles import Tiles

__all__ = ["Divided", "devices_for"]


def devices_for(nrows: int) -> list[int]:
    """The current GPU and all others that it may copy to and from; each gets a row at least."""
    runtime = cp.cuda.runtime
    own, count = runtime.getDevice(), runtime.getDeviceCount()
    if count == 1:
        return [own]
    others = (k for k in range(count) if k != own and runtime.deviceCanAccessPeer(own, k))
    return [own, *others][: max(nrows, 1)]


@functools.cache
def thread_of(number: int) -> ThreadPoolExecutor:
    """A thread that is kept, because cuBLAS takes long to begin in a new one."""
    return ThreadPoolExecutor(1, f"gpumatch-device-{number}")


class _Share(NamedTuple):
    """What one GPU has of the rows."""

    device: int
    rows: slice
    search: Tiles


class Divided:
    """The search of all rows by `lines_of` on several GPUs, with the methods of `Tiles`."""

    def __init__(self, costs: Costs, points: Points, devices: list[int]) -> None:
        self.devices = devices
        bounds = np.linspace(0, costs.shape[0], len(devices) + 1).astype(np.int64).tolist()
        ranges = [slice(*ends) for ends in itertools.pairwise(bounds)]

        def share(device: int, rows: slice) -> _Share:
            own = points._replace(rows=points.rows[rows])
            if points.row_offset is not None:
                own = own._replace(row_offset=points.row_offset[rows])
            here = own._replace(
                **{
                    name: self._brought(getattr(own, name))
                    for name in ("rows", "cols", "row_offset", "col_offset")
                }
            )
            return _Share(device, rows, lines_of(costs.of_points(here), SHARED))

        self.shares = self._on_each(share, ranges)

    @property
    def is_exact(self) -> bool:
        """As of `Tiles`."""
        return all(share.search.is_exact for share in self.shares)

    def set_prices(self, price: Any) -> None:
        """As of `Tiles`."""
        self._of_shares(lambda share: share.search.set_prices(self._brought(price)))

    def least(self, count: int, bound: Any) -> tuple[Any, Any]:
        """As of `Tiles`."""
        found = self._of_shares(
            lambda share: share.search.least(count, self._brought(bound[share.rows]))
        )
        cols, values = (self._gathered(parts) for parts in zip(*found))
        return cols, values

    def nearest(self, count: int, bound: Any) -> Any:
        """As of `Tiles`."""
        return self._gathered(
            self._of_shares(
                lambda share: share.search.nearest(count, self._brought(bound[share.rows]))
            )
        )

    def least_of_rows(self) -> Any:
        """As of `Tiles`."""
        return self._gathered(self._of_shares(lambda share: share.search.least_of_rows()))

    def _of_shares(self, function: Callable[[_Share], Any]) -> list[Any]:
        return self._on_each(lambda _, share: function(share), self.shares)

    def _on_each(self, function: Callable[[int, Any], Any], parts: list[Any]) -> list[Any]:
        """Call a function of each device and its part, at the same time; it ends on the device."""
        cp.cuda.get_current_stream().synchronize()  # threads have streams of their own

        def call(device: int, part: Any) -> Any:
            with cp.cuda.Device(device):
                result = function(device, part)
                cp.cuda.get_current_stream().synchronize()
                return result

        every = [
            thread_of(number).submit(call, device, part)
            for number, (device, part) in enumerate(zip(self.devices, parts))
        ]
        return [one.result() for one in every]

    @staticmethod
    def _brought(array: Any) -> Any:
        """An array on the current device: itself, or a copy from another one."""
        if array is None or array.device.id == cp.cuda.runtime.getDevice():
            return array
        return array.copy()

    def _gathered(self, parts: Any) -> Any:
        """The parts of all devices, one after the other, on the first."""
        return cp.concatenate([self._brought(part) for part in parts])
