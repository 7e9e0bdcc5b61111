"""The first tool: each back-end adds its rank to a number, the tree adds up what they give."""

import sys

import sapwood

if sys.argv[1:] == ["back-end"]:
    with sapwood.BackEnd.from_environment() as back_end:
        for request in back_end:
            back_end.reply(request, request.value + back_end.rank)
else:
    with sapwood.Network("4^2", [sys.executable, __file__, "back-end"]) as network:
        answer = network.stream(up="sum").ask(100, timeout=30)
        print(answer.value, "from", answer.contributors, "without", answer.missing)
