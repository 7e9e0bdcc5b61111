"""Compares `sapwood nodeset` with ClusterShell's `nodeset` (Debian: clustershell), which must be installed.

    python3 conformance/nodeset.py target/debug/sapwood

Every set must expand to the same names, and what one folds must be read by the other as the same. Folded
texts may differ, but ours must not be longer. Where they are equal, so must be the contiguous parts, one on
each line.
"""

import random
import subprocess
import sys

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


def output_of(*command):
    """What a command writes, and whether it went well."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode == 0, done.stdout.strip()


def expanded_by_peer(text):
    went_well, names = output_of("nodeset", "-e", "-S", "\n", text)
    return went_well, sorted(names.split())


def parts_differ(text):
    """Whether the contiguous parts are others there, or others are counted or expanded."""
    theirs = [output_of("nodeset", way, "--contiguous", text) for way in ("-f", "-e", "-c")]
    ours = [output_of(SAPWOOD, "nodeset", way, "--contiguous", text) for way in ("fold", "expand", "count")]
    return [sorted(out.split("\n")) for _, out in theirs] != [sorted(out.split("\n")) for _, out in ours]


def main():
    wrong = equal = other = 0
    for case in CASES + list(random_cases(60)):
        theirs = expanded_by_peer(case)
        went_well, names = output_of(SAPWOOD, "nodeset", "expand", "-S", "\\n", case)
        ours = (went_well, sorted(names.split()))
        _, their_text = output_of("nodeset", "-f", case)
        _, our_text = output_of(SAPWOOD, "nodeset", "fold", case)
        again = expanded_by_peer(our_text or "x!x")
        if ours != theirs or again[1] != theirs[1] or len(our_text) > len(their_text):
            wrong += 1
            print(f"{case}: {their_text!r} there, {our_text!r} here")
        elif our_text == their_text and parts_differ(case):
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
