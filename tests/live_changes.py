"""Random changes of sessions, and the same changes of a matrix, which is solved afresh."""

from __future__ import annotations

from bisect import bisect
from itertools import accumulate
from typing import Any

import numpy as np

import gpumatch as gm

CARDINALITIES = ("full", "maximum", "any", "limit")
NAMES = (
    "set_cost", "forbid", "set_row", "set_col", "add_row", "add_col", "remove_row", "remove_col",
)  # fmt: skip


def solved_afresh():
    """Stand in for `Session._load`, which would hide a wrong path."""
    raise AssertionError("the session was solved afresh")


class Drawn:
    """A random session with the matrix that it should have.

    Costs are few integers or floats of many magnitudes, so that ties, long paths and rounding come
    up; a share of the pairs is forbidden. Of 32 seeds, the last 16 have sessions of sparse costs.
    """

    def __init__(self, seed: int, *, is_sparse: bool | None = None) -> None:
        self.rng = rng = np.random.default_rng(seed)
        self.kind = ("few", "many", "floats", "decades")[seed % 4]
        self.maximize = bool(rng.integers(2))
        cardinality = CARDINALITIES[seed // 4 % 4]
        limit = None
        if cardinality == "limit" or (cardinality == "maximum" and rng.random() < 0.3):
            limit = (
                float(self.costs(1)[0])
                if self.kind in ("floats", "decades")
                else int(self.costs(1)[0])
            )
        self.options = {
            "maximize": self.maximize,
            "cardinality": "full" if cardinality == "limit" else cardinality,
            "cost_limit": limit,
        }
        self.share = rng.choice([0.0, 0.0, 0.3, 0.8])
        shape = rng.integers(0, 9, 2)
        self.C = self.forbidden(self.costs(shape))
        self.ids = [list(range(size)) for size in shape]
        self.next = list(shape)
        self.is_sparse = bool(seed // 16 % 2) if is_sparse is None else is_sparse
        self.session = gm.Session(self.given(), **self.options)
        if self.kind != "decades":
            self.session._load = solved_afresh

    def costs(self, shape):
        if self.kind == "few":
            return self.rng.integers(-2, 3, shape).astype(float)
        if self.kind == "many":
            return self.rng.integers(-(10**6), 10**6, shape).astype(float)
        if self.kind == "floats":
            return self.rng.normal(size=shape)
        return self.rng.normal(size=shape) * 10.0 ** self.rng.integers(-6, 7, shape)

    def forbidden(self, values):
        values[self.rng.random(values.shape) < self.share] = -np.inf if self.maximize else np.inf
        return values

    def given(self):
        """The matrix as a caller would pass it, or what is allowed of it."""
        allowed = np.isfinite(self.C)
        is_integer = self.kind in ("few", "many")
        if not self.is_sparse and (allowed.all() or not is_integer):
            return self.C.astype(np.int64) if is_integer else self.C.copy()
        indptr = np.concatenate([[0], allowed.sum(axis=1).cumsum()])
        cols = allowed.nonzero()[1]
        values = self.C[allowed].astype(np.int64) if is_integer else self.C[allowed]
        return indptr, cols, values, self.C.shape

    def change(self, target=None, *, names=None) -> float:
        """Make one random change, or price it; then the target is ``session.price_of``."""
        rng, C = self.rng, self.C
        rows, cols = C.shape
        names = names or NAMES
        weights = {"add_row": 1 + (rows < 3), "add_col": 1 + (cols < 3), "set_cost": 3}
        share = list(accumulate(weights.get(name, 1) for name in names))
        name = names[bisect(share, rng.random() * share[-1])]
        i, j = (int(rng.integers(size)) if size else None for size in C.shape)
        if name in ("set_cost", "forbid"):
            if i is None or j is None:
                return 0
            cost = float(self.costs(1)[0])
            args = (self.ids[0][i], self.ids[1][j]) + ((cost,) if name == "set_cost" else ())
            new = C.copy()
            new[i, j] = cost if name == "set_cost" else (-np.inf if self.maximize else np.inf)
        else:
            verb, side = name.split("_")
            axis = int(side == "col")
            at = (i, j)[axis]
            if at is None and verb != "add":
                return 0
            line = self.forbidden(self.costs(C.shape[1 - axis]))
            if verb == "remove":
                lines = [C[:at], C[at + 1 :]] if axis == 0 else [C[:, :at], C[:, at + 1 :]]
                args, new = (self.ids[axis][at],), np.concatenate(lines, axis)
            elif verb == "add":
                lines = [C, line[None] if axis == 0 else line[:, None]]
                args, new = (line,), np.concatenate(lines, axis)
            else:
                args, new = (self.ids[axis][at], line), C.copy()
                (new if axis == 0 else new.T)[at] = line
        if target is not None:
            return getattr(target, name)(*args), new
        found = getattr(self.session, name)(*args)
        if name.startswith("add"):
            assert found == self.next[axis]
            self.ids[axis].append(found)
            self.next[axis] += 1
        if name.startswith("remove"):
            del self.ids[axis][at]
        self.C = new

    def optimum(self, C=None):
        """The objective and the size from scratch; None if infeasible."""
        kept, self.C = self.C, self.C if C is None else C
        try:
            a = gm.assign(self.given(), **self.options)
        except gm.InfeasibleError:
            return None
        finally:
            self.C = kept
        return a

    def check(self):
        """Compare the session with the matrix solved afresh."""
        expected = self.optimum()
        assert self.session.row_ids.tolist() == self.ids[0]
        assert self.session.col_ids.tolist() == self.ids[1]
        assert self.session.shape == self.C.shape
        if expected is None:
            try:
                self.session.solve()
            except gm.InfeasibleError as exc:
                self.check_violator(exc)
            else:
                raise AssertionError("a session has found a full assignment where there is none")
            return
        a = self.session.solve()
        assert a.proven or not expected.proven or a.gap <= self.rounding(a)
        gm.verify(self.session.costs(), a, optimal=a.proven)
        gm.verify(self.given(), a, optimal=a.proven)
        if self.options["cardinality"] == "maximum":
            assert a.size == expected.size
        slack = a.gap + expected.gap + 1e-12 * abs(expected.objective)
        assert abs(self.worth(a) - self.worth(expected)) <= slack
        assert type(a.objective) is type(expected.objective)

    def rounding(self, a):
        """What duals of decades may leave, if they must be far larger than what the pairs cost."""
        duals = max(abs(dual).max(initial=0) for dual in (a.row_dual, a.col_dual))
        return 2.0**-52 * a.size * duals if self.kind == "decades" else 0

    def worth(self, a):
        """What all optima have in common: with a limit, some have more pairs at the limit."""
        limit = self.options["cost_limit"]
        has_limit = limit is not None and self.options["cardinality"] != "maximum"
        return a.objective - a.size * limit if has_limit else a.objective

    def check_violator(self, exc):
        """Check that the rows named have pairs with the columns named only, or the other way."""
        rows = [self.ids[0].index(i) for i in exc.rows.tolist()]
        cols = [self.ids[1].index(j) for j in exc.cols.tolist()]
        C = self.C if self.C.shape[0] <= self.C.shape[1] else self.C.T
        many, few = (rows, cols) if C is self.C else (cols, rows)
        others = np.setdiff1d(np.arange(C.shape[1]), few)
        assert len(many) > len(few)
        assert not np.isfinite(C[np.ix_(many, others)]).any()

    def check_price(self):
        """Price a random change, and compare with the changed matrix solved afresh."""
        before = self.optimum()
        if before is None:
            return
        priced = self.change(self.session.price_of)
        if not isinstance(priced, tuple):
            return
        price, new = priced
        after = self.optimum(new)
        if after is None:
            assert price == (-np.inf if self.maximize else np.inf)
        elif self.worth(after) == after.objective:  # else pairs at the limit may be more or fewer
            scale = abs(after.objective) + abs(before.objective)
            slack = before.gap + after.gap + 1e-9 * scale
            assert abs(price - (after.objective - before.objective)) <= slack
        self.check()


def run(seed: int, changes: int, *, between: int = 1, is_sparse: bool | None = None) -> None:
    """Make so many random changes, and compare after every few."""
    drawn = Drawn(seed, is_sparse=is_sparse)
    drawn.check()
    for k in range(changes):
        drawn.change()
        if k % between == 0:
            drawn.check()
            if k % 3 == 0:
                drawn.check_price()


class DrawnPoints:
    """A random session of points. Some coordinates are small integers, so that distances tie."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = np.random.default_rng(seed)
        self.is_integer = bool(seed % 2)
        self.metric = ("sqeuclidean", "euclidean", "cityblock", "chebyshev")[seed // 2 % 4]
        cardinality = CARDINALITIES[seed // 8 % 4]
        self.options = {
            "maximize": bool(rng.integers(2)),
            "cardinality": "full" if cardinality == "limit" else cardinality,
            "cost_limit": float(rng.integers(1, 4)) if cardinality == "limit" else None,
        }
        self.width = int(rng.integers(1, 4))
        self.sides = [self.points(int(rng.integers(0, 30))) for _ in range(2)]
        self.ids = [list(range(len(side))) for side in self.sides]
        self.session = gm.Session(gm.PointCosts(*self.sides, self.metric), **self.options)
        self.session._load = solved_afresh

    def points(self, count):
        shape = count, self.width
        return self.rng.integers(0, 4, shape) * 1.0 if self.is_integer else self.rng.random(shape)

    def change(self, target=None):
        """Make a random change, or price it; return the points after it."""
        side, verb = int(self.rng.integers(2)), str(self.rng.choice(["set", "add", "remove"]))
        point, count = self.points(1), len(self.sides[side])
        if not count:
            verb = "add"
        at = int(self.rng.integers(count)) if count else 0
        args = ([] if verb == "add" else [self.ids[side][at]]) + (
            [] if verb == "remove" else [point[0]]
        )
        found = getattr(target or self.session, f"{verb}_{('row', 'col')[side]}")(*args)
        new = list(self.sides)
        if verb == "add":
            new[side] = np.concatenate([self.sides[side], point])
        elif verb == "remove":
            new[side] = np.delete(self.sides[side], at, 0)
        else:
            new[side] = self.sides[side].copy()
            new[side][at] = point
        if target is not None:
            return found, new
        if verb == "add":
            self.ids[side].append(found)
        elif verb == "remove":
            del self.ids[side][at]
        self.sides = new

    def optimum(self, sides):
        return gm.assign(gm.PointCosts(*sides, self.metric), **self.options)

    def check(self):
        a, expected = self.session.solve(), self.optimum(self.sides)
        assert a.proven
        assert [a.row_ids.tolist(), a.col_ids.tolist()] == self.ids
        gm.verify(gm.PointCosts(*self.sides, self.metric), a)
        gm.verify(self.session.costs(), a)
        limit = self.options["cost_limit"] or 0.0
        worth = [each.objective - limit * each.size for each in (a, expected)]
        assert abs(worth[0] - worth[1]) <= a.gap + expected.gap + 1e-12 * abs(expected.objective)
        self.session.set_row(int(a.row_ids[0]), self.sides[0][0]) if self.ids[0] else None
        assert abs(self.session.objective - limit * self.session.solve().size - worth[1]) <= 1e-9

    def check_price(self):
        before = self.session.objective
        price, sides = self.change(self.session.price_of)
        if self.options["cost_limit"] is None:
            assert abs(before + price - self.optimum(sides).objective) <= 1e-9
        assert self.session.objective == before


def run_points(seed: int, changes: int, *, between: int | None = None) -> None:
    """Make random changes of points, one or a few between two comparisons."""
    drawn = DrawnPoints(seed)
    drawn.check()
    between = between or 1 + seed % 3
    for k in range(changes):
        drawn.change()
        if k % between == 0:
            drawn.check()
            drawn.check_price()


def run_graph(seed: int, changes: int, *, put: Any = np.asarray, between: int = 1) -> None:
    """Add and remove random edges of a graph, and compare sizes; ``put`` says where it is."""
    rng = np.random.default_rng(seed)
    A = rng.random(rng.integers(0, 12, 2)) < rng.choice([0.05, 0.15, 0.3])
    session = gm.GraphSession(put(A))
    for k in range(changes):
        rows, cols = A.nonzero()
        if rng.random() < 0.5 and A.size:
            rows, cols = (rng.integers(0, size, rng.integers(0, 4)) for size in A.shape)
            count = min(rows.size, cols.size)
            rows, cols = rows[:count], cols[:count]
            session.add_edges(put(rows), put(cols))
            A[rows, cols] = True
        elif rows.size:
            pick = rng.choice(rows.size, min(rows.size, int(rng.integers(1, 4))), replace=False)
            session.remove_edges(put(rows[pick]), put(cols[pick]))
            A[rows[pick], cols[pick]] = False
        if k % between:
            continue
        m = session.solve()
        assert m.size == gm.maximum_matching(A).size
        gm.verify(put(A), m)
        assert session.graph().to_host().to_csr().toarray().tolist() == A.tolist()
