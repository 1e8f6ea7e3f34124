"""The declarations of a CUDA source, for the host: its structs as dtypes and values, its constants.

The C++ is the one description. This module reads of it what the sources here need: `constexpr`
integers and unnumbered enumerations outside functions, aliases of types, and the data members of
structs, which come before their functions. `layout_assertions` lets the compiler check the result.
"""

from __future__ import annotations

import functools
import re
import struct
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Declarations", "Struct", "address"]

_TYPES = {
    "bool": np.bool_,
    "unsigned char": np.uint8,
    "int": np.int32,
    "unsigned": np.uint32,
    "long long": np.int64,
    "unsigned long long": np.uint64,
    "float": np.float32,
    "double": np.float64,
    # numbers.cuh
    "Number<int>": np.int64,
    "Number<long long>": np.int64,
    "Number<float>": np.float64,
    "Number<double>": np.float64,
}
_COMMENT = re.compile(r"//.*")
_CONSTANT = re.compile(r"^constexpr [\w ]+ (k\w+) = ([^;]+);", re.MULTILINE)
_ENUM = re.compile(r"^enum \w+ \{([^}]+)\};", re.MULTILINE)
_ALIAS = re.compile(r"^using (\w+) = ([\w ]+);", re.MULTILINE)
_STRUCT = re.compile(
    r"^(?:template <(?P<parameters>[^<>]+)>\n)?"
    r"struct (?:(?:__align__|alignas)\((?P<alignment>[^\n]+)\) )?(?P<name>\w+) \{\n"
    r"(?P<body>.*?)\n\};",
    re.MULTILINE | re.DOTALL,
)
_MEMBER = re.compile(
    r"(?:const )?(?P<type>[\w ]+?(?:<.*>)?) ?(?P<pointer>\*?) ?(?P<name>\w+)(?:\[(?P<count>\w+)\])?"
)


def address(array: Any, offset: int = 0) -> np.uintp:
    """The address of byte `offset` of an array on the device: quicker than a slice."""
    return np.uintp(array.data.ptr + offset)


class Declarations:
    """The declarations in the text of a source with its headers in place."""

    def __init__(self, text: str) -> None:
        text = _COMMENT.sub("", text)
        self._constants = dict(_CONSTANT.findall(text))
        for names in _ENUM.findall(text):
            for number, name in enumerate(names.split(",")):
                self._constants[name.strip()] = str(number)
        self._aliases = dict(_ALIAS.findall(text))
        self._structs = {match["name"]: match for match in _STRUCT.finditer(text)}

    def constant(self, name: str) -> int:
        """The value of a constant or an enumerator."""
        text = re.sub(r"\bk\w+", lambda other: str(self.constant(other[0])), self._constants[name])
        return self._value(text)

    @functools.cache  # noqa: B019  there are few, kept as long as their source
    def struct(self, name: str) -> Struct:
        """A struct by its C++ name; that of a template with its arguments."""
        base, _, arguments = name.partition("<")
        match = self._structs[base]
        bound = dict(zip(_parameters(match["parameters"]), _arguments(arguments.removesuffix(">"))))
        members = match["body"].split("__device__")[0]
        fields = [
            field
            for statement in members.split(";")
            for field in self._fields(_bind(" ".join(statement.split()), bound))
        ]
        alignment = self._value(self._sizes(_bind(match["alignment"] or "1", bound)))
        return Struct.of(name, fields, alignment)

    def _fields(self, statement: str) -> Iterator[_Field]:
        if statement == "" or statement.startswith(("using ", "static ")):
            return
        member = _MEMBER.fullmatch(statement)
        if member is None:
            raise ValueError(f"a member that is not understood: {statement}")
        count = None
        if member["count"] is not None:
            text = member["count"]
            count = int(text) if text.isdigit() else self.constant(text)
        convert: Callable[[Any], Any]
        if member["pointer"]:
            kind, convert = np.dtype(np.uintp), _pointer
        else:
            kind, convert = self._kind(member["type"])
        yield _Field(member["name"], kind, count, convert)

    def _kind(self, name: str) -> tuple[np.dtype, Callable[[Any], Any]]:
        name = self._aliases.get(name, name)
        if name in _TYPES:
            return np.dtype(_TYPES[name]), _same
        struct = self.struct(name)
        return struct.dtype, struct.contents_of

    def _sizes(self, text: str) -> str:
        return re.sub(r"sizeof\(([^()]+)\)", lambda of: str(self._kind(of[1])[0].itemsize), text)

    @staticmethod
    def _value(text: str) -> int:
        text = re.sub(r"\b(0x[0-9a-f]+|\d+)u?l*\b", r"\1", text)
        value = 1
        for factor in text.split("*"):
            shifted = [int(part, 0) for part in factor.split("<<")]
            value *= shifted[0] << sum(shifted[1:])
        return value


class _Field(NamedTuple):
    name: str
    kind: np.dtype
    length: int | None  # of an array
    convert: Callable[[Any], Any]

    def of(self, value: Any) -> Any:
        if self.length is None:
            return self.convert(value)
        return tuple(self.convert(one) for one in value)


class Struct(NamedTuple):
    """A struct: its C++ name, its mirror, and how values of it are made."""

    name: str
    fields: tuple[_Field, ...]
    dtype: np.dtype
    nbytes: int
    packed: struct.Struct | None  # how members are packed, which is quicker, if all are numbers
    makers: tuple[tuple[str, Callable[[Any], Any]], ...]  # of each member's contents

    @classmethod
    def of(cls, name: str, fields: list[_Field], alignment: int) -> Struct:
        dtype = np.dtype(
            [(f.name, f.kind) if f.length is None else (f.name, f.kind, f.length) for f in fields],
            align=True,
        )
        nbytes = -(-dtype.itemsize // alignment) * alignment
        packed = None
        if all(f.length is None and f.kind.names is None for f in fields):
            text = "@" + "".join(f.kind.char for f in fields)
            packed = struct.Struct(text + "x" * (dtype.itemsize - struct.calcsize(text)))
        makers = tuple((f.name, f.convert if f.length is None else f.of) for f in fields)
        return cls(name, tuple(fields), dtype, nbytes, packed, makers)

    def __call__(self, **values: Any) -> np.ndarray:
        """A value for a kernel to take: arrays for pointers, None for a null pointer."""
        as_bytes = f"V{self.dtype.itemsize}"  # CuPy is slow to look into fields
        contents = self.contents_of(values)
        if self.packed is None:
            return np.array(contents, self.dtype).view(as_bytes)
        return np.ndarray((), as_bytes, self.packed.pack(*contents))

    def contents_of(self, values: dict[str, Any]) -> tuple[Any, ...]:
        if len(values) != len(self.fields):
            unknown = values.keys() ^ {field.name for field in self.fields}
            raise TypeError(f"{self.name}: missing or unknown {sorted(unknown)}")
        return tuple([of(values[name]) for name, of in self.makers])

    def layout_assertions(self) -> Iterator[str]:
        """C++ that does not compile if the mirror is wrong."""
        yield f"static_assert(sizeof({self.name}) == {self.nbytes});"
        for name, (kind, offset, *_) in (self.dtype.fields or {}).items():
            yield f"static_assert(__builtin_offsetof({self.name}, {name}) == {offset});"
            yield f"static_assert(sizeof({self.name}::{name}) == {kind.itemsize});"


def _pointer(value: Any) -> Any:
    if value is None:
        return 0
    return value if isinstance(value, (int, np.uintp)) else value.data.ptr


def _same(value: Any) -> Any:
    return value


def _parameters(text: str | None) -> list[str]:
    """The names in a template's parameter list."""
    return [] if text is None else [parameter.split()[-1] for parameter in text.split(",")]


def _arguments(text: str) -> list[str]:
    return [argument.strip() for argument in text.split(",")]


def _bind(text: str, bound: dict[str, str]) -> str:
    """The text with a template's arguments in the place of its parameters."""
    if not bound:
        return text
    return re.sub(rf"\b({'|'.join(bound)})\b", lambda name: bound[name[0]], text)
