"""The ways into the library: a function each, which draws a problem, solves it and checks it."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tests.fuzz.doors import (
    assign,
    batches,
    bottleneck,
    decompositions,
    distributed,
    files,
    flows,
    general,
    general_weights,
    malformed,
    matching,
    metamorphic,
    networks,
    points,
    products,
    scipy_names,
    small_flows,
    solves,
    tensors,
)
from tests.fuzz.trials import Trial


class Door(NamedTuple):
    function: Callable[[Trial], None]
    weight: float
    backends: tuple[str, ...] = ("cpu", "cuda")
    needs: str = "numpy"
    """The library without which there is nothing to test."""

    def is_open(self, backend: str) -> bool:
        return backend in self.backends and importlib.util.find_spec(self.needs) is not None


CPU = ("cpu",)
DOORS = {
    "assign": Door(assign.assign, 22),
    "assign from initial": Door(assign.from_initial, 6),
    "assign from hostile initial": Door(assign.from_hostile_initial, 4),
    "assign stopped": Door(assign.stopped, 8),
    "assign large integers": Door(assign.large_integers, 3),
    "metamorphic": Door(metamorphic.metamorphic, 14),
    "linear_sum_assignment": Door(scipy_names.linear_sum_assignment, 8),
    "linear_sum_assignment with a limit": Door(scipy_names.limited, 6),
    "csgraph": Door(scipy_names.csgraph, 5),
    "batch": Door(batches.batch, 9),
    "points": Door(points.points, 8),
    "torch": Door(tensors.tensors, 4, needs="torch"),
    "bottleneck": Door(bottleneck.bottleneck, 5),
    "transport": Door(flows.transport, 9, CPU),
    "small transport": Door(small_flows.small_transport, 9, CPU),
    "b-matching": Door(flows.b_matching, 3, CPU),
    "general matching": Door(general.maximum_matching, 4, CPU, "networkx"),
    "general weights": Door(general_weights.maximum_weight_matching, 4, needs="networkx"),
    "maximum_matching": Door(matching.maximum_matching, 7),
    "decompositions": Door(decompositions.decompositions, 4),
    "products": Door(products.products, 6),
    "solves": Door(solves.solves, 4, CPU),
    "networkx": Door(networks.networks, 3, CPU, "networkx"),
    "files": Door(files.files, 5, CPU),
    "bytes of files": Door(files.damaged, 3, CPU),
    "malformed": Door(malformed.malformed, 5, CPU),
    "distributed": Door(distributed.distributed, 2, CPU, "mpi4py"),
}


def drawn_door(trial: Trial) -> str:
    """The name of a door that is open.

    It is drawn apart, so that a seed has the same problem if its door is given.
    """
    names = [name for name, door in DOORS.items() if door.is_open(trial.backend)]
    weights = np.array([DOORS[name].weight for name in names])
    return str(np.random.default_rng((trial.seed, 1)).choice(names, p=weights / weights.sum()))
