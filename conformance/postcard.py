"""Reads control messages by the table in docs/wire.md: postcard's encoding, as far as they need it.

A type is a name of a number or text, or one of the classes below. Values come out as JSON has them.
"""

from collections import namedtuple

Option = namedtuple("Option", "of")
List = namedtuple("List", "of")
Tuple = namedtuple("Tuple", "of")
Struct = namedtuple("Struct", "fields")
# Variants in order: each a name and its fields, one type, or None.
Enum = namedtuple("Enum", "variants")

BITS = {"u16": 16, "u32": 32, "u64": 64}
BYTES = List("u8")

RANKS = List(Tuple(("u32", "u32")))
CLAIM = Enum((
    ("Started", Struct((("rank", "u32"),))),
    ("Attached", Struct((("rank", Option("u32")),))),
))
WAIT = Enum((("All", None), ("Timeout", Struct((("milliseconds", "u32"),))), ("Immediate", None)))
POLICY = Enum((("Block", None), ("DropOldest", None)))
FILTER = Struct((("name", "text"), ("format", BYTES), ("parameters", BYTES)))
STREAM = Struct((
    ("stream", "u32"), ("members", RANKS), ("up", List(FILTER)), ("down", List(FILTER)),
    ("wait", WAIT), ("policy", POLICY), ("window_bytes", "u32"), ("height", "u32"),
    ("first_wave", "u64"),
))
CONTROL = Enum((
    ("Hello", Struct((
        ("version", "u16"), ("claim", CLAIM), ("pid", "u32"), ("address", Option("text"))))),
    ("Welcome", Struct((
        ("parent", "u32"), ("rank", "u32"), ("back_ends", "u32"), ("plan", BYTES)))),
    ("Refused", Struct((("reason", "text"),))),
    ("Reached", Struct((
        ("back_ends", RANKS), ("attach_points", List(Tuple(("u32", "text", RANKS))))))),
    ("Failed", Struct((("rank", "u32"), ("text", "text")))),
    ("Lost", Struct((("rank", "u32"), ("back_ends", RANKS), ("reason", "text")))),
    ("Open", STREAM),
    ("Close", Struct((("stream", "u32"),))),
    ("Fault", Struct((
        ("stream", "u32"), ("wave", "u64"), ("rank", "u32"), ("back_ends", RANKS),
        ("reason", "text")))),
    ("Credit", Struct((("stream", "u32"), ("bytes", "u32")))),
    ("Acknowledge", Struct((("stream", "u32"), ("wave", "u64")))),
    ("Shutdown", None),
    ("Leaving", None),
    ("Probe", Struct((("number", "u64"),))),
    ("Echo", Struct((("number", "u64"),))),
))


class PostcardError(Exception):
    """The bytes are no message."""


def read_control(data, at):
    """The message that begins at a place, and where it ends."""
    return read(CONTROL, data, at)


def read(kind, data, at):
    """A value of a type, and where it ends."""
    if kind == "u8":
        return byte(data, at), at + 1
    if kind in BITS:
        return number(BITS[kind], data, at)
    if kind == "text":
        return text(data, at)
    return READERS[type(kind)](kind, data, at)


def byte(data, at):
    """One byte."""
    if at >= len(data):
        raise PostcardError
    return data[at]


def number(bits, data, at):
    """7 bits a byte, the lowest first; the high bit says that more follow."""
    value = 0
    for shift in range(0, bits, 7):
        part = byte(data, at)
        at += 1
        value |= (part & 127) << shift
        if part < 128:
            if value >> bits:
                raise PostcardError
            return value, at
    raise PostcardError


def text(data, at):
    """Length in bytes, then UTF-8."""
    length, at = number(64, data, at)
    if length > len(data) - at:
        raise PostcardError
    try:
        return data[at:at + length].decode("utf-8"), at + length
    except UnicodeDecodeError:
        raise PostcardError from None


def read_option(kind, data, at):
    """0, or 1 and the value."""
    there = byte(data, at)
    if there > 1:
        raise PostcardError
    return read(kind.of, data, at + 1) if there else (None, at + 1)


def read_list(kind, data, at):
    """Count, then the elements."""
    count, at = number(64, data, at)
    if count > len(data):
        raise PostcardError
    elements = []
    for _ in range(count):
        element, at = read(kind.of, data, at)
        elements.append(element)
    return elements, at


def read_tuple(kind, data, at):
    """The elements."""
    elements = []
    for element in kind.of:
        value, at = read(element, data, at)
        elements.append(value)
    return elements, at


def read_struct(kind, data, at):
    """The fields in order."""
    fields = {}
    for name, field in kind.fields:
        fields[name], at = read(field, data, at)
    return fields, at


def read_enum(kind, data, at):
    """Number of the variant, then its fields."""
    variant, at = number(32, data, at)
    if variant >= len(kind.variants):
        raise PostcardError
    name, content = kind.variants[variant]
    if content is None:
        return name, at
    value, at = read(content, data, at)
    return {name: value}, at


READERS = {
    Option: read_option, List: read_list, Tuple: read_tuple, Struct: read_struct, Enum: read_enum,
}
