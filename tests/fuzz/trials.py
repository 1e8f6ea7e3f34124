"""What one problem is drawn with, and the outcome of a seed."""

from __future__ import annotations

import contextlib
import time
import traceback
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

HERE = str(Path(__file__).parent)
CLASSES = (2**8, 2**12, 2**14, 2**16, 2**17, 2**18, 2**20, 2**21)
"""Bounds of the size classes, in costs or entries."""
PRINTED = 64
"""Numbers of an array that a failure shows."""


class Wrong(AssertionError):
    """An answer that is wrong, or a false one that was accepted."""


class Trial:
    """One problem while it is drawn and solved.

    Parameters
    ----------
    seed : int
        All choices follow from it.
    shrink : int
        Sizes are divided by it.
    backend : {"cpu", "cuda"}
    door : str, optional
        The door, if it is not to be drawn.
    """

    def __init__(
        self, seed: int, shrink: int = 1, backend: str = "cpu", door: str | None = None
    ) -> None:
        self.seed, self.shrink, self.backend, self.door = seed, shrink, backend, door
        self.rng = np.random.default_rng(seed)
        self.notes: dict[str, Any] = {}
        self.count = 0
        self.unproven = 0

    # -- choices ---------------------------------------------------------------------------------

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def pick(self, values: Sequence[Any], weights: Sequence[float] | None = None) -> Any:
        if weights is None:
            return values[int(self.rng.integers(len(values)))]
        shares = np.cumsum(weights)
        place = np.searchsorted(shares, self.rng.random() * shares[-1], "right")
        return values[min(int(place), len(values) - 1)]

    def integer(self, low: int, high: int) -> int:
        """A number from `low` to `high`, both included."""
        return int(self.rng.integers(low, high, endpoint=True))

    def scaled(self, size: int) -> int:
        """A size, smaller if the problem is to be shrunk."""
        return size if self.shrink == 1 else max(min(size, 1), size // self.shrink)

    # -- the report ------------------------------------------------------------------------------

    def sized(self, count: int) -> None:
        """Say how many costs or entries the problem has."""
        self.count = int(count)

    def note(self, **facts: Any) -> None:
        """Facts that a failure shows."""
        self.notes.update(facts)


class Outcome(NamedTuple):
    """What came of a seed: ``"ok"``, or the kind of fault with all that is known of it."""

    seed: int
    shrink: int
    door: str
    size_class: str
    kind: str
    seconds: float
    unproven: int = 0
    message: str = ""
    place: str = ""
    details: str = ""

    @property
    def is_fault(self) -> bool:
        return self.kind != "ok"

    @property
    def name(self) -> str:
        return f"{self.seed}" if self.shrink == 1 else f"{self.seed}/{self.shrink}"


def class_of(count: int) -> str:
    """The size class of a problem with so many costs or entries."""
    below = next((bound for bound in CLASSES if count < bound), None)
    return f"< 2^{below.bit_length() - 1}" if below else f">= 2^{CLASSES[-1].bit_length() - 1}"


CLASS_NAMES = (*(class_of(bound - 1) for bound in CLASSES), class_of(CLASSES[-1]))


def run(trial: Trial) -> Outcome:
    """Draw and solve the problem of a trial."""
    from tests.fuzz.doors import DOORS, drawn_door

    began = time.perf_counter()
    name = trial.door or drawn_door(trial)
    kind, message, place, details = "ok", "", "", ""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            DOORS[name].function(trial)
    except Exception as exc:
        kind = "wrong" if isinstance(exc, Wrong) else f"raised {type(exc).__name__}"
        message, place, details = str(exc)[:2000], _place(exc), _details(trial, exc)
    seconds = time.perf_counter() - began
    return Outcome(
        trial.seed, trial.shrink, name, class_of(trial.count), kind, seconds, trial.unproven,
        message, place, details,
    )  # fmt: skip


def shrunk(outcome: Outcome, backend: str, seconds: float) -> Outcome:
    """The smallest problem of the same seed that fails at the same place, found in some seconds."""
    best, end = outcome, time.perf_counter() + seconds
    for shrink in (2, 4, 8, 16, 32, 64, 128):
        if time.perf_counter() > end:
            break
        found = run(Trial(outcome.seed, shrink, backend, outcome.door))
        if (found.kind, found.place) == (outcome.kind, outcome.place):
            best = found
    return best


def _place(exc: BaseException) -> str:
    """The last line of this folder, and the last line of all, that the exception has come by."""
    frames = traceback.extract_tb(exc.__traceback__)
    own = [f for f in frames if f.filename.startswith(HERE) and f.name != "require"]
    last = [f for f in frames[-1:] if f.name != "require"]
    names = (f"{Path(frame.filename).name}:{frame.lineno}" for frame in (*own[-1:], *last))
    return " ".join(dict.fromkeys(names))


def _details(trial: Trial, exc: BaseException) -> str:
    facts = [f"    {name} = {_shown(value)}" for name, value in trial.notes.items()]
    return "\n".join([*facts, *traceback.format_exception(exc, limit=-4)])


def _shown(value: Any) -> str:
    with contextlib.suppress(Exception):
        if hasattr(value, "toarray") and np.prod(value.shape) <= PRINTED:
            text = np.array2string(value.toarray(), threshold=PRINTED)
            return f"{type(value).__name__} of {value.dtype}\n{text}"
        if isinstance(value, np.ndarray) and value.size <= PRINTED:
            return repr(value)
        if hasattr(value, "shape") and hasattr(value, "dtype"):
            return f"<{type(value).__name__} {value.dtype} {tuple(value.shape)}>"
    text = repr(value)
    return text if len(text) < 2000 else text[:2000] + "…"
