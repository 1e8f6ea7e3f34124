"""Live problems: an assignment (`sessions`) or a matching (`graphs`), kept through changes."""

from gpumatch.live.graphs import GraphSession
from gpumatch.live.sessions import Prices, Session, Snapshot

__all__ = ["GraphSession", "Prices", "Session", "Snapshot"]
