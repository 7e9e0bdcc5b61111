"""Reads control messages by the table in docs/wire.md: postcard's encoding, as far as they need it.

A type is a name of a number or text, or one of the classes below. Values come out as JSON has them.
What breaks a rule or one of the limits of docs/wire.md is refused.
"""

from collections import namedtuple

Option = namedtuple("Option", "of")
# Its elements, how many there are at most and at least, and whether they are ranges of a rank set.
List = namedtuple("List", "of most is_rank_set least", defaults=(None, False, 0))
# `count` elements, encoded without a count.
Array = namedtuple("Array", "of count")
Tuple = namedtuple("Tuple", "of")
Struct = namedtuple("Struct", "fields")
# Variants in order: each a name and its fields, one type, or None.
Enum = namedtuple("Enum", "variants")

BITS = {"u16": 16, "u32": 32, "u64": 64}
BYTES = List("u8")
DIGEST = Array("u8", 32)

# The limits of docs/wire.md.
RANGES_MAX = 1 << 19
TEXT_BYTES_MAX = 4096
FILTERS_MAX = 64
ATTACH_POINTS_MAX = 1 << 17
ANCESTORS_MAX = 64
ORPHANS_MAX = 1 << 17
AFFECTED_MAX = 4096
QUESTION_BYTES_MAX = 1024
REPLY_BYTES_MAX = 1 << 20
STATE_DIRECTIVES_MAX = 64
STATE_BYTES_MAX = 1 << 20
FILES_MAX = 64
FILE_NAME_BYTES_MAX = 255
FILE_PART_BYTES_MAX = 64 << 10

# How long a text may be in bytes.
TEXTS = {"text": None, "reason": TEXT_BYTES_MAX, "file_name": FILE_NAME_BYTES_MAX}

RANKS = List(Tuple(("u32", "u32")), RANGES_MAX, True)
ANCESTORS = List(Tuple(("u32", "text")), ANCESTORS_MAX)
PLACE = Tuple(("u64", "u64"))
CLAIM = Enum((
    ("Started", Struct((("rank", "u32"),))),
    ("Attached", Struct((("rank", Option("u32")),))),
    ("Orphan", Struct((("rank", "u32"), ("between", List("u32", ANCESTORS_MAX))))),
    ("Visitor", None),
    ("Joining", None),
))
CAUSE = Enum((
    ("Other", None), ("Left", None), ("Died", None), ("Exited", Struct((("status", "u32"),))),
    ("Killed", Struct((("signal", "u32"),))), ("Silent", None), ("NeverStarted", None), ("Late", None),
    ("Skipped", None), ("Away", None), ("FilterFailed", None), ("Refused", None), ("OutOfMemory", None),
))
LOSS = Struct((("rank", "u32"), ("back_ends", RANKS), ("reason", "reason"), ("cause", CAUSE)))
PROBE = Enum((("Heartbeat", "u64"), ("Barrier", "u64")))
TERMS = Struct((
    ("is_on", "bool"), ("orphan_limit", "u32"), ("grace", "u32"), ("silence", "u32"),
    ("front_end_wait", "u32"),
))
WAIT = Enum((("All", None), ("Timeout", Struct((("milliseconds", "u32"),))), ("Immediate", None)))
POLICY = Enum((("Block", None), ("DropOldest", None)))
FILTER = Struct((("name", "text"), ("format", BYTES), ("parameters", BYTES)))
FILTERS = List(FILTER, FILTERS_MAX)
STREAM = Struct((
    ("stream", "u32"), ("members", RANKS), ("up", FILTERS), ("down", FILTERS), ("wait", WAIT),
    ("policy", POLICY), ("window_bytes", "u32"), ("height", "u32"), ("first_wave", "u64"),
    ("rule", Option(FILTER)), ("at_back_ends", "bool"),
))
CONTROL = Enum((
    ("Hello", Struct((
        ("version", "u16"), ("claim", CLAIM), ("pid", "u32"), ("address", Option("text"))))),
    ("Welcome", Struct((
        ("parent", "u32"), ("rank", "u32"), ("back_ends", "u32"), ("plan", BYTES),
        ("ancestors", ANCESTORS), ("terms", TERMS), ("is_responsive", "bool")))),
    ("Refused", Struct((("reason", "reason"),))),
    ("Reached", Struct((
        ("back_ends", RANKS),
        ("attach_points", List(Tuple(("u32", "text", RANKS)), ATTACH_POINTS_MAX))))),
    ("Failed", Struct((("rank", "u32"), ("text", "reason")))),
    ("Lost", LOSS),
    ("Open", STREAM),
    ("Close", Struct((("stream", "u32"),))),
    ("Fault", Struct((
        ("stream", "u32"), ("wave", Option("u64")), ("rank", "u32"), ("back_ends", RANKS),
        ("reason", "reason"), ("cause", CAUSE)))),
    ("Credit", Struct((("stream", "u32"), ("bytes", "u32")))),
    ("Acknowledge", Struct((
        ("stream", "u32"), ("wave", "u64"), ("offset", "u64"), ("singles", "u64")))),
    ("Shutdown", None),
    ("Leaving", None),
    ("Probe", Struct((("probe", PROBE),))),
    ("Echo", Struct((("probe", Option(PROBE)), ("clock", "u64")))),
    ("Rejoin", Struct((
        ("back_ends", RANKS), ("covers", RANKS), ("former", RANKS),
        ("files", List(DIGEST, FILES_MAX))))),
    ("Resume", Struct((("stream", "u32"), ("up", PLACE), ("down", PLACE)))),
    ("Resumed", None),
    ("Dissolve", None),
    ("Ancestry", Struct((("ancestors", ANCESTORS), ("repairs", "bool")))),
    ("Broken", LOSS),
    ("Repaired", Struct((
        ("rank", "u32"), ("adopter", "u32"), ("orphans", List("u32", ORPHANS_MAX)),
        ("back_ends", RANKS), ("waves", List(Tuple(("u32", "u64", "u64")), AFFECTED_MAX))))),
    ("Question", Struct((("bytes", List("u8", QUESTION_BYTES_MAX)),))),
    ("Reply", Struct((("is_last", "bool"), ("bytes", List("u8", REPLY_BYTES_MAX))))),
    ("State", Struct((
        ("stream", "u32"), ("filter", "u32"), ("wave", "u64"),
        ("format", List("u8", STATE_DIRECTIVES_MAX)), ("values", List("u8", STATE_BYTES_MAX)),
        ("absorbed", RANKS)))),
    ("Superseded", Struct((("ranks", RANKS),))),
    ("File", Struct((
        ("name", "file_name"), ("digest", DIGEST), ("total", "u32"), ("offset", "u32"),
        ("bytes", List("u8", FILE_PART_BYTES_MAX, False, 1))))),
    ("Referred", Struct((("rank", "u32"), ("reason", "reason")))),
    ("Notice", Struct((("rank", "u32"), ("text", "reason")))),
))


class PostcardError(Exception):
    """The bytes are no message; says why."""


def read_control(data, at):
    """The message that begins at a place, and where it ends."""
    return read(CONTROL, data, at)


def read(kind, data, at):
    """A value of a type, and where it ends."""
    if kind == "u8":
        return byte(data, at), at + 1
    if kind in BITS:
        return number(BITS[kind], data, at)
    if kind == "bool":
        return flag(data, at), at + 1
    if kind in TEXTS:
        return text(data, at, TEXTS[kind])
    return READERS[type(kind)](kind, data, at)


def byte(data, at):
    """One byte."""
    if at >= len(data):
        raise PostcardError("cut short")
    return data[at]


def flag(data, at):
    """One byte that is 0 or 1."""
    value = byte(data, at)
    if value > 1:
        raise PostcardError(f"neither 0 nor 1, but {value}")
    return value == 1


def number(bits, data, at):
    """7 bits a byte, the lowest first; the high bit says that more follow."""
    value = 0
    for shift in range(0, bits, 7):
        part = byte(data, at)
        at += 1
        value |= (part & 127) << shift
        if part < 128:
            if value >> bits:
                raise PostcardError(f"a number above {bits} bits")
            return value, at
    raise PostcardError(f"a number of {bits} bits that never ends")


def text(data, at, most):
    """Length in bytes, then UTF-8."""
    length, at = number(64, data, at)
    if length > len(data) - at:
        raise PostcardError("a text longer than its message")
    if most is not None and length > most:
        raise PostcardError(f"a text of {length} bytes, above {most}")
    try:
        return data[at:at + length].decode("utf-8"), at + length
    except UnicodeDecodeError:
        raise PostcardError("a text that is not UTF-8") from None


def read_option(kind, data, at):
    """0, or 1 and the value."""
    return read(kind.of, data, at + 1) if flag(data, at) else (None, at + 1)


def read_list(kind, data, at):
    """Count, then the elements."""
    count, at = number(64, data, at)
    if kind.most is not None and count > kind.most:
        raise PostcardError(f"a list of {count} elements, above {kind.most}")
    if count < kind.least:
        raise PostcardError(f"a list of {count} elements, below {kind.least}")
    if count > len(data) - at:
        raise PostcardError("a list longer than its message")
    elements = []
    for _ in range(count):
        element, at = read(kind.of, data, at)
        elements.append(element)
    if kind.is_rank_set:
        check_order(elements)
    return elements, at


def check_order(ranges):
    """Refuses ranges that run backwards, overlap, touch or are out of order."""
    if any(first > last for first, last in ranges):
        raise PostcardError("a range that runs backwards")
    if any(after[0] <= before[1] + 1 for before, after in zip(ranges, ranges[1:])):
        raise PostcardError("ranges that overlap, touch or are out of order")


def read_array(kind, data, at):
    """The elements."""
    return read_tuple(Tuple((kind.of,) * kind.count), data, at)


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
        raise PostcardError(f"no variant {variant}")
    name, content = kind.variants[variant]
    if content is None:
        return name, at
    value, at = read(content, data, at)
    return {name: value}, at


READERS = {
    Option: read_option, List: read_list, Array: read_array, Tuple: read_tuple,
    Struct: read_struct, Enum: read_enum,
}
