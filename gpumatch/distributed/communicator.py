"""One thin layer over an `mpi4py` communicator: collectives on arrays, and agreement on errors.

Every collective here begins with a *word* of each rank, in one small ``MPI_Allgather``: its status
and how much it brings. So a rank that has failed needs not know what the others are about to do. It
says so in its word, the others hear it in the next collective, whichever that is, and all ranks
raise the same error. In the same way all ranks learn at the same point that one of them wants to
stop, because its time is up, its callback says so, or it got a Ctrl-C.

    GO          go on
    STOP        time limit or callback
    INTERRUPT   Ctrl-C
    FAIL        an exception; the lowest such rank then broadcasts it

A Ctrl-C raises nothing while a `Communicator` is entered: it becomes the status INTERRUPT, so that
no rank leaves a collective that others are in. A second Ctrl-C aborts all ranks. If a rank dies, or
MPI itself fails, MPI ends all others.

Arrays are NumPy arrays, or CuPy arrays, and so are the results. After `link_devices`, arrays of
CuPy go from GPU to GPU (`gpumatch.distributed.nccl`), in its current stream, if each rank has a GPU
of its own. Otherwise they go by way of the host.

Reference: *MPI: A Message-Passing Interface Standard*, version 4.1, 2023, chapter 6.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any

import numpy as np

from gpumatch.distributed.nccl import Links, links_of
from gpumatch.numeric.arrays import array_module, array_of
from gpumatch.running.control import Control, attach_result

__all__ = ["Communicator", "even_starts"]

GO, STOP, INTERRUPT, FAIL = range(4)


class Communicator:
    """The ranks that work on one problem. Enter it, as a context, on all of them at once.

    Parameters
    ----------
    comm : mpi4py communicator, optional
        By default ``MPI.COMM_WORLD``.

    Attributes
    ----------
    control : Control
        What `tick` and `step` report to.
    rank, size : int
        This rank's number, and how many there are.
    stopped, interrupted : bool
        Whether any rank wants to stop, and whether because of a Ctrl-C. The same on all ranks.
    waiting, moving : float
        Seconds in collectives until all ranks had come, and from then on.
    volume : int
        Bytes that this rank has given to collectives.
    calls : int
        Collectives so far.
    brought : int
        What all ranks together have brought to the last one: things to `allgather`, `gather` and
        `exchange`. The same on all ranks, so they need not count again.
    communication : dict
        Seconds in collectives, by the name of the `step`.
    """

    def __init__(self, comm: Any = None) -> None:
        mpi = _mpi()
        given = mpi.COMM_WORLD if comm is None else comm
        if not isinstance(given, mpi.Intracomm):
            raise TypeError(
                f"comm must be an intracommunicator of mpi4py; got {type(given).__name__}"
            )
        self._mpi, self._given = mpi, given
        self.control = Control()
        self.rank, self.size = given.rank, given.size
        self.stopped = self.interrupted = False
        self.waiting = self.moving = 0.0
        self.volume = self.calls = self.brought = 0
        self.communication: dict[str, float] = {}
        self._wish = GO
        self._links: Links | None = None
        self._ahead: list[tuple[Any, Any]] = []  # before and after each reduction not waited for
        self._has_ended = False
        self._word = np.zeros(2, np.int64)
        self._words = np.zeros((self.size, 2), np.int64)

    # -- the context -----------------------------------------------------------------------------

    def __enter__(self) -> Communicator:
        self._comm = self._given.Dup()  # its messages meet no others
        self._handler = _own_handler()
        if self._handler is not None:
            signal.signal(signal.SIGINT, self._on_interrupt)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        try:
            if error is not None and not self._has_ended:
                if isinstance(error, self._mpi.Exception):
                    self._abort(f"MPI failed: {error}", 1)
                if self._ahead:  # others may wait for this rank on their GPUs, where no word comes
                    self._abort(f"{type(error).__name__}: {error}", 1)
                self._speak(FAIL, 0)
                self._raise_first(error)
        finally:
            if self._handler is not None:
                signal.signal(signal.SIGINT, self._handler)
            self._comm.Free()

    def _on_interrupt(self, *_: Any) -> None:
        if self._wish == INTERRUPT:
            self._abort("interrupted twice", 130)
        self._wish = INTERRUPT

    def _abort(self, why: str, code: int) -> None:
        print(f"gpumatch: rank {self.rank}: {why}: all ranks are aborted", file=sys.stderr)
        sys.stderr.flush()
        if self._links is not None:
            self._links.abort()
        self._comm.Abort(code)

    # -- agreement -------------------------------------------------------------------------------

    def tick(self, matched: int) -> None:
        """Report the matched rows. If the control says stop, all ranks learn it by and by."""
        if self.control.tick(matched):
            self._wish = max(self._wish, STOP)

    def wants_to_stop(self, matched: int) -> bool:
        """Report the matched rows; True if this rank wants to stop. For work that it does alone."""
        self.tick(matched)
        return self._wish >= STOP

    def settle(self) -> None:
        """Hear each other once, so that no word of a rank is missed."""
        self._agree(0)

    def counts(self, own: int) -> np.ndarray:
        """What each rank counts: the cheapest collective.

        It may be given to the next one, if it counts what the ranks bring to that.
        """
        return self._agree(own)

    def outcome(self, result: Any) -> Any:
        """The result, or a KeyboardInterrupt that has it, on all ranks."""
        if self.interrupted:
            stop = KeyboardInterrupt()
            attach_result(stop, result)
            raise stop
        return result

    def agreed(self, error: Exception) -> Exception:
        """The error, to be raised by all ranks at once: they found it together."""
        self._has_ended = True
        return error

    @contextlib.contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Add the seconds inside to the control's, and those in collectives to `communication`."""
        before = self.waiting + self.moving
        with self.control.part(name):
            yield
        spent = self.waiting + self.moving - before
        self.communication[name] = self.communication.get(name, 0.0) + spent

    def local_rank(self) -> int:
        """This rank's number among those of its machine."""
        self._agree(0)
        node = self._comm.Split_type(self._mpi.COMM_TYPE_SHARED)
        rank = node.rank
        node.Free()
        return rank

    def link_devices(self) -> None:
        """Let arrays of CuPy go from GPU to GPU, if each rank now uses another one."""
        self._agree(0)
        self._links = links_of(self._mpi, self._given)

    def statistics(self) -> dict[str, Any]:
        """What communication there was, for the statistics of a result."""
        return {
            "ranks": self.size,
            "communication": {
                "by": "MPI" if self._links is None else "MPI and NCCL",
                "waiting": self.waiting,
                "moving": self.moving,
                "bytes": self.volume,
                "calls": self.calls,
                "seconds": dict(self.communication),
            },
        }

    def _agree(self, count: int) -> np.ndarray:
        """Say that this rank brings `count` numbers; how many each rank brings."""
        self._speak(self._wish, count)
        status = self._words[:, 0].max()
        if status == FAIL:
            self._raise_first(None)
        self.stopped |= bool(status >= STOP)
        self.interrupted |= bool(status == INTERRUPT)
        self.brought = int(self._words[:, 1].sum())
        return self._words[:, 1].copy()

    def _speak(self, status: int, count: int) -> None:
        begin = time.perf_counter()
        self._word[:] = status, count
        self._comm.Allgather(self._word, self._words)
        self.waiting += time.perf_counter() - begin
        self.calls += 1

    def _raise_first(self, own: BaseException | None) -> None:
        """Raise the error of the lowest rank that has failed, on all ranks."""
        self._has_ended = True
        first = int((self._words[:, 0] == FAIL).argmax())
        told = _in_words(own, self.size) if own is not None and self.rank == first else None
        kind, text = self._comm.bcast(told, root=first)
        if own is not None and self.size == 1:
            return
        text = f"rank {first}: {text}"
        try:
            error = kind(text)
        except Exception:
            error = RuntimeError(text)
        raise error from own

    # -- collectives -----------------------------------------------------------------------------

    def allgather(self, array: Any, counts: np.ndarray | None = None) -> list[Any]:
        """The arrays of all ranks, which agree in dtype and in all but their length."""
        counts = self._agree(array.shape[0]) if counts is None else counts
        if not counts.any():
            return [array] * self.size
        links = self._links_for(array)
        if links is not None:
            with self._moving_on_device(array.nbytes):
                return links.allgather(_contiguous(array), counts)
        given, back = _to_host(array)
        width = _width(given)
        with self._moving(given.nbytes):
            every = np.empty((int(counts.sum()), *given.shape[1:]), given.dtype)
            self._comm.Allgatherv(given, [every, counts * width])
        return [back(part) for part in _parts(every, counts)]

    def gather(self, array: Any, root: int = 0) -> list[Any] | None:
        """The arrays of all ranks on the root, as by `allgather`; None elsewhere."""
        counts = self._agree(array.shape[0])
        is_root = self.rank == root
        if not counts.any():
            return [array] * self.size if is_root else None
        links = self._links_for(array)
        if links is not None:
            with self._moving_on_device(array.nbytes):
                return links.gather(_contiguous(array), counts, root)
        given, back = _to_host(array)
        width = _width(given)
        with self._moving(given.nbytes):
            every = None
            if is_root:
                every = np.empty((int(counts.sum()), *given.shape[1:]), given.dtype)
            self._comm.Gatherv(given, [every, counts * width] if is_root else None, root)
        return None if every is None else [back(part) for part in _parts(every, counts)]

    def allreduce(self, array: Any, how: str, counts: np.ndarray | None = None) -> Any:
        """The ``"min"``, ``"max"`` or ``"sum"``, element by element, of arrays of one shape."""
        if counts is None and (self._agree(array.size) != array.size).any():
            raise AssertionError("ranks reduce arrays of different sizes")
        if not array.size:
            return array
        links = self._links_for(array)
        if links is not None:
            with self._moving_on_device(array.nbytes):
                return links.allreduce(_contiguous(array), how)
        given, back = _to_host(array)
        with self._moving(given.nbytes):
            result = np.empty_like(given)
            self._comm.Allreduce(given, result, getattr(self._mpi, how.upper()))
        return back(result)

    def allreduce_into(self, result: Any, array: Any, how: str) -> None:
        """Put the same into an array. From GPU to GPU this waits for nothing, and takes no word.

        Then all ranks call it as often before they `catch_up`, and a rank that fails in between
        aborts all.
        """
        links = self._links_for(array)
        if links is None:
            result[...] = self.allreduce(array, how)
        elif array.size:
            before, after = _event(), _event()
            before.record()
            links.allreduce(array, how, result)
            after.record()
            self._ahead.append((before, after))
            self.volume += array.nbytes
            self.calls += 1

    def catch_up(self) -> None:
        """Wait for what `allreduce_into` has begun, and add its seconds to `moving`.

        Those in which a GPU waits for others are among them.
        """
        if self._ahead:
            _wait_for_device()
            self.moving += sum(_seconds(*events) for events in self._ahead)
            self._ahead.clear()

    def total(self, number: Any, how: str = "sum") -> Any:
        """Combine a number of each rank, int or float, on all ranks."""
        return self.allreduce(np.array([number]), how)[0].item()

    def broadcast(self, array: Any, root: int = 0) -> Any:
        """The root's array, on all ranks; what the others give only says its dtype and kind."""
        self._agree(array.size)
        is_root = self.rank == root
        links = self._links_for(array)
        if links is not None:
            with self._moving_on_device(array.nbytes if is_root else 0):
                shape = self._comm.bcast(array.shape if is_root else None, root)
                result = _contiguous(array) if is_root else type(array)(shape, array.dtype)
                links.broadcast(result, root)
                return result
        given, back = _to_host(array)
        with self._moving(given.nbytes if is_root else 0):
            shape = self._comm.bcast(given.shape if is_root else None, root)
            result = given if is_root else np.empty(shape, given.dtype)
            self._comm.Bcast(result, root)
        return back(result)

    def exchange(self, parts: Sequence[Any]) -> list[Any]:
        """Give ``parts[r]`` to rank r; what each rank has given to this one.

        All parts of all ranks agree in dtype and in all but their length.
        """
        out = np.array([part.shape[0] for part in parts], np.int64)
        if not self._agree(int(out.sum())).any():
            return list(parts)
        into = np.empty_like(out)
        links = self._links_for(parts[0])
        if links is not None:
            with self._moving_on_device(sum(part.nbytes for part in parts)):
                self._comm.Alltoall(out, into)
                return links.exchange([_contiguous(part) for part in parts], into)
        pairs = [_to_host(part) for part in parts]
        own, back = [given for given, _ in pairs], pairs[0][1]
        width = _width(own[0])
        with self._moving(sum(given.nbytes for given in own)):
            self._comm.Alltoall(out, into)
            given = np.concatenate(own)
            taken = np.empty((int(into.sum()), *given.shape[1:]), given.dtype)
            self._comm.Alltoallv([given, out * width], [taken, into * width])
        return [back(part) for part in _parts(taken, into)]

    def share(self, value: Any) -> list[Any]:
        """A small Python value of each rank."""
        self._agree(0)
        with self._moving(0):
            return self._comm.allgather(value)

    def _links_for(self, array: Any) -> Links | None:
        """What takes the array from GPU to GPU, if it is on one. The same on all ranks."""
        is_here = isinstance(array, np.ndarray)
        return None if is_here or array.dtype == bool else self._links

    @contextlib.contextmanager
    def _moving_on_device(self, nbytes: int) -> Iterator[None]:
        """Add the seconds inside to `moving`, those of what the GPU does there, too.

        They begin when the GPU has done what it was given before.
        """
        _wait_for_device()
        with self._moving(nbytes):
            yield
            _wait_for_device()

    @contextlib.contextmanager
    def _moving(self, nbytes: int) -> Iterator[None]:
        begin = time.perf_counter()
        yield
        self.moving += time.perf_counter() - begin
        self.volume += nbytes


def even_starts(count: int, parts: int) -> np.ndarray:
    """Where each of the parts of `count` things begins, and where the last ends."""
    return np.arange(parts + 1, dtype=np.int64) * count // parts


def _mpi() -> Any:
    try:
        from mpi4py import MPI
    except ImportError as exc:
        raise ImportError(
            f"gpumatch.distributed needs mpi4py ({exc}): pip install 'gpumatch[mpi]'"
        ) from exc
    return MPI


def _own_handler() -> Any:
    """What handles SIGINT now, if this thread may change that and Python handles it."""
    if threading.current_thread() is not threading.main_thread():
        return None
    handler = signal.getsignal(signal.SIGINT)
    return handler if callable(handler) else None


def _in_words(error: BaseException, size: int) -> tuple[type, str]:
    """The error's type, if all ranks know it, and what it says."""
    kind = type(error)
    is_known = kind.__module__ == "builtins" or kind.__module__.startswith("gpumatch.")
    text = str(error)
    if isinstance(error, OSError) and error.filename and error.strerror:
        text = f"{error.filename}: {error.strerror}"
    if not is_known or isinstance(error, KeyError):
        text = f"{kind.__name__}: {error}"
    return (kind if is_known and issubclass(kind, Exception) else RuntimeError), text


def _wait_for_device() -> None:
    import cupy

    cupy.cuda.get_current_stream().synchronize()


def _event() -> Any:
    import cupy

    return cupy.cuda.Event()


def _seconds(before: Any, after: Any) -> float:
    import cupy

    return float(cupy.cuda.get_elapsed_time(before, after)) * 1e-3


def _contiguous(array: Any) -> Any:
    return array_module(array).ascontiguousarray(array)


def _to_host(array: Any) -> tuple[np.ndarray, Any]:
    """The array on the host, and the function that brings a result to where it was."""
    xp = array_module(array)
    given = np.ascontiguousarray(array_of(np, array))
    if given.dtype == bool:
        return given.view(np.uint8), lambda part: array_of(xp, part.view(bool))
    return given, lambda part: array_of(xp, part)


def _width(array: np.ndarray) -> int:
    """Numbers in each of the things that are counted."""
    return int(np.prod(array.shape[1:], dtype=np.int64))


def _parts(array: np.ndarray, counts: np.ndarray) -> list[np.ndarray]:
    return np.split(array, np.cumsum(counts)[:-1])
