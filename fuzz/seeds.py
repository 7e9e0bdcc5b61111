#!/usr/bin/env python3
"""Writes the fuzz targets' seeds out of the golden vectors, into fuzz/corpus.

Seeds are named seed-NAME; inputs that were found by fuzzing have other names and are left alone.
Needs nothing but Python 3.9.
"""

import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parent / "conformance"))
sys.dont_write_bytecode = True

from check import field, read_vectors  # noqa: E402  (the path above is needed first)

RANKS = ["", "0", "0-3,7", "7,0-3", "4294967295", "0-4294967295", "3-1", "1 - 2 , 5", "x",
         "0-7,9|3-12", "0-99|50", "1,3,5,7|0-8", "4294967290-4294967295|4294967295"]
FORMATS = ["", "%q", "%d %lf %as", "%d%alf  %s", "%Auhd", "%", "d", "%d," + "%d " * 65]

SPECIFICATIONS = ["4", "2^3", "16x4", "b:2x3^2", "k:2@16", "g:2:3,5", "g:2:2x3:1,0,4,0,2,2",
                  "2^2+3", "+8", "", "0", "65^65", "k:3@9+2", "p:1.5@9", "x", "3\na,b,c", "2x2\nnode-1 node.2,a_b",
                  "2\n-a"]
TOPOLOGY_FILES = ["a:0 => b:0 b:1 ; # two back-ends\n", "a:0 ;", "a:0 => b:0\n", "",
                  "a:0=>a:1;a:1=>a:2 a:3;\nb:0 ;", "a:0 => b:0 ; b:0 => a:0 ;",
                  "a:0 => b:0 ; a:0 => b:1 c:4294967295 ;", "a:0 => b:0 b:0 ;", "a => b ;",
                  "a:0 => a:4293918719 ; a:4293918719 => b:0 ;",
                  "a:0 => a:4294967295 ; a:4294967295 => b:0 ;"]

SCOPES = ["statistics", "compute\n[[scope]]\n", "", "by=host", "window=5 window=6", "=", "bytes=1GiB cpu=100%",
          "name=late functions=MPI_All*,MPI_Barrier ranks=0-3,7 longer=1ms by=rank,kind every=500ms window=100 cpu=2% "
          "bytes=8kB kinds=collective,send value=span when=waiting",
          "every=end longer=999999999.999999999 communicators=MPI_COMM_*,grid,* value=gap by=thread cpu=0.001%",
          "x\n[[scope]]\nname = 'late'\nfunctions = ['MPI_*send', 'MPI_Wait*']\nwindow = 100\nby = 'rank, function'\n"
          "[[scope]]\nbytes = 4096\ncommunicators = [\"a b\", '']\n",
          'compute\n{"scope": [{"name": "a,b", "ranks": ["1", "3-4294967295"], "bytes": 8000}, {"communicators": '
          '["\\u0000\\u007f\\n", "*"], "longer": 5, "every": "60m"}]}',
          'x\n{"scope": [{"name": ""}, {"name": "scope-1"}]}', 'x\n{"scope": []}', "x\n[[scope]]\nwindow = 3.5",
          "reduce=sums by=rank,function", "reduce=top=101\n[[scope]]\nreduce = 'top=10'\nby = 'function'\n",
          "source=hops name=late value=two-way streams=1,7 ranks=0-3 kinds=back-end longer=1ms by=edge,stream,kind "
          "every=500ms window=100 bytes=8kB reduce=top=5\n[[scope]]\nsource = 'hops'\nvalue = 'inside'\nby = 'process'\n",
          "source=hops cpu=1%\n[[scope]]\nsource = 'hops'\n[[scope]]\nby = 'rank'\n",
          "source=group name=late value=up collectives=reduction,transfer kinds=root,relay,leaf "
          "by=edge,collective,root\n[[scope]]\nsource = 'group'\nvalue = 'inside'\nby = 'process, kind'\n"]


def write(target, name, data):
    """One seed."""
    words = "".join(c if c.isalnum() and c.isascii() else " " for c in name).split()
    (FOLDER / "corpus" / target / ("seed-" + "-".join(words))).write_bytes(data)


def write_packet(name, vector, frame):
    """The format, values and rank sets of a packet's frame."""
    text = field(vector, "format")
    write("format", "text of " + name, text.encode())
    count = frame[6]
    start = 40 + (16 if frame[5] & 8 else 0) + (8 if frame[5] & 64 else 0)
    codes = frame[start:start + count]
    ranges = int.from_bytes(frame[32:36], "little") + int.from_bytes(frame[36:40], "little")
    after = start + (count + 7) // 8 * 8
    head = bytes([count]) + codes
    write("values", name, head + bytes(-len(head) % 8) + frame[after + 8 * ranges:])
    if ranges:
        write("ranks", "ranges of " + name, frame[after:after + 8 * ranges])


def main():
    """All seeds of all targets."""
    for target in ("frame", "control", "format", "values", "ranks", "specification", "topology_file", "scope"):
        folder = FOLDER / "corpus" / target
        folder.mkdir(parents=True, exist_ok=True)
        for seed in folder.glob("seed-*"):
            seed.unlink()
    for file in ("packets.txt", "controls.txt", "malformed.txt"):
        for vector in read_vectors(file):
            name, frame = field(vector, "name"), bytes.fromhex(field(vector, "frame"))
            write("frame", name, frame)
            if file == "packets.txt":
                write_packet(name, vector, frame)
            elif len(frame) > 8 and frame[4] == 2:
                write("control", name, frame[8:])
    for index, text in enumerate(FORMATS):
        write("format", f"text {index}", text.encode())
    for index, text in enumerate(SPECIFICATIONS):
        write("specification", f"text {index}", text.encode())
    for index, text in enumerate(TOPOLOGY_FILES):
        write("topology_file", f"text {index}", text.encode())
    for index, text in enumerate(SCOPES):
        write("scope", f"text {index}", text.encode())
    for index, text in enumerate(RANKS):
        write("ranks", f"text {index}", text.encode())


if __name__ == "__main__":
    main()
