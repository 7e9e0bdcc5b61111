"""Compares `sapwood nodeset` with ClusterShell's sets of names (Debian: clustershell), which must be installed.

    /usr/bin/python3 conformance/nodeset.py target/debug/sapwood

Every set must expand to the same names, and what one folds must be read by the other as the same. Folded
texts may differ, but ours must not be longer. Where they are equal, so must be the contiguous parts.
ClusterShell is loaded into this process: its command `nodeset` takes a fifth of a second to start, four
hundred times.
"""

import random
import subprocess
import sys

from ClusterShell.NodeSet import NodeSet, NodeSetParseError

SAPWOOD = sys.argv[1] if len(sys.argv) > 1 else "sapwood"
CASES = ["node[001-128]","n1,n2,n5","rack[1-4]n[01-32]","n[0-98/2]","n[1-5]!n3","n[1-5]&n[4-9]","n[1-5]^n[4-9]","n[1-3]!n2,n2","n1[01-02]","n[1-2]3","n[09-11]","n[8-12],n[001-010]","a1b1,a1b2,a2b1","foo,bar,n[1-3]","n[1-3]-ib","10.0.0.[1-20]","n[01-05],n[1-5]","x[1-2]y[1-2]z[1-2]!x1y1z1","n[1-3,5,7-9],n[4,6]","n[1-100]!n[2-99/3]","a,b,c!b","n0,n00,n000","n[9-11],n09","c[0-1]-[0-3]c[0-2]s[0-15]n[0-3]","n[0-3,5]m[1-2,4]","a[0-1,3]b[0-1,3]c[0,2]","n[0-3],n[01-03,5]","n[09-11,012]"]


def random_cases(count):
    """Names with up to three numbers, joined by any operators."""
    source = random.Random(5)
    for _ in range(count):
        terms = []
        for _ in range(source.randint(1, 12)):
            width = source.choice([0, 0, 2, 3])
            parts = range(source.randint(1, 3))
            terms.append("".join(
                source.choice("abr") + str(source.randint(0, 12)).zfill(width) for _ in parts))
        text = terms[0]
        for term in terms[1:]:
            text += source.choice(",,,,!&^") + term
        yield text


def names_here(action, *arguments):
    """What our command writes, a line each, or nothing where it refuses the set."""
    done = subprocess.run([SAPWOOD, "nodeset", action, *arguments], capture_output=True, text=True, check=False)
    return done.stdout.strip().split("\n") if done.returncode == 0 else None


def peer(text):
    """ClusterShell's set, or nothing where it refuses the text."""
    try:
        return NodeSet(text)
    except NodeSetParseError:
        return None


def expanded(peers):
    return None if peers is None else sorted(peers)


def parts_differ(peers, text):
    """Whether the contiguous parts are others there, or others are counted or expanded."""
    parts = list(peers.contiguous())
    theirs = [map(str, parts), (" ".join(part) for part in parts), (str(len(part)) for part in parts)]
    ours = [names_here(action, "--contiguous", text) for action in ("fold", "expand", "count")]
    return [sorted(lines) for lines in theirs] != [sorted(lines or []) for lines in ours]


def main():
    wrong = equal = other = 0
    for case in CASES + list(random_cases(60)):
        peers = peer(case)
        their_text = "" if peers is None else str(peers)
        our_names = names_here("expand", "-S", "\\n", case)
        ours = None if our_names is None else sorted(name for name in our_names if name)
        our_text = "".join(names_here("fold", case) or [])
        again = expanded(peer(our_text)) if peers is not None else None
        if ours != expanded(peers) or again != expanded(peers) or len(our_text) > len(their_text):
            wrong += 1
            print(f"{case}: {their_text!r} there, {our_text!r} here")
        elif our_text == their_text and peers and parts_differ(peers, case):
            wrong += 1
            print(f"{case}: its contiguous parts are others there")
        elif our_text == their_text:
            equal += 1
        else:
            other += 1
    print(f"{equal} folded equally, {other} otherwise but not longer, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
