"""The auction of a core whose arrays are on the host, held on the device but for the last rows.

The host goes on from its flow: of few rows, it holds bids sooner.
"""

from __future__ import annotations

import dataclasses

import cupy as cp
import numpy as np

from gpumatch.contracts.transport import TransportTask
from gpumatch.cuda.transport.sparse.auction import Auction, Tuning
from gpumatch.cuda.transport.sparse.network import Network

__all__ = ["Bids"]

MOST = Tuning(few=1 / 256, launches=4, given=2.0**-12)
"""It ends with more rows that wait, and a finer epsilon, than where pivots follow at once."""
_ARRAYS = ("supply", "demand", "indptr", "indices", "data")


class Bids:
    """`gpumatch.contracts.transport.CoreAuction` of a core without limits, all of which is shipped.

    Parameters
    ----------
    core : TransportTask
        In CSR, with duals and a flow. Each column has a demand.
    epsilon : float
        The first epsilon.
    """

    def __init__(self, core: TransportTask, epsilon: float, tuning: Tuning | None = None) -> None:
        assert core.initial is not None
        arrays = {name: cp.asarray(getattr(core, name)) for name in _ARRAYS}
        self._network = Network(dataclasses.replace(core, **arrays))
        self._network.ship(cp.asarray(core.flow))
        price = cp.asarray(-core.initial[1].astype(np.float64))
        self._auction = Auction(self._network, price, core.control, tuning or MOST)
        self.epsilon = epsilon
        self.price, self.flow = core.initial[1].astype(np.float64), core.flow

    def run(self) -> None:
        """Hold all phases; raises Stopped."""
        try:
            self.epsilon = self._auction.run(self.epsilon)
        finally:
            self.price = -self._auction.price.get()
            self.flow = self._network.flow_of_entries().get()
