"""The paper's tree kernel has each rule of the reference, checked where there is no GPU.

test_date2016.py compares their states on a device, test_date2016_emulated.py on the CPU, which
takes longer. A rule that is changed on one side has to be changed on the other too, and tried
there.
"""

from __future__ import annotations

import inspect
import re
from operator import attrgetter
from pathlib import Path

import pytest

import gpumatch.cuda
from gpumatch.reference import date2016 as reference

SOURCE = Path(gpumatch.cuda.__file__).parent / "assignment" / "hungarian" / "tree_paper.cu"

RULES = [
    (
        "Tree.first_frontier",
        "self.state.row_mark[~self.state.row_cover] = ACTIVE",
        "check",
        "s.row_mark[i] = p.wants(i) ? kActive : kInactive;",
    ),
    (
        "Tree.contract",
        "return compact(self.state.row_mark == ACTIVE, grid=self.grid)",
        "contract",
        "[&](int i) { return s.row_mark[i] == kActive; }",
    ),
    ("expand_tree", "cols = np.flatnonzero(~state.col_cover)", "visit", "== kVisited) return;"),
    (
        "lower_slacks",
        "is_lower = least < state.slack[cols]",
        "visit",
        "if (from.row >= 0 && from.reach - p.col_dual[col] < slack) {",
    ),
    ("expand_tree", "is_tight = state.slack[cols] == 0", "visit", "if (slack != 0) return;"),
    (
        "expand_tree",
        "state.col_mark[cols[is_tight & ~has_mate]] = REVERSE",
        "visit",
        "s.col_mark[col] = mate == -1 ? kEnd : kVisited;",
    ),
    (
        "expand_tree",
        "state.row_mark[frontier] = VISITED",
        "expand_frontier",
        "s.row_mark[t.members[k].row] = kVisited;",
    ),
    (
        "iterations",
        "ends = compact(state.col_mark == REVERSE, grid=grid)",
        "find_leaves",
        "if (leaf < p.ncols) return s.col_mark[leaf] == kEnd;",
    ),
    (
        "Tree.update",
        "theta = slack[slack > 0].min(initial=far)",
        "find_theta",
        "if (s.slack[col] > 0) own = min(own, s.slack[col]);",
    ),
    (
        "update_tree",
        "changes = (state.slack > 0) & (state.slack < state.slacks.far)",
        "update_duals",
        "if (slack == 0 || slack == kNever) continue;",
    ),
    (
        "update_tree",
        "state.row_mark[state.col_pred[changes & (state.slack == 0)]] = ACTIVE",
        "update_duals",
        "if (slack == theta) s.row_mark[t.col_pred[col]] = kActive;",
    ),
]
"""Function and text of the reference, function and text of the kernel that stands for it."""


def in_one_line(text):
    return " ".join(re.sub(r"//.*", "", text).split())


def function_of_kernel(name):
    """From the function's name to the end of what is not indented."""
    found = re.search(rf"__device__[^;{{}}]*?\b{name}\(.*?\n\}}", SOURCE.read_text(), re.DOTALL)
    assert found is not None, f"{SOURCE.name} has no function {name}"
    return in_one_line(found[0])


@pytest.mark.parametrize(
    ("method", "rule", "function", "text"), RULES, ids=[f"{r[2]}-{i}" for i, r in enumerate(RULES)]
)
def test_the_kernel_has_each_rule_of_the_reference(method, rule, function, text):
    assert rule in in_one_line(inspect.getsource(attrgetter(method)(reference)))
    assert text in function_of_kernel(function)
