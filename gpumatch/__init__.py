"""Bipartite matching and assignment on GPUs and CPUs, exact and with a proof.

The public names below are imported when first used, so that ``import gpumatch`` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import gpumatch.certificates as certificates
    import gpumatch.csgraph as csgraph
    import gpumatch.distributed as distributed
    import gpumatch.general as general
    import gpumatch.io as io
    import gpumatch.linalg as linalg
    import gpumatch.optimize as optimize
    import gpumatch.plot as plot
    from gpumatch.assignment import assign
    from gpumatch.bipartite import BipartiteGraph
    from gpumatch.certificates import Certificate, CertificateError, verify
    from gpumatch.compiling import warmup
    from gpumatch.costs import DenseCosts, FunctionCosts, PointCosts, SparseCosts
    from gpumatch.dispatch.registry import algorithms
    from gpumatch.live import GraphSession, Session
    from gpumatch.matching import maximum_matching
    from gpumatch.optima import alternatives, forced_edges, possible_edges
    from gpumatch.problems.cardinality import InfeasibleError
    from gpumatch.ranking import k_best
    from gpumatch.results.assignment import Assignment
    from gpumatch.results.b_matching import BMatching
    from gpumatch.results.bottleneck import BottleneckAssignment
    from gpumatch.results.matching import Matching
    from gpumatch.results.transport import Transport
    from gpumatch.transportation import transport

__version__ = "0.1.0"

__all__ = [
    "Assignment",
    "BMatching",
    "BipartiteGraph",
    "BottleneckAssignment",
    "Certificate",
    "CertificateError",
    "DenseCosts",
    "FunctionCosts",
    "GraphSession",
    "InfeasibleError",
    "Matching",
    "PointCosts",
    "Session",
    "SparseCosts",
    "Transport",
    "algorithms",
    "alternatives",
    "assign",
    "certificates",
    "csgraph",
    "distributed",
    "forced_edges",
    "general",
    "io",
    "k_best",
    "linalg",
    "maximum_matching",
    "optimize",
    "plot",
    "possible_edges",
    "transport",
    "verify",
    "warmup",
]

_HOME = {
    "Assignment": "results.assignment",
    "BMatching": "results.b_matching",
    "BipartiteGraph": "bipartite",
    "BottleneckAssignment": "results.bottleneck",
    "Certificate": "certificates",
    "CertificateError": "certificates",
    "DenseCosts": "costs",
    "FunctionCosts": "costs",
    "GraphSession": "live",
    "InfeasibleError": "problems.cardinality",
    "Matching": "results.matching",
    "PointCosts": "costs",
    "Session": "live",
    "SparseCosts": "costs",
    "Transport": "results.transport",
    "algorithms": "dispatch.registry",
    "alternatives": "optima",
    "assign": "assignment",
    "forced_edges": "optima",
    "k_best": "ranking",
    "maximum_matching": "matching",
    "possible_edges": "optima",
    "transport": "transportation",
    "verify": "certificates",
    "warmup": "compiling",
}
_MODULES = (
    *("certificates", "costs", "csgraph", "distributed", "general", "io", "linalg", "optimize"),
    "plot",
)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"gpumatch.{name}")
    if name in _HOME:
        value = getattr(importlib.import_module(f"gpumatch.{_HOME[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'gpumatch' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
