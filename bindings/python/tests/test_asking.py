"""Questions and their answers: each question has its own answer, whatever else is under way."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import get_args

import numpy
import pytest
import sapwood

from conftest import HANG, TOPOLOGIES, Opener, children

NAP = 2.0
SHORT = 0.05


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_an_answer_that_comes_too_late_is_not_given_for_the_next_question(
    opened: Opener, tmp_path: Path, topology: str
) -> None:
    network = opened(topology)
    stream = network.stream(up="sum")
    go = tmp_path / "go"
    with pytest.raises(sapwood.TimeoutError):
        stream.ask("until", str(go), timeout=SHORT)
    go.touch()
    for number in (42, 43, 44):
        answer = stream.ask("echo", number, timeout=HANG)
        assert answer.value == number * len(network.everyone)
        assert answer.question == number - 41
    assert stream.discarded == 1
    assert stream.try_recv() is None


def test_what_answers_no_question_is_received_as_what_it_is(opened: Opener) -> None:
    stream = opened("2x2").stream(up="sum")
    stream.send("echo", 5)
    assert stream.ask("unasked", timeout=HANG).value == 6
    received = [stream.recv(HANG) for _ in range(3)]
    assert [(answer.question, answer.value) for answer in received] == [(0, 20), (None, -4), (None, -8)]
    assert stream.discarded == 0


def test_a_packet_is_answered_once(opened: Opener) -> None:
    stream = opened("1").stream()
    assert stream.ask("twice", timeout=HANG).value == 0
    assert stream.recv(HANG).value.startswith("question 0 has passed")


def test_streams_without_one_answer_take_no_question(opened: Opener) -> None:
    network = opened("2")
    with pytest.raises(sapwood.MisuseError, match="no filter makes one answer of its members'"):
        network.stream().ask("rank")
    with pytest.raises(sapwood.MisuseError, match="does not wait for its members"):
        network.stream(up="sum", wave="immediate").ask("rank")
    assert network.stream(1).ask("rank", timeout=HANG).value == 1


def test_several_questions_are_awaited_at_once(opened: Opener, tmp_path: Path) -> None:
    go = tmp_path / "go"

    async def tool() -> None:
        stream = opened("2x2").stream(up="sum")
        slow = asyncio.create_task(stream.ask_async("sleep", NAP, timeout=HANG))
        given_up = asyncio.create_task(stream.ask_async("echo", 1000))
        others = [stream.ask_async("echo", number, timeout=HANG) for number in range(10)]
        await asyncio.sleep(0)
        given_up.cancel()
        answers = await asyncio.gather(slow, *others)
        assert [answer.value for answer in answers] == [6, *(4 * number for number in range(10))]
        with pytest.raises(sapwood.TimeoutError):
            await stream.ask_async("until", str(go), timeout=SHORT)
        go.touch()
        assert (await stream.ask_async("echo", 7)).value == 28
        assert stream.discarded == 2

    asyncio.run(tool())


LOAD = numpy.zeros(100_000, "u1")


def test_a_full_window_stops_no_other_task(opened: Opener, tmp_path: Path) -> None:
    go = tmp_path / "go"

    async def tool() -> None:
        stream = opened("2").stream(up="count", window_bytes=4096)

        async def let_go() -> None:
            await asyncio.sleep(0.01)
            go.touch()

        # Back-ends read nothing until the loop goes on while this task waits for room.
        stream.send("until", str(go))
        count = 1
        while stream.try_send("array", 1, "u1", LOAD):
            count += 1
        assert not stream.try_send("rank")
        with pytest.raises(sapwood.TimeoutError, match="no room on the stream"):
            await stream.ask_async("rank", timeout=SHORT)
        with pytest.raises(sapwood.TimeoutError, match="no room on the stream"):
            await stream.send_async("rank", timeout=SHORT)
        letting_go = asyncio.create_task(let_go())
        for _ in range(5):
            await stream.send_async("array", 1, "u1", LOAD, timeout=HANG)
        assert letting_go.done(), "the loop went on while the window was full"
        for _ in range(count + 5):
            assert (await stream.recv_async(HANG)).value == 2

    asyncio.run(tool())


ASYNCHRONOUS = """
import asyncio
import sapwood

async def main():
    with sapwood.BackEnd.from_environment() as back_end:
        async for packet in back_end:
            await back_end.send_async(packet.stream, -1, timeout=60)
            assert await back_end.reply_async(packet, back_end.rank, timeout=60)

asyncio.run(main())
"""


def test_a_back_end_answers_asynchronously(opened: Opener) -> None:
    stream = opened("2x2", back_end=[sys.executable, "-c", ASYNCHRONOUS]).stream(up="sum")
    assert stream.ask(timeout=HANG).value == 6
    unasked = stream.recv(HANG)
    assert (unasked.question, unasked.value) == (None, -4)


def test_the_cause_of_one_that_is_missing(opened: Opener) -> None:
    before = children()
    network = opened("2")
    stream = network.stream(up="sum")
    stream.send("die", to=0)
    answer = stream.ask("rank", timeout=HANG)
    assert answer.value == 1
    (missing,) = answer.missing
    assert (missing.cause, missing.status, missing.signal) == ("exited", 3, None)
    (lost,) = [event for event in network.events() if event.kind == "lost"]
    assert (lost.cause, lost.status) == ("exited", 3)
    (other,) = children() - before
    os.kill(other, signal.SIGKILL)
    with pytest.raises(sapwood.NoMemberLeftError) as raised:
        stream.ask("rank", timeout=HANG)
    causes = {(missing.cause, missing.status or missing.signal) for missing in raised.value.missing}
    assert causes == {("exited", 3), ("killed", 9)}


def test_missing_ranks_fold_by_cause(opened: Opener) -> None:
    network = opened("4")
    stream = network.stream(up="sum")
    stream.send("die", to=[0, 1, 3])
    answer = stream.ask("rank", timeout=HANG)
    assert answer.value == 2
    said = repr(answer)
    # How a link ended is the system's choice: closed or reset.
    assert said.startswith("Answer('%ld' from '2', without '0-1,3': ")
    assert "exited with status 3" in said and "back-end" not in said


def test_late_and_skipping_back_ends_have_causes(opened: Opener) -> None:
    network = opened("2")
    timed = network.stream(up="sum", wave=0.1)
    timed.send("silent", to=0)
    timed.send("rank", to=1)
    (missing,) = timed.recv(HANG).missing
    assert (str(missing.ranks), missing.cause) == ("0", "late")
    whole = network.stream(up="sum")
    whole.send("hush", 0)
    assert whole.ask("rank", timeout=HANG).value == 1
    (missing,) = whole.recv(HANG).missing
    assert (str(missing.ranks), missing.cause) == ("0", "skipped")
    assert {"late", "skipped", "exited", "killed"} < set(get_args(sapwood.Cause))
