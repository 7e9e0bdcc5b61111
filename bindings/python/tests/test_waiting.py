"""asyncio, descriptors and notebooks."""

from __future__ import annotations

import asyncio
import select
import sys
from pathlib import Path

import nbclient
import nbformat
import pytest
import sapwood

from conftest import HANG, PYTHON_NODE, TOPOLOGIES, WORKER, Opener


def test_the_descriptor_is_readable_when_something_has_come(opened: Opener) -> None:
    stream = opened("2x2").stream(up="sum")
    poll = select.poll()
    poll.register(stream, select.POLLIN)
    stream.send("rank")
    answer = None
    while answer is None:
        assert poll.poll(HANG * 1000)
        answer = stream.try_recv()
    assert answer.value == 6


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_an_answer_is_awaited_beside_other_work(opened: Opener, tmp_path: Path, topology: str) -> None:
    go = tmp_path / "go"

    async def tool() -> tuple[list[int | None], int]:
        network = opened(topology)
        first, second = network.stream(up="sum"), network.stream(up="count")
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(0.01)
                ticks += 1
                # The answers come only if this goes on meanwhile.
                if ticks == 2:
                    go.touch()

        ticking = asyncio.create_task(tick())
        first.send("until", str(go))
        second.send("rank")
        # Back-ends answer in the order of their packets; both answers are awaited at once.
        answers = await asyncio.gather(first.recv_async(HANG), second.recv_async(HANG))
        ticking.cancel()
        count = len(network.everyone)
        assert [answer.value for answer in answers] == [count * (count - 1) // 2, count]
        return [answer.question for answer in answers], ticks

    questions, ticks = asyncio.run(tool())
    assert questions == [0, 0] and ticks > 1


def test_a_stream_is_iterated_asynchronously_until_it_closes(opened: Opener) -> None:
    async def tool() -> list[int | None]:
        network = opened("2")
        stream = network.stream(up="sum")
        questions = []
        for _ in range(3):
            stream.send("rank")
        async for answer in stream:
            questions.append(answer.question)
            if len(questions) == 3:
                stream.close()
        return questions

    assert asyncio.run(tool()) == [0, 1, 2]


def test_what_is_awaited_has_an_end_and_can_be_cancelled(opened: Opener) -> None:
    async def tool() -> None:
        stream = opened("2").stream(up="sum", wave=0.2)
        with pytest.raises(sapwood.TimeoutError):
            await stream.recv_async(0.05)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(stream.recv_async(), 0.05)
        # A wave that ends by the clock alone comes, too.
        stream.send("rank", to=0)
        answer = await stream.recv_async(HANG)
        assert answer.value == 0 and len(answer.missing) == 1

    asyncio.run(tool())


def test_who_waits_for_what_is_closed_meanwhile_is_told(opened: Opener) -> None:
    async def tool() -> None:
        network = opened("2")
        waiting = asyncio.create_task(network.stream(up="sum").recv_async())
        # Its first step goes as far as it can: until it waits.
        await asyncio.sleep(0)
        network.close()
        with pytest.raises(sapwood.ClosedError):
            await asyncio.wait_for(waiting, HANG)

    asyncio.run(tool())


LEAF = """
import asyncio
import sapwood

async def main():
    with sapwood.BackEnd.from_environment() as back_end:
        async for packet in back_end:
            back_end.reply(packet, back_end.rank)
            back_end.flush()

asyncio.run(main())
"""


def test_a_back_end_may_be_asynchronous(opened: Opener) -> None:
    network = opened("2x2", back_end=[sys.executable, "-c", LEAF])
    assert network.stream(up="sum").ask("rank", timeout=HANG).value == 6


CELLS = [
    f"""
import asyncio, sapwood
network = sapwood.Network("2x2", {WORKER!r}, node_program={PYTHON_NODE!r})
stream = network.stream(up="sum")
assert asyncio.get_running_loop().is_running()
stream.ask("rank", timeout=60).value
""",
    """
stream.send("rank")
answer = await stream.recv_async(60)
answer
""",
    """
def largest(wave):
    return max(wave.values)

network.stream(up=sapwood.PythonFilter(largest)).ask("rank", timeout=60).value
""",
    "network.close()",
]


def test_a_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # What notebooks keep in the user's home goes into the test's own folder.
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    nbclient.NotebookClient(notebook, timeout=HANG, kernel_name="python3").execute()
    results = [
        output["data"]["text/plain"]
        for cell in notebook.cells
        for output in cell.outputs
        if output.output_type == "execute_result"
    ]
    assert results == ["6", "Answer('%ld' from '0-3')", "3"]
