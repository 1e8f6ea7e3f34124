"""Where the ranks of a problem work: on the CPU, or on a GPU each."""

from __future__ import annotations

from gpumatch.dispatch.devices import why_no_cuda
from gpumatch.distributed.communicator import Communicator

__all__ = ["BACKENDS", "take_device"]

BACKENDS = ("cpu", "cuda")


def take_device(world: Communicator) -> None:
    """Let this rank use a GPU of its own, if there is one, and link it with the others'."""
    reason = why_no_cuda()
    if reason is not None:
        raise RuntimeError(f"backend 'cuda' can't run: {reason}")
    from gpumatch.cuda.assignment.dense.rows import use_own_device

    use_own_device(world.local_rank())
    world.link_devices()
