#!/usr/bin/env python3
"""Decodes the golden frames by the drawings in docs/wire.md, knowing nothing of Sapwood's own code.

If this program and the encoder agree on every field of every vector, the drawings say enough to
write another implementation. Control messages are read by the table in postcard.py. Needs nothing
but Python 3.9. Exit code 0 if all agree, 1 if not.
"""

import json
import struct
import sys
from itertools import cycle
from pathlib import Path

from postcard import PostcardError, read_control

VECTORS = Path(__file__).resolve().parent / "vectors"

# The limits of docs/wire.md.
FRAME_BYTES_MAX = 16 << 20
CONTROL_BYTES_MAX = 8 << 20
RANGES_MAX = 1 << 19
PACKET_BYTES_MAX = 1 << 30
DIRECTIVES_MAX = 64
RUN_WAVES_MAX = 64
RUN_BYTES_MAX = 8 << 10

FLAGS = {1: "filtered", 2: "ends_wave", 4: "late", 8: "chunk", 16: "void", 32: "run"}
ORDERS = ("wave", "single", "part", "direct", "last")
SHAPES = {0: "", 1: "a", 2: "A"}
# Code of an element: its letters, and how `struct` calls it.
ELEMENTS = {
    1: ("c", "b"), 2: ("uc", "B"), 3: ("hd", "h"), 4: ("uhd", "H"), 5: ("d", "i"), 6: ("ud", "I"),
    7: ("ld", "q"), 8: ("uld", "Q"), 9: ("f", "f"), 10: ("lf", "d"), 11: ("s", None),
}


class Refused(Exception):
    """A frame breaks a rule; carries the error's name."""


def read_vectors(name):
    """The vectors of a file, each a list of (key, value)."""
    vectors = []
    for paragraph in (VECTORS / name).read_text("utf-8").split("\n\n"):
        lines = [line for line in paragraph.splitlines() if line and not line.startswith("#")]
        fields = [tuple(part.strip() for part in line.split(":", 1)) for line in lines]
        if fields:
            vectors.append(fields)
    return vectors


def field(vector, key):
    """The first value of a key."""
    return next(value for name, value in vector if name == key)


class Reader:
    """Takes parts off a run of bytes."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def left(self):
        return len(self.data) - self.at

    def take(self, count, error):
        if count > self.left():
            raise Refused(error)
        self.at += count
        return self.data[self.at - count:self.at]

    def number(self, kind, error):
        return struct.unpack("<" + kind, self.take(struct.calcsize(kind), error))[0]


def check_prefix(frame):
    """Kind, flags, count and order of a frame whose length is right."""
    if len(frame) < 8:
        raise Refused("Length")
    length, kind, flags, count, order = struct.unpack_from("<IBBBB", frame)
    if kind not in (1, 2):
        raise Refused("Kind")
    least, most = (40, FRAME_BYTES_MAX) if kind == 1 else (9, CONTROL_BYTES_MAX)
    if not least <= length <= most or length % 8 or length != len(frame):
        raise Refused("Length")
    if flags & (~63 if kind == 1 else ~0):
        raise Refused("Kind")
    return kind, flags, count, order


def decode_packet(frame, flags, directives, order):
    """The fields of a packet's frame, as the vectors spell them."""
    stream, tag, wave, origin, number, contributors, destinations = struct.unpack_from(
        "<IiQIIII", frame, 8)
    reader = Reader(frame)
    reader.at = 40
    if flags & 16 and (directives or flags & 8):
        raise Refused("Parts")
    chunk = reader.take(16, "Parts") if flags & 8 else b""
    run = struct.unpack("<II", reader.take(8, "Parts")) if flags & 32 else (0, 0)
    if run[1]:
        raise Refused("Parts")
    codes = reader.take(-(-directives // 8) * 8, "Parts")
    formats = read_format(codes[:directives], codes[directives:])
    fields = [
        ("stream", str(stream)), ("tag", str(tag)), ("wave", str(wave)), ("origin", str(origin)),
        ("order", read_order(order, number, flags, wave)),
        ("flags", " ".join(name for bit, name in FLAGS.items() if flags & bit)),
        ("contributors", read_ranks(reader, contributors)),
        ("destinations", read_ranks(reader, destinations)),
    ]
    spelled = " ".join(f"%{shape}{ELEMENTS[code][0]}" for shape, code in formats)
    if flags & 32:
        return fields + read_run(reader, flags, order, wave, run[0], formats, spelled)
    if chunk:
        offset, total = struct.unpack("<QQ", chunk)
        length = reader.left()
        if not length or offset + length > total or total > PACKET_BYTES_MAX or offset % 8 or total % 8:
            raise Refused("Chunk")
        body = [("body", reader.take(length, "Parts").hex())]
        return fields + [("chunk", f"{offset} {total}"), ("format", spelled)] + body
    fields += [("chunk", ""), ("format", spelled)]
    fields += [("value", read_value(reader, *directive)) for directive in formats]
    if reader.left():
        raise Refused("Packet(Excess)")
    return fields


def read_order(order, number, flags, wave):
    """A packet's order, with the number that only single packets and parts have."""
    if order >= len(ORDERS) or bool(number) != (order in (1, 2)) or wave == (1 << 64) - 1:
        raise Refused("Parts")
    if ORDERS[order] == "last" and (wave or not flags & 16):
        raise Refused("Parts")
    return f"{ORDERS[order]} {number}" if number else ORDERS[order]


def read_run(reader, flags, order, wave, more, formats, spelled):
    """The fields of several waves, whose values are alike and lie one behind another."""
    waves, length = more + 1, reader.left()
    if flags & (4 | 8 | 16) or order > 1 or not flags & 2 or not 2 <= waves <= RUN_WAVES_MAX:
        raise Refused("Parts")
    if len(formats) != 1 or ELEMENTS[formats[0][1]][1] is None or wave + waves >= 1 << 64:
        raise Refused("Parts")
    if not 0 < length <= RUN_BYTES_MAX or length % (8 * waves):
        raise Refused("Parts")
    bodies = [reader.take(length // waves, "Parts") for _ in range(waves)]
    if formats[0][0] and any(body[:8] != bodies[0][:8] for body in bodies):
        raise Refused("Parts")
    values = []
    for body in bodies:
        own = Reader(body)
        values.append(("value", read_value(own, *formats[0])))
        if own.left():
            raise Refused("Packet(Excess)")
    return [("chunk", ""), ("run", str(more)), ("format", spelled)] + values


def read_format(codes, padding):
    """Shape and element of each directive."""
    if any(padding) or len(codes) > DIRECTIVES_MAX:
        raise Refused("Format")
    if any(code >> 4 not in SHAPES or code & 15 not in ELEMENTS for code in codes):
        raise Refused("Format")
    return [(SHAPES[code >> 4], code & 15) for code in codes]


def read_ranks(reader, count):
    """A rank set as text."""
    if count > RANGES_MAX:
        raise Refused("Parts")
    words = struct.unpack(f"<{2 * count}I", reader.take(8 * count, "Parts"))
    ranges = list(zip(words[::2], words[1::2]))
    if any(first > last for first, last in ranges):
        raise Refused("Packet(RankOrder)")
    if any(after[0] <= before[1] + 1 for before, after in zip(ranges, ranges[1:])):
        raise Refused("Packet(RankOrder)")
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)


def read_value(reader, shape, element):
    """One value as text, its padding skipped."""
    cut = "Packet(Truncated)"
    count = reader.number("Q", cut) if shape else 1
    if shape == "a" and count >= 1 << 32:
        raise Refused(cut)
    letter = ELEMENTS[element][1]
    if letter is None:
        # A forged count fails at the first string that is not there.
        return " ".join(read_string(reader) for _ in range(count))
    size = struct.calcsize(letter)
    data = reader.take(-(-count * size // 8) * 8, cut)
    numbers = struct.unpack_from(f"<{count}{letter}", data)
    if any(data[count * size:]):
        raise Refused("padding that is not zero")
    return " ".join(map(repr, numbers))


def read_string(reader):
    """One string between quotes."""
    length = reader.number("Q", "Packet(Truncated)")
    data = reader.take(-(-length // 8) * 8, "Packet(Truncated)")
    if any(data[length:]):
        raise Refused("padding that is not zero")
    plain = lambda byte: 32 <= byte < 127 and byte not in b'"\\'
    return '"' + "".join(chr(b) if plain(b) else f"\\x{b:02x}" for b in data[:length]) + '"'


def decode(frame):
    """The fields of any frame."""
    kind, flags, count, order = check_prefix(frame)
    if kind == 1:
        return decode_packet(frame, flags, count, order)
    if count or order:
        raise Refused("Parts")
    try:
        message, end = read_control(frame, 8)
    except PostcardError:
        raise Refused("Control") from None
    if len(frame) - end >= 8 or any(frame[end:]):
        raise Refused("Control")
    return [("control", message)]


def agree(decoded, vector):
    """Whether the decoded fields are the vector's; numbers with a point are compared as numbers."""
    described = [(key, value) for key, value in vector if key not in ("name", "frame")]
    if decoded[0][0] == "control":
        return decoded[0][1] == json.loads(field(vector, "control"))
    if [key for key, _ in decoded] != [key for key, _ in described]:
        return False
    formats = cycle(field(vector, "format").split())
    for (key, mine), (_, theirs) in zip(decoded, described):
        letter = dict(ELEMENTS.values()).get(next(formats).lstrip("%aA")) if key == "value" else None
        if letter in ("f", "d"):
            mine, theirs = (
                [struct.pack("<" + letter, float(word)) for word in text.split()]
                for text in (mine, theirs))
        if mine != theirs:
            return False
    return True


def main():
    """Checks all files; prints what differs."""
    wrong, counted = [], []
    for name in ("packets.txt", "controls.txt", "malformed.txt"):
        vectors = read_vectors(name)
        counted.append(f"{len(vectors)} in {name}")
        for vector in vectors:
            title = f"{name}: {field(vector, 'name')}"
            expected = dict(vector).get("error")
            try:
                decoded = decode(bytes.fromhex(field(vector, "frame")))
            except Refused as error:
                if str(error) != expected:
                    wrong.append(f"{title}: refused as {error}, expected {expected}")
                continue
            if expected is not None:
                wrong.append(f"{title}: was decoded, but is {expected}")
            elif not agree(decoded, vector):
                wrong.append(f"{title}: decoded as {decoded}")
    for line in wrong:
        print(line)
    print(f"golden vectors: {', '.join(counted)}; {len(wrong)} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
