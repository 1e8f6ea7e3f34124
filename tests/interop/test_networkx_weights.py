"""Weights of networkx graphs: exact or refused, by attribute or function, at every door."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpumatch as gm
from gpumatch.costs import SparseCosts
from gpumatch.interop import networkx_backend as backend


def pair(*weights):
    """A row with an edge of each weight."""
    G = nx.Graph()
    G.add_weighted_edges_from(("a", k, weight) for k, weight in enumerate(weights))
    return G


def from_graph(G):
    return SparseCosts.from_networkx(G, row_nodes=["a"]).weights


def by_function(G):
    weight = lambda u, v, own: own["weight"]  # noqa: E731
    return SparseCosts.from_networkx(G, weight, ["a"]).weights


def converted(G):
    values = backend.convert_from_nx(G, edge_attrs={"weight": 1}).values["weight"]
    return values[: values.size // 2]


def matched_by_backend(G):
    """Some weights are refused when the graph is converted, others when it is matched."""
    graph = backend.convert_from_nx(G, edge_attrs={"weight": 1})
    return backend.minimum_weight_full_matching(graph, ["a"])


DOORS = pytest.mark.parametrize("weights_of", [from_graph, by_function, converted])

EXACT = {
    "ints": ((3, -4), "i8"),
    "the largest": ((2**40, -(2**60)), "i8"),
    "bools": ((True, False), "?"),
    "bools and ints": ((True, 2), "i8"),
    "NumPy's ints": ((np.int8(-3), np.uint64(5)), "i8"),
    "NumPy's bools": ((np.True_, 3), "i8"),
    "ints of any size": ((np.uint64(2**53 + 1), np.int64(-1)), "i8"),
    "arrays of no dimension": ((np.array(3), 2**53 + 1), "i8"),
    "ints as objects": ((np.array(2**53 + 1, object), 1), "i8"),
    "floats": ((0.1, -2.5), "f8"),
    "float32": ((np.float32(0.1), np.float32(3)), "f4"),
    "float16 and ints": ((np.float16(0.1), 3), "f8"),
    "ints and floats": ((2**53, 0.5), "f8"),
    "large floats": ((1e300, 1.5), "f8"),
    "halves": ((Fraction(1, 2), 2), "f8"),
    "fractions that are ints": ((Fraction(4, 2), Fraction(3)), "f8"),
    "decimals": ((Decimal("0.25"), Decimal(3)), "f8"),
    "powers of two": ((2**70, -(2**71)), "f8"),
    "zeros": ((Fraction(0), Fraction(0)), "f8"),
}


@DOORS
@pytest.mark.parametrize("name", EXACT)
def test_numbers_of_every_kind_are_kept_exactly(weights_of, name):
    weights, dtype = EXACT[name]
    found = weights_of(pair(*weights))
    kept = [number.item() if isinstance(number, np.generic) else number for number in found]
    given_ = [number.item() if hasattr(number, "item") else number for number in weights]
    assert [Fraction(number) for number in kept] == [Fraction(number) for number in given_]
    assert found.dtype.kind == np.dtype(dtype).kind


REFUSED = {
    "beyond int64": ((2**63 + 1, 2**63 + 5), "too large|exactly"),
    "beyond int64, negative": ((2**63 + 1, -5), r"9223372036854775809 is in no 64-bit"),
    "ints too large to add": ((2**70, 2**70 + 2**18), "sums of weights like .* exactly"),
    "too large for any float": ((10**400, 1), r"1000000.*… is in no 64-bit integer"),
    "ints among floats": ((2**53 + 1, 0.5), r"9007199254740993 is in no 64-bit"),
    "NumPy's ints among floats": ((np.int64(2**53 + 1), np.float64(0.5)), "is in no 64-bit"),
    "thirds": ((Fraction(1, 3), 1), "1/3 is in no 64-bit"),
    "decimals": ((Decimal("0.1"), 1), "1/10 is in no 64-bit"),
    "huge decimals": ((Decimal("1e999999999"), 1), "is beyond the range of float64"),
    "small fractions": ((Fraction(1, 2**60), 1), "sums of weights like 1 are in no"),
    "text": (("3", 1), r"must be a number at every edge: one is '3', of type str"),
    "text alone": (("3", "4"), "must be a number at every edge"),
    "complex": ((1 + 2j, 1), r"one is \(1\+2j\), of type complex"),
    "lists": (([1, 2], [3, 4]), r"one is \[1, 2\], of type list"),
    "lists of several lengths": (([1, 2], [3]), r"of type list"),
    "times": ((np.timedelta64(5, "s"), 1), "of type timedelta64"),
    "dicts": (({"value": 3}, 1), "of type dict"),
}


@DOORS
@pytest.mark.parametrize("name", REFUSED)
def test_numbers_that_would_be_rounded_are_refused(weights_of, name):
    weights, says = REFUSED[name]
    G = pair(*weights)
    if weights_of is converted:
        with pytest.raises(NotImplementedError, match=says):
            matched_by_backend(G)
    else:
        with pytest.raises((ValueError, TypeError), match=says):
            weights_of(G)


@given(st.lists(st.one_of(
    st.integers(-(2**80), 2**80), st.fractions(), st.floats(), st.decimals(), st.booleans(),
    st.sampled_from([np.uint64(2**64 - 1), np.int64(-1), np.float32(0.1), None, "1"]),
), min_size=1, max_size=4))  # fmt: skip
def test_any_weights_are_exact_or_refused(weights):
    try:
        found = SparseCosts.from_networkx(pair(*weights), row_nodes=["a"]).weights
    except (ValueError, TypeError):
        return
    for kept, own in zip(found, weights):
        if isinstance(own, (np.generic, bool)):
            own = own.item() if isinstance(own, np.generic) else int(own)
        assert (own == kept.item()) or (math.isinf(own) and own == kept)


@pytest.mark.parametrize("weight", [None, math.nan, Decimal("nan")])
def test_what_is_no_number_yet(weight):
    with pytest.raises(ValueError, match="is NaN or None"):
        gm.assign(pair(1, weight), row_nodes=["a"])
    with pytest.raises(NotImplementedError, match="is NaN or None"):
        matched_by_backend(pair(1, weight))


# By a function, or by no attribute --------------------------------------------------------------


@pytest.mark.parametrize("objective", ["sum", "bottleneck"])
@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph])
def test_a_function_gives_the_weights(kind, objective):
    G = kind()
    G.add_edge("x", "a", km=7)  # from a column to a row
    G.add_edge("a", "y", km=2)
    G.add_edge("b", "y", km=1)
    seen = []

    def weight(u, v, own):
        seen.append((u, v))
        return own["km"] * (10 if "a" in (u, v) else 1)

    a = gm.assign(G, weight=weight, row_nodes=["a", "b"], objective=objective)
    assert a.objective == (71 if objective == "sum" else 70)
    if kind is nx.Graph:
        assert set(seen) == {("a", "x"), ("a", "y"), ("b", "y")}
    else:
        assert set(seen) == set(G.edges)
    assert len(seen) == 3


def test_a_function_may_fail_as_it_likes():
    with pytest.raises(KeyError, match="km"):
        gm.assign(pair(1, 2), weight=lambda u, v, own: own["km"], row_nodes=["a"])
    with pytest.raises(ValueError, match="is NaN or None"):
        gm.assign(pair(1, 2), weight=lambda u, v, own: None, row_nodes=["a"])
    with pytest.raises(ValueError, match="a multigraph may have several"):
        gm.assign(nx.MultiGraph([(0, 1)]), weight=lambda u, v, own: 1)
    assert gm.assign(nx.Graph(), weight=lambda u, v, own: 1).size == 0


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph])
def test_an_attribute_that_no_edge_has_is_an_error(kind):
    G = kind([("a", "x", {"cost": 3, "km": 1}), ("a", "y", {"cost": 1})])
    for weight in ("weight", "cots"):
        says = f"no edge has the attribute '{weight}', but 'cost', 'km'"
        with pytest.raises(ValueError, match=says):
            gm.assign(G, weight=weight, row_nodes=["a"])
    assert gm.assign(G, weight="km", row_nodes=["a"]).objective == 1
    assert gm.assign(G, weight=None, row_nodes=["a"]).objective == 1
    bare = kind([("a", "x"), ("a", "y")])
    assert gm.assign(bare, row_nodes=["a"]).objective == 1
    with pytest.raises(ValueError, match="no edge has the attribute 'cost', but none at all"):
        gm.assign(bare, weight="cost", row_nodes=["a"])
    assert gm.assign(nx.empty_graph(2), weight="cost", cardinality="maximum").size == 0


def test_networkx_itself_takes_1_for_what_no_edge_has():
    G = pair(5, 3)
    for weight in ("cots", len):  # a function is a name like others there
        graph = backend.convert_from_nx(G, edge_attrs={weight: 1})
        assert graph.value(weight).tolist() == [1] * 4
        assert len(backend.minimum_weight_full_matching(graph, ["a"], weight)) == 2
