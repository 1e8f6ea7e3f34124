"""What is read of the CUDA sources: constants, enumerators, structs and their values."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from gpumatch.cuda.structs import Declarations

TEXT = """
constexpr int kSmall = 3;  // and so on
constexpr long long kFar = 0x7fffffffffffffffll;
constexpr unsigned kShifted = 1u << 5;
constexpr int kProduct = 2 * kSmall;
constexpr int kBelow = -2;
enum Stage { kFirst, kSecond, kParts };
using Distance = unsigned long long;

struct __align__(16) Pair {
  long long base;
  int row;  // of the pair
};

template <typename T>
struct Queue {
  T* items;
  int* size;
};

template <typename Cost, bool kAligned>
struct alignas(4 * sizeof(Cost)) All {
  static constexpr int kWidth = 4;
  const Cost* costs;
  int first;
  int second[kParts];
  Number<Cost> number;
  Distance far;
  Pair* pairs[2];
  Queue<int> hubs;
  unsigned char mark;

  __device__ int length() const { return second[0]; }
};
"""


@pytest.fixture(scope="module")
def declared():
    return Declarations(TEXT)


def array(address):
    return SimpleNamespace(data=SimpleNamespace(ptr=address))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("kSmall", 3), ("kFar", 2**63 - 1), ("kShifted", 32), ("kProduct", 6), ("kBelow", -2)),
        *(("kFirst", 0), ("kSecond", 1), ("kParts", 2)),
    ],
)
def test_constants_and_enumerators_are_read(declared, name, value):
    assert declared.constant(name) == value


def test_a_struct_with_its_arguments_has_the_compilers_layout(declared):
    struct = declared.struct("All<float, true>")
    offsets = {name: offset for name, (_, offset, *_) in struct.dtype.fields.items()}
    assert offsets == {
        **{"costs": 0, "first": 8, "second": 12, "number": 24, "far": 32},
        **{"pairs": 40, "hubs": 56, "mark": 72},
    }
    assert struct.dtype["number"] == np.float64
    assert declared.struct("All<int, true>").dtype["number"] == np.int64
    assert struct.nbytes == struct.dtype.itemsize == 80
    assert declared.struct("All<double, true>").nbytes == 96  # the next multiple of 32
    assert declared.struct("Pair").nbytes == 16


VALUES = {
    **{"costs": array(11), "first": 1, "second": (2, 3), "number": 0.5, "far": 2**64 - 1},
    **{"pairs": (array(12), None), "hubs": {"items": np.uintp(13), "size": array(14)}, "mark": 7},
}


def test_a_value_holds_addresses_and_numbers_where_they_belong(declared):
    struct = declared.struct("All<float, false>")
    passed = struct(**VALUES)
    assert passed.dtype == f"V{struct.dtype.itemsize}"  # CuPy would look into fields at each launch
    made = passed.view(struct.dtype)
    assert made["costs"] == 11
    assert made["first"] == 1
    assert made["second"].tolist() == [2, 3]
    assert made["number"] == 0.5
    assert made["far"] == 2**64 - 1
    assert made["pairs"].tolist() == [12, 0]
    assert made["hubs"].tolist() == (13, 14)
    assert made["mark"] == 7


def test_members_that_are_missing_or_unknown_are_named(declared):
    struct = declared.struct("All<float, false>")
    with pytest.raises(TypeError, match=r"All<float, false>: missing or unknown \['mark'\]"):
        struct(**{name: value for name, value in VALUES.items() if name != "mark"})
    with pytest.raises(TypeError, match=r"\['extra'\]"):
        struct(**VALUES, extra=1)
    with pytest.raises(KeyError, match="mark"):
        struct(**{"marks" if name == "mark" else name: value for name, value in VALUES.items()})


def test_numbers_that_do_not_fit_are_refused(declared):
    with pytest.raises(OverflowError):
        declared.struct("All<float, false>")(**VALUES | {"first": 2**31})


def test_what_is_not_understood_is_said():
    with pytest.raises(ValueError, match="not understood: int both, of_them"):
        Declarations("struct Odd {\n  int both, of_them;\n};\n").struct("Odd")
