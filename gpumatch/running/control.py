"""Control of a running algorithm: time limit, progress bar, callback and statistics."""

from __future__ import annotations

import functools
import signal
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from numbers import Real
from types import FrameType
from typing import Any, NamedTuple, ParamSpec, TypeVar

from gpumatch.running import compile_time

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


class Progress(NamedTuple):
    """The argument of a callback.

    Attributes
    ----------
    matched, phase : int
        The numbers of matched rows and of finished phases.
    seconds : float
        Seconds since the start.
    compiling : float
        The seconds among these in which code was compiled.
    """

    matched: int
    phase: int
    seconds: float
    compiling: float = 0.0


Callback = Callable[[Progress], Any]


def with_interrupts_result(run: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Give each KeyboardInterrupt of `run` a ``result``, which is None before there is one."""

    @functools.wraps(run)
    def running(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        try:
            return run(*args, **kwargs)
        except KeyboardInterrupt as exc:
            if not hasattr(exc, "result"):
                attach_result(exc, None)
            raise

    return running


def attach_result(exc: KeyboardInterrupt, result: Any) -> None:
    """Set ``result`` of a KeyboardInterrupt to the best result so far."""
    exc.result = result  # type: ignore[attr-defined]  # an attribute we add, and document


def without_result(solve: Callable[[], _Result]) -> _Result:
    """``solve()``, whose result on Ctrl-C is of no use to the caller, and becomes None."""
    try:
        return solve()
    except KeyboardInterrupt as exc:
        attach_result(exc, None)
        raise


def converted_result(solve: Callable[[], Any], convert: Callable[[Any], Any]) -> Any:
    """The converted result of ``solve()``. The result that a Ctrl-C brings is converted, too."""
    try:
        result = solve()
    except KeyboardInterrupt as exc:
        best = getattr(exc, "result", None)
        attach_result(exc, None if best is None else convert(best))
        raise
    return convert(result)


COMPILATION = "compilation"
SHOWN = 0.05  # seconds of compilation from which the progress bar shows them


class _Part(AbstractContextManager[None]):
    """A timer of a block. Compilation in it counts apart, once, in the outermost block.

    It is a class because a context manager made of a generator may change a KeyboardInterrupt.
    """

    def __init__(self, control: Control, name: str) -> None:
        self._control, self._name = control, name

    def __enter__(self) -> None:
        self._control._open += 1
        self._compiled = compile_time.spent()
        self._begin = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        taken = time.perf_counter() - self._begin
        compiled = min(compile_time.spent() - self._compiled, taken)
        seconds = self._control.seconds
        seconds[self._name] = seconds.get(self._name, 0.0) + taken - compiled
        self._control._open -= 1
        if not self._control._open:
            seconds[COMPILATION] += compiled


class Control:
    """The connection between a running algorithm and the caller.

    An algorithm calls `tick` at least every half second of work, while its arrays hold a matching,
    and returns if `tick` returns True. It calls `phase` after each phase.

    Parameters
    ----------
    time_limit : float, optional
        Seconds after which `tick` returns True.
    progress : bool
        Show a tqdm bar of matched rows.
    callback : callable, optional
        A function that each tick calls with a `Progress`. If it returns a true value, `tick`
        returns True.

    Attributes
    ----------
    total : int
        The number of matched rows at which the bar is full.
    stopped : bool
        True once the time limit or the callback has stopped the run.
    callers_error : Exception, optional
        What the callback has raised. It is none of a problem's own errors.
    """

    def __init__(
        self,
        *,
        time_limit: float | None = None,
        progress: bool = False,
        callback: Callback | None = None,
    ) -> None:
        if time_limit is not None:
            if not isinstance(time_limit, Real):
                raise TypeError(f"time_limit must be None or a number; got {time_limit!r}")
            if not time_limit >= 0:
                raise ValueError(f"time_limit must be None or seconds >= 0; got {time_limit!r}")
        if callback is not None and not callable(callback):
            raise TypeError(f"callback must be callable; got {type(callback).__name__}")
        self._began = time.perf_counter()
        self._limit = time_limit
        self._callback = callback
        self._shows = progress
        self._bar: Any = None
        self.total = 0
        self.stopped = False
        self.callers_error: Exception | None = None
        self._compiled_before = compile_time.spent()
        self._open = 0  # the number of nested parts that are being timed
        self.seconds: dict[str, float] = {COMPILATION: 0.0}
        self.trace: list[dict[str, Any]] = []

    def tick(self, matched: int) -> bool:
        """Report the number of matched rows; True means that the algorithm must stop now."""
        elapsed = time.perf_counter() - self._began
        if self._shows:
            self._show(matched)
        if self._callback is not None:
            progress = Progress(matched, len(self.trace), elapsed, self._compiled())
            try:
                is_enough = self._callback(progress)
            except Exception as exc:
                self.callers_error = exc
                raise
            if is_enough:  # an interrupt may set `stopped` meanwhile
                self.stopped = True
        if self._limit is not None and elapsed >= self._limit:
            self.stopped = True
        return self.stopped

    def phase(self, *, found: int, matched: int, levels: int = 0, **more: Any) -> None:
        """Record a finished phase: augmenting paths found, matched rows after it, BFS levels.

        A depth-first search has no levels.
        """
        self.trace.append({"levels": levels, "found": found, "matched": matched, **more})

    def part(self, name: str) -> AbstractContextManager[None]:
        """Add the time of the block to ``seconds[name]``, and compilation to a part of its own."""
        return _Part(self, name)

    @property
    def is_watched(self) -> bool:
        """True if a time limit, a progress bar or a callback needs the ticks of the run."""
        return self._limit is not None or self._shows or self._callback is not None

    @property
    def shows_bar(self) -> bool:
        """True if there is a progress bar, which the first tick makes."""
        return self._bar is not None

    def close(self, matched: int) -> None:
        """Close the progress bar at the final number of matched rows."""
        if self._bar is not None:
            self._show(matched)
            self._bar.close()

    def _show(self, matched: int) -> None:
        if self._bar is None:
            from tqdm.auto import tqdm

            self._bar = tqdm(total=self.total, unit="row", unit_scale=True, desc="matched")
        compiled = self._compiled()
        more = {"compiling": f"{compiled:.1f}s"} if compiled >= SHOWN else {}
        self._bar.set_postfix(phase=len(self.trace), refresh=False, **more)
        self._bar.update(matched - self._bar.n)

    def _compiled(self) -> float:
        """The seconds since the start in which code was compiled."""
        return compile_time.spent() - self._compiled_before

    def statistics(self) -> dict[str, Any]:
        """The numbers of phases and levels, the seconds by part, and the trace of phases."""
        return {
            "phases": len(self.trace),
            "levels": sum(phase["levels"] for phase in self.trace),
            "seconds": dict(self.seconds),
            "trace": self.trace,
        }


class InterruptsStop:
    """A block in which Ctrl-C stops the run at its next tick, as a time limit does.

    So the algorithm ends in order, with what it has so far, and `bring` raises the interrupt with
    that as its result. A second Ctrl-C raises at once, and so does one while code is being
    compiled, which has no ticks. Only the main thread receives signals. An interrupt of the
    caller's callback counts as one.
    """

    def __init__(self, control: Control) -> None:
        self._control = control
        self._callback = control._callback
        self._handler: Any = None
        self._interrupt: KeyboardInterrupt | None = None

    def __enter__(self) -> InterruptsStop:
        if self._callback is not None:
            self._control._callback = self._called
        if threading.current_thread() is threading.main_thread():
            handler = signal.getsignal(signal.SIGINT)
            if callable(handler):  # neither ignored, nor left to the system
                self._handler = handler
                signal.signal(signal.SIGINT, self._stop)
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        self._control._callback = self._callback
        if self._handler is not None:
            signal.signal(signal.SIGINT, self._handler)
        if kind is not None and kind is not KeyboardInterrupt:
            self.bring(None)

    def bring(self, result: Any) -> None:
        """Raise the interrupt that has come with this result, if one has come."""
        if self._interrupt is None:
            return
        exc, self._interrupt = self._interrupt, None
        attach_result(exc, result)
        try:
            raise exc
        finally:
            del exc  # which refers to this frame

    def _stop(self, number: int, frame: FrameType | None) -> None:
        if self._interrupt is not None or compile_time.is_compiling():
            self._handler(number, frame)
            return
        try:
            self._handler(number, frame)
        except KeyboardInterrupt as exc:
            self._note(exc)

    def _called(self, progress: Progress) -> Any:
        assert self._callback is not None
        try:
            return self._callback(progress)
        except KeyboardInterrupt as exc:
            self._note(exc)
            return True

    def _note(self, exc: KeyboardInterrupt) -> None:
        self._interrupt = exc.with_traceback(None)
        self._control.stopped = True
