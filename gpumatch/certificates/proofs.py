"""Proofs as files hold them, with the attributes that the checkers look at."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np

from gpumatch.certificates.base import CertificateError
from gpumatch.certificates.hashes import hash_of, hashes_of_batch
from gpumatch.certificates.proof_parts import PARTS, Record

__all__ = ["Proof", "proof_from"]


class Proof:
    """A result and what proves it, as a file holds them. `gpumatch.verify` takes it.

    It also has the parts of its problem as attributes, which are those of the result: mates as
    int64 arrays, of a flow its pairs and units, duals as int64 or float64 arrays, and the arguments
    and claims of the call. docs/algorithms/proof_files.md lists them. That of a batch has those of
    its problems as items.

    Attributes
    ----------
    problem : str
        "matching", "assignment", "bottleneck", "transport", "general-matching", "general-weights",
        "ranking", "lexicographic", "alternatives", "edges" or "batch".
    costs : str
        "stored", or the metric of the points whose distances they are; "mixed" of a batch of both.
    shape : (int, int)
        Rows and columns of the problem; of a graph, twice its number of vertices; of a batch, the
        most that a problem has.
    sha256 : str
        The hash of the problem, in hexadecimal digits.
    """

    def __init__(self, record: Record) -> None:
        self.record = record
        self.problem, self.costs, self.shape, self.sha256, self.parts = record
        if min(self.shape) < 0:
            raise ValueError(f"the shape is {self.shape}")
        self.__dict__.update(self._attributes())

    def _attributes(self) -> dict[str, Any]:
        """The parts that the result has, too."""
        return self.parts

    def __repr__(self) -> str:
        rows, cols = self.shape
        of_what = f"{rows} vertices" if self.problem.startswith("general") else f"{rows} x {cols}"
        return f"Proof({self.problem} of {of_what}, {self.row_ind.size} pairs)"

    @property
    def row_ind(self) -> np.ndarray:
        """The rows of the pairs; of a graph, the smaller ends."""
        mate = self.parts.get("mate")
        if mate is not None:
            return np.flatnonzero(mate > np.arange(mate.size))
        return np.flatnonzero(self.parts["row_to_col"] >= 0)

    @property
    def col_ind(self) -> np.ndarray:
        """The columns of the pairs, by row; of a graph, the larger ends."""
        mates = self.parts["mate" if "mate" in self.parts else "row_to_col"]
        return mates[self.row_ind]

    def check_problem(
        self, A: Any, *, sizes: Any = None, weight: Hashable = "weight", triangle: str = "both"
    ) -> None:
        """Raise CertificateError unless this is a proof of `A`."""
        maximize = self.parts.get("maximize", True)
        self._compare(*hash_of(A, self.problem, weight, triangle, maximize=maximize))

    def _compare(self, costs: str, shape: tuple[int, int], sha256: str) -> None:
        """Compare the problem with these costs, this shape and this hash."""
        if shape != self.shape:
            raise CertificateError(f"the proof is one of {self.shape}, but the problem is {shape}")
        if costs != self.costs:
            raise CertificateError(f"the proof is one of costs {self.costs}, but these are {costs}")
        if sha256 != self.sha256:
            raise CertificateError("the proof is one of another problem: their hashes differ")


class _CoverProof(Proof):
    """With a vertex cover."""

    def vertex_cover(self) -> tuple[np.ndarray, np.ndarray]:
        """The rows and the columns of the cover."""
        return self.parts["cover_rows"], self.parts["cover_cols"]

    cover_ind = vertex_cover


class _BottleneckProof(_CoverProof):
    def threshold_cover(self) -> tuple[np.ndarray, np.ndarray]:
        """The rows and the columns that touch all pairs better than the objective."""
        return self.parts["threshold_rows"], self.parts["threshold_cols"]


class _PairsProof(Proof):
    """With pairs that are listed."""

    @property
    def row_ind(self) -> np.ndarray:
        found: np.ndarray = self.parts["row_ind"]
        return found

    @property
    def col_ind(self) -> np.ndarray:
        found: np.ndarray = self.parts["col_ind"]
        return found


class _TransportProof(_PairsProof, _CoverProof):
    def __init__(self, record: Record) -> None:
        super().__init__(record)
        parts, shape = record.parts, record.shape
        self.row_bounds = parts["row_lower"], parts["row_upper"]
        self.col_bounds = parts["col_lower"], parts["col_upper"]
        given = parts["pair_capacity"]
        if given is not None:
            given = np.asarray(given, np.int64)
            is_matrix = given.ndim == 1 and given.size == shape[0] * shape[1]
            given = given.reshape(shape) if is_matrix else given
        self.pair_capacity = given


class _GeneralProof(Proof):
    def tutte_berge_ind(self) -> np.ndarray:
        """The vertices of the Tutte–Berge set."""
        found: np.ndarray = self.parts["tutte_berge"]
        return found


class _RankingProof(Proof):
    """Attribute `tree` is the partition, and `row_to_col` has a line for each assignment."""

    def __init__(self, record: Record) -> None:
        super().__init__(record)
        parts, (nrows, ncols) = record.parts, record.shape
        count = parts["objective"].size
        self.row_to_col = _lines(parts["row_to_col"], count, nrows, "row_to_col")
        payers = ncols if parts["by_columns"] else nrows
        names = "by_columns", "parent", "place", "opened", "starts", "vertices", "differences"
        self.tree = SimpleNamespace(**{name: parts[name] for name in names})
        self.tree.order = _lines(parts["order"], count, payers, "order")
        self.tree.is_empty = parts["is_empty"] != 0
        _check_tree(self.tree, payers, nrows + ncols)

    def __len__(self) -> int:
        return len(self.row_to_col)

    def __repr__(self) -> str:
        return f"Proof(ranking of {self.shape[0]} x {self.shape[1]}, {len(self)} assignments)"


def _lines(numbers: np.ndarray, count: int, length: int, name: str) -> np.ndarray:
    if numbers.size != count * length:
        raise ValueError(f"{name} must have {count} times {length} numbers; got {numbers.size}")
    return numbers.reshape(count, length)


def _check_tree(tree: Any, payers: int, size: int) -> None:
    """Check what the checker of rankings reads by: lengths and ranges."""
    count = tree.parent.size
    for name, length in (
        *(("place", count), ("opened", count), ("is_empty", count), ("starts", count + 1)),
        ("differences", tree.vertices.size),
    ):
        if getattr(tree, name).size != length:
            raise ValueError(f"{name} must have {length} numbers; got {getattr(tree, name).size}")
    for name, low, high in (
        *(("vertices", 0, size), ("place", -1, payers), ("opened", -1, len(tree.order))),
    ):
        numbers = getattr(tree, name)
        if ((numbers < low) | (numbers >= high)).any():
            raise ValueError(f"{name} has numbers outside [{low}, {high})")


def _descend(offsets: np.ndarray) -> bool:
    """True if some are less than the ones before; their differences may overflow."""
    return bool((offsets[1:] < offsets[:-1]).any())


class _LexicographicProof(Proof):
    """Attribute `levels` has the duals of each level."""

    def __init__(self, record: Record) -> None:
        super().__init__(record)
        parts = record.parts
        values, starts = parts["level_value"].tolist(), parts["level_starts"]
        if starts.size != len(values) + 1 or _descend(starts) or starts[0] != 0:
            raise ValueError("level_starts must ascend from 0, with one more than there are levels")
        sizes = {parts[name].size for name in ("level_vertices", "level_dual")}
        if sizes != {int(starts[-1])}:
            raise ValueError("level_starts must end where level_vertices and level_dual do")
        parts_of_levels = zip(starts[:-1].tolist(), starts[1:].tolist(), values)
        self.levels = [
            SimpleNamespace(
                value=value,
                vertices=parts["level_vertices"][begin:end],
                numbers=parts["level_dual"][begin:end],
            )
            for begin, end, value in parts_of_levels
        ]


class _EntriesProof(Proof):
    """Attribute `matrix` has the listed pairs."""

    def __init__(self, record: Record) -> None:
        super().__init__(record)
        indptr, indices = record.parts["indptr"], record.parts["indices"]
        nrows, ncols = record.shape
        if indptr.size != nrows + 1 or indptr[0] != 0 or indptr[-1] != indices.size:
            raise ValueError(f"indptr must have {nrows + 1} offsets, up to {indices.size}")
        if _descend(indptr):
            raise ValueError("indptr must ascend")
        if indices.min(initial=0) < 0 or indices.max(initial=-1) >= ncols:
            raise ValueError(f"indices has numbers outside [0, {ncols})")
        data = record.parts.get("extra", np.ones(indices.size, np.int64))
        if data.size != indices.size:
            raise ValueError(f"extra must have {indices.size} numbers; got {data.size}")
        self.matrix = SimpleNamespace(indptr=indptr, indices=indices, data=data)

    def __len__(self) -> int:
        return int(self.matrix.indices.size)

    def __repr__(self) -> str:
        return f"Proof({self.problem} of {self.shape[0]} x {self.shape[1]}, {len(self)} pairs)"


class _AlternativesProof(_EntriesProof):
    """Attribute `assignment` is the proof of the optimum."""

    def __init__(self, record: Record) -> None:
        super().__init__(record)
        parts = {name: record.parts[name] for name in PARTS["assignment"]}
        self.assignment = _CoverProof(record._replace(problem="assignment", parts=parts))

    def _attributes(self) -> dict[str, Any]:
        of_optimum = PARTS["assignment"]
        return {name: part for name, part in self.parts.items() if name not in of_optimum}


class _BatchProof(Proof):
    """The proofs of the problems of a batch, which are its items."""

    def __init__(self, record: Record) -> None:
        super().__init__(record)
        self.problems: list[Any] = [proof_from(one) for one in record.parts["problems"]]
        self.kind = self.problems[0].problem if self.problems else "assignment"
        self.sizes = np.array([one.shape for one in self.problems], np.int64).reshape(-1, 2)
        if self.kind == "ranking":
            self.counts = np.array([len(one) for one in self.problems])
        else:
            self.errors: dict[int, Exception] = {}
        if self.kind == "transport":
            self.row_flow = None  # which only flows have

    def __len__(self) -> int:
        return len(self.problems)

    def __getitem__(self, number: int) -> Proof:
        found: Proof = self.problems[number]
        return found

    def __iter__(self) -> Iterator[Proof]:
        return iter(self.problems)

    def __repr__(self) -> str:
        return f"Proof(batch of {len(self)} problems: {self.kind})"

    def check_problem(
        self, A: Any, *, sizes: Any = None, weight: Hashable = "weight", triangle: str = "both"
    ) -> None:
        """Raise CertificateError unless these are proofs of the problems of `A`."""
        hashes, all_of_them = hashes_of_batch(A, self.kind, sizes)
        if len(hashes) != len(self):
            raise CertificateError(
                f"the proof is one of {len(self)} problems, but there are {len(hashes)}"
            )
        for number, (proof, own) in enumerate(zip(self, hashes)):
            try:
                proof._compare(*own)
            except CertificateError as error:
                raise CertificateError(f"problem {number}: {error}") from error
        self._compare(*all_of_them)


_CLASSES: dict[str, type[Proof]] = {
    "matching": _CoverProof,
    "assignment": _CoverProof,
    "bottleneck": _BottleneckProof,
    "transport": _TransportProof,
    "general-matching": _GeneralProof,
    "general-weights": Proof,
    "ranking": _RankingProof,
    "lexicographic": _LexicographicProof,
    "alternatives": _AlternativesProof,
    "edges": _EntriesProof,
    "batch": _BatchProof,
}


def proof_from(record: Record) -> Proof:
    """The proof that a file holds; ValueError if its parts do not fit each other."""
    return _CLASSES[record.problem](record)
