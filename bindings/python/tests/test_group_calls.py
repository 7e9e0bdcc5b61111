"""Groups: the calls of mpi4py's users, between processes, and what is refused."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from array import array
from collections.abc import Iterator
from pathlib import Path

import numpy
import pytest
import sapwood
from conftest import FOLDER, HANG
from sapwood import inbox

PAGE = FOLDER.parents[2] / "docs" / "groups.md"
SIZE = 4


@pytest.fixture
def key(tmp_path: Path) -> Path:
    path = tmp_path / "key"
    sapwood.make_key(path)
    return path


@pytest.fixture
def alone(key: Path) -> Iterator[sapwood.Group]:
    """A group with one member."""
    with sapwood.Group.create(key, timeout=HANG) as group:
        yield group


def outputs(processes: list[subprocess.Popen[str]]) -> list[str]:
    """What they have written, once all have ended well."""
    try:
        found = [process.communicate(timeout=HANG) for process in processes]
    finally:
        for process in processes:
            process.kill()
    for process, (_, errors) in zip(processes, found, strict=True):
        assert process.returncode == 0, errors
    return [text for text, _ in found]


def start(*arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_members_in_processes_get_what_mpi_says(key: Path, tmp_path: Path) -> None:
    file = tmp_path / "address"
    members = [start(FOLDER / "group_member.py", key, file, rank, SIZE) for rank in range(SIZE)]
    assert outputs(members) == ["right\n"] * SIZE
    assert sorted(os.listdir(tmp_path)) == ["key"]


def test_the_example_of_the_page_runs(tmp_path: Path) -> None:
    text = PAGE.read_text()
    program = tmp_path / "total.py"
    found = re.search(r"^## In Python\n(?:(?!    ).*\n)*((?:    .*\n|\n)+)", text, re.M)
    assert found is not None
    program.write_text(re.sub(r"^    ", "", found[1], flags=re.M))
    first = start(program, tmp_path / "key", 1.5)
    assert first.stdout is not None
    address = first.stdout.readline().strip()
    second = start(program, tmp_path / "key", 2.5, address)
    lines = [text.splitlines()[-1] for text in outputs([first, second])]
    assert lines == ["4.0 from 0-1 without []"] * 2
    assert all(f"`{line}`" in text for line in lines)


def test_an_address_file_is_waited_for_and_removed_at_the_end(key: Path, tmp_path: Path) -> None:
    file = tmp_path / "address"
    joined: list[sapwood.Group] = []
    joining = threading.Thread(
        target=lambda: joined.append(sapwood.Group.join(key=key, address_file=file, address_timeout=HANG))
    )
    joining.start()
    with sapwood.Group.create(key, address_file=file) as group:
        assert file.read_text() == f"{group.address}\n"
        joining.join(HANG)
        group.wait_for(2, HANG)
        joined[0].leave()
        # That of another member stays.
        file.write_text("tcp:127.0.0.1:1\n")
    assert file.read_text() == "tcp:127.0.0.1:1\n"
    file.unlink()
    with pytest.raises(sapwood.TimeoutError, match="no address was written"):
        sapwood.Group.join(key=key, address_file=file, address_timeout=0.01)
    with pytest.raises(ValueError, match="and not both"):
        sapwood.Group.join("tcp:127.0.0.1:1", key, address_file=file)
    with pytest.raises(FileNotFoundError):
        sapwood.Group.create(key, address_file=tmp_path / "none" / "address")
    assert sorted(os.listdir(tmp_path)) == ["key"]


def test_the_address_of_a_dead_member_gives_way_to_a_new_one(key: Path, tmp_path: Path) -> None:
    file = tmp_path / "address"
    # Bound to the end, so that no other process listens there.
    gone = socket.socket()
    gone.bind(("127.0.0.1", 0))
    old = f"tcp:127.0.0.1:{gone.getsockname()[1]}"
    file.write_text(f"{old}\n")
    with pytest.raises(sapwood.GroupError, match="not joined") as raised:
        sapwood.Group.join(key=key, address_file=file, address_timeout=0)
    assert raised.value.is_unheard
    file.unlink()
    # The join reads the pipe to its end: there is a first member only after it has begun.
    os.mkfifo(file)
    joined: list[sapwood.Group] = []
    joining = threading.Thread(
        target=lambda: joined.append(sapwood.Group.join(key=key, address_file=file, address_timeout=HANG))
    )
    joining.start()
    with file.open("w") as pipe:
        pipe.write(f"{old}\n")
        group = sapwood.Group.create(key, address_file=file, timeout=HANG)
    with group:
        joining.join(HANG)
        with joined[0] as member:
            group.wait_for(2, HANG)
            member.wait_for(2, HANG)
    assert not file.exists()
    gone.close()


def test_a_first_member_removes_an_old_address_before_it_opens_its_group(key: Path, tmp_path: Path) -> None:
    file = tmp_path / "address"
    file.write_text("tcp:127.0.0.1:1\n")
    with pytest.raises(sapwood.SystemError, match="cannot listen"):
        sapwood.Group.create(key, address_file=file, listen="unix:/no/such/folder/x")
    assert not file.exists(), "the old address would be read"


def test_what_cannot_be_written_or_read_is_named(key: Path, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as raised:
        sapwood.Group.create(key, address_file=tmp_path / "none" / "address")
    assert raised.value.filename == str(tmp_path / "none" / "address")
    with pytest.raises(sapwood.FileError, match=re.escape(str(tmp_path))):
        sapwood.Group.join(key=key, address_file=tmp_path, address_timeout=HANG)
    with pytest.raises(TypeError, match="address_timeout"):
        sapwood.Group.create(key, address_file=tmp_path / "address", address_timeout=1.0)
    # No time to wait is no first member, which would write the file.
    with pytest.raises(TypeError, match="address_timeout"):
        sapwood.Group.join(key=key, address_file=tmp_path / "address", address_timeout=None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="address_timeout"):
        sapwood.Group.join(key=key, address_file=tmp_path / "address", address_timeout=-1.0)
    assert sorted(os.listdir(tmp_path)) == ["key"]


def test_a_signal_ends_the_wait_for_an_address(key: Path, tmp_path: Path) -> None:
    class Interrupted(Exception):
        pass

    def interrupt(_number: int, _frame: object) -> None:
        raise Interrupted

    file = tmp_path / "address"
    os.mkfifo(file)

    def signal_the_reader() -> None:
        # Opened only by a join that reads, which finds no address, and looks for signals then.
        with file.open("w"):
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        signalling = threading.Thread(target=signal_the_reader, daemon=True)
        signalling.start()
        with pytest.raises(Interrupted):
            sapwood.Group.join(key=key, address_file=file, address_timeout=HANG)
        signalling.join(HANG)
    finally:
        signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize("found", ["a folder", "no text", "a folder that is a file"])
def test_a_member_leaves_whatever_has_become_of_its_address_file(key: Path, tmp_path: Path, found: str) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    place = folder / "address"
    group = sapwood.Group.create(key, address_file=place, timeout=HANG)
    place.unlink()
    if found == "a folder":
        place.mkdir()
    elif found == "no text":
        place.write_bytes(b"\xff\n")
    else:
        folder.rmdir()
        folder.write_text("")
    group.leave()
    assert repr(group) == "<sapwood.Group, left>"
    assert place.exists() == (found != "a folder that is a file")


def test_values_without_bytes_count_against_the_limit(
    alone: sapwood.Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inbox, "HELD_BYTES_MAX", 3 * inbox.VALUE_BYTES)
    for tag in range(5):
        alone.Send(b"", 0, tag=tag)
    alone.Send(b"", 0, tag=9)
    assert alone.Recv(bytearray(), tag=9, timeout=HANG).tag == 9
    assert alone.lost == 2
    assert [alone.Recv(bytearray(), timeout=HANG).tag for _ in range(3)] == [2, 3, 4]


def test_values_that_are_not_wanted_yet_stay_in_their_order(alone: sapwood.Group) -> None:
    for number, tag in enumerate([5, 6, 5, 6]):
        alone.send(number, 0, tag=tag)
    assert [alone.recv(HANG, tag=6) for _ in range(2)] == [1, 3]
    with pytest.raises(sapwood.TimeoutError):
        alone.recv(0.01, source=1)
    assert [alone.recv(HANG, source=0) for _ in range(2)] == [0, 2]
    alone.Send(b"four", 0)
    with pytest.raises(ValueError, match="has 3 bytes, and what has come 4"):
        alone.Recv(bytearray(3), timeout=HANG)
    place = bytearray(4)
    alone.Recv(place, timeout=HANG)
    assert place == b"four"
    # One thread that waits for what does not come keeps no other from its value.
    silent = threading.Thread(target=lambda: pytest.raises(sapwood.TimeoutError, alone.recv, 0.5, tag=9))
    silent.start()
    alone.send("now", 0, tag=1)
    assert alone.recv(HANG, tag=1) == "now"
    silent.join(HANG)


def test_buffers_that_do_not_fit_are_refused_before_the_call(alone: sapwood.Group) -> None:
    numbers = numpy.arange(4)
    with pytest.raises(TypeError, match="numbers of type 'Zd' are not combined"):
        alone.Allreduce(numbers * 1j, numbers * 1j)
    with pytest.raises(TypeError, match="BAND does not apply to numbers of type 'd'"):
        alone.Allreduce(numbers * 0.5, numbers * 0.5, op=sapwood.BAND)
    with pytest.raises(TypeError, match="'>q'"):
        alone.Allreduce(numbers.astype(">i8"), numbers)
    with pytest.raises(ValueError, match="gaps"):
        alone.Allreduce(numbers[::2], numbers[:2])
    with pytest.raises(ValueError, match="read-only"):
        alone.Allreduce(numbers, bytes(32))
    with pytest.raises(ValueError, match="has 8 bytes and the numbers 32"):
        alone.Reduce(numbers, numbers[:1])
    with pytest.raises(ValueError, match="give a buffer that receives"):
        alone.Gather(numbers)
    with pytest.raises(ValueError, match="4 elements are no block for each of 1"):
        alone.Reduce_scatter(numbers, numbers, [3])
    with pytest.raises(ValueError, match="has 8 bytes, and what has come 1 blocks of 32 bytes"):
        alone.Allgather(numbers, numbers[:1].copy())
    # What was refused counts as no call; a call of nothing is one.
    alone.Allreduce(array("d"), array("d"))
    received = numpy.zeros_like(numbers)
    alone.Allreduce(numbers, received)
    assert received.tolist() == numbers.tolist()
