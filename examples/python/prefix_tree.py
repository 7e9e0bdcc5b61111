"""Reads what the filter `prefix-tree` gives (docs/sketches.md)."""

from dataclasses import dataclass, field

import sapwood


@dataclass
class Node:
    """A frame of stacks: its name, the ranks whose stacks pass through it, and what is below."""

    name: str
    ranks: sapwood.RankSet
    below: "list[Node]" = field(default_factory=list)


def read(answer: sapwood.Answer) -> Node:
    """The root of an answer's tree; it has no name, and the ranks of all."""
    _, _, names, parents, name_of, _, range_counts, ranges = answer.values
    nodes: list[Node] = []
    at = 0
    for parent, name, count in zip(parents, name_of, range_counts, strict=True):
        pairs = ranges[at : at + 2 * count].reshape(-1, 2)
        at += 2 * count
        ranks = sapwood.RankSet(",".join(f"{first}-{last}" for first, last in pairs))
        # A node without ranges has the ranks of its parent.
        node = Node(names[name] if nodes else "", ranks if count else nodes[parent].ranks)
        if nodes:
            nodes[parent].below.append(node)
        nodes.append(node)
    return nodes[0]
