"""What ends the program: a rank that dies, and Ctrl-C in the terminal."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path
from unittest import mock

import numpy as np
from scipy.sparse import csr_array

import graphs
from gpumatch import distributed
from gpumatch.distributed import nccl
from gpumatch.distributed.communicator import Communicator
from graphs import costs as families
from tests.distributed.ranks.checks import share


def killed(comm):
    """The last rank dies at once in the middle of a search."""
    costs = share(families.make("machol_wien", 16, 16), comm)

    def die(progress):
        if comm.rank == comm.size - 1 and progress.matched > 1:
            print("rank is dead", flush=True)
            os.kill(os.getpid(), signal.SIGKILL)

    yield "killed"
    distributed.assign(costs, comm=comm, callback=die)
    print("survived")


def killed_on_devices(comm):
    """The same with a GPU a rank."""
    graph = share(csr_array(graphs.make("rope", 4000, seed=1)), comm)

    def die(progress):
        if comm.rank == comm.size - 1 and progress.phase > 1:
            print("rank is dead", flush=True)
            os.kill(os.getpid(), signal.SIGKILL)

    yield "killed"
    distributed.maximum_matching(graph, comm=comm, backend="cuda", callback=die)
    print("survived")


def killed_in_nccl(comm):
    """The last rank dies before a collective of NCCL in which all others are by then."""
    costs = share(families.make("uniform_float", 400, 400, seed=1).astype(np.float32), comm)

    def die(*_):
        time.sleep(1)
        print("rank is dead", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)

    names = ("allreduce", "broadcast", "gather", "exchange") if comm.rank == comm.size - 1 else ()
    yield "killed"
    with (
        mock.patch.multiple(nccl.Links, **dict.fromkeys(names, die))
        if names
        else contextlib.nullcontext()
    ):
        distributed.assign(costs, comm=comm, backend="cuda")
    print("survived")


def failed_ahead(comm):
    """The last rank fails while others may wait on their GPUs for what it should have brought."""
    yield "failed"
    with Communicator(comm) as world:
        if comm.rank == comm.size - 1:
            world._ahead.append((None, None))
            raise ZeroDivisionError("rank is dead")
        world.settle()
    print("survived")


def endless_on_devices(comm):
    """The same with a GPU a rank."""
    yield from endless(comm, backend="cuda")


def endless(comm, **how):
    """A search that goes on for ever, once it has begun."""
    costs = share(families.make("machol_wien", 16, 16), comm)

    def wait(_):
        Path(os.environ["GPUMATCH_TEST_FILE"]).touch()
        time.sleep(0.1)

    yield "endless"
    while True:
        distributed.assign(costs, comm=comm, callback=wait, **how)


GROUPS = (
    *(killed, killed_on_devices, killed_in_nccl),
    *(failed_ahead, endless, endless_on_devices),
)
