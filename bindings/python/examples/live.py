"""Two questions at once, in an event loop: which process waits longest, and how many are there?"""

import asyncio
import sys
import time

import sapwood


def back_end() -> None:
    """Answers how long it has been running, or with nothing but its being there."""
    began = time.monotonic()
    with sapwood.BackEnd.from_environment() as leaf:
        for request in leaf:
            leaf.reply(request, time.monotonic() - began if request.value == "age" else 1)


async def front_end() -> None:
    """Awaits both answers."""
    with sapwood.Network("2x2", [sys.executable, __file__, "back-end"]) as network:
        oldest, present = network.stream(up="max"), network.stream(up="sum")
        oldest.send("age")
        present.send("present")
        age, count = await asyncio.gather(oldest.recv_async(30), present.recv_async(30))
        print(f"{count.value} back-ends, the oldest runs for {age.value * 1000:.0f} ms")


if __name__ == "__main__":
    back_end() if sys.argv[1:] == ["back-end"] else asyncio.run(front_end())
