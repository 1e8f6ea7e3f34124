"""What Ctrl-C does to a communicator, in one process."""

from __future__ import annotations

from types import SimpleNamespace

from gpumatch.distributed.communicator import INTERRUPT, Communicator


def test_the_second_interrupt_aborts_all_ranks(capsys):
    codes, ended = [], []
    world = object.__new__(Communicator)
    world.rank, world._wish, world._has_ended = 3, None, False
    world._comm = SimpleNamespace(Abort=codes.append, Get_rank=lambda: 3)
    world._links = SimpleNamespace(abort=lambda: ended.append(True))
    world._on_interrupt()
    assert (world._wish, codes, ended) == (INTERRUPT, [], [])
    world._on_interrupt()
    assert (codes, ended) == ([130], [True])
    assert capsys.readouterr().err == (
        "gpumatch: rank 3: interrupted twice: all ranks are aborted\n"
    )
