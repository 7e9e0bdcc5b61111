"""Values: what Python gives, what the tree carries, what Python gets."""

from __future__ import annotations

import array
import gc
import weakref
from typing import Any

import numpy
import pytest
import sapwood

from conftest import HANG, Opener


@pytest.fixture(scope="module")
def stream() -> Any:
    """A stream to one back-end that sends back what it gets."""
    from conftest import WORKER

    with sapwood.Network("1", WORKER, startup_timeout=HANG) as network:
        yield network.stream()


@pytest.mark.parametrize(
    ("value", "format"),
    [
        (7, "%ld"),
        (-(2**63), "%ld"),
        (True, "%uc"),
        (1.5, "%lf"),
        ("Häher", "%s"),
        ("", "%s"),
        (b"\xff\x00", "%Ac"),
        (b"text", "%Ac"),
        (b"", "%Ac"),
        (["a", "bc", ""], "%as"),
        (numpy.float32(1.5), "%f"),
        (numpy.uint8(200), "%uc"),
        (numpy.int16(-3), "%hd"),
        (numpy.array(2.5), "%lf"),
    ],
)
def test_scalars_and_texts_come_back(stream: sapwood.Stream, value: Any, format: str) -> None:
    answer = stream.ask("echo", value, timeout=HANG)
    assert (answer.value, answer.format) == (value, format)


@pytest.mark.parametrize("of", [bytes, bytearray, memoryview])
def test_bytes_come_back_as_bytes_also_where_they_are_text(stream: sapwood.Stream, of: Any) -> None:
    for given in (b"text", b"\x00\xff", b"", bytes(5000)):
        # As a value among others, the back-end gets it as it is sent, and by a format too.
        got = stream.ask("echo", of(given), 1, timeout=HANG)
        assert got.format == "%Ac %ld" and type(got.values[0]) is bytes and got.values[0] == given
        explicit = stream.ask("echo", of(given), format="%s %Ac", timeout=HANG).value
        assert type(explicit) is bytes and explicit == given


def test_a_format_makes_text_or_an_array_of_bytes(stream: sapwood.Stream) -> None:
    assert stream.ask("echo", b"text", format="%s %s", timeout=HANG).value == "text"
    got = stream.ask("echo", b"text", format="%s %auc", timeout=HANG).value
    assert isinstance(got, numpy.ndarray) and got.tobytes() == b"text"


@pytest.mark.parametrize("number", [0, 1, -1, 2**31, -(2**31) - 1, 2**63 - 1])
def test_the_type_of_a_whole_number_does_not_depend_on_its_value(stream: sapwood.Stream, number: int) -> None:
    answer = stream.ask("echo", number, [number], timeout=HANG)
    assert answer.format == "%ld %ald"
    assert answer.values[0] == number and list(answer.values[1]) == [number]


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"])
def test_arrays_of_every_type_come_back_as_they_were(stream: sapwood.Stream, dtype: str) -> None:
    for count in (0, 1, 5, 1000):
        given = numpy.arange(count).astype(dtype)
        got = stream.ask("echo", given, timeout=HANG).value
        assert isinstance(got, numpy.ndarray) and got.dtype == given.dtype
        assert numpy.array_equal(got, given)


def test_lists_and_other_arrays_are_arrays(stream: sapwood.Stream) -> None:
    for given, dtype in [
        ([1, 2, 3], "i8"),
        ([1, 2.5], "f8"),
        (array.array("h", [1, -2]), "i2"),
        (memoryview(array.array("h", [1, -2])), "i2"),
    ]:
        got = stream.ask("echo", given, timeout=HANG).value
        assert got.dtype == numpy.dtype(dtype) and list(got) == list(given)


def test_several_values_are_a_tuple_and_none_is_none(stream: sapwood.Stream) -> None:
    answer = stream.ask("echo", 1, "two", [3.0], timeout=HANG)
    number, word, numbers = answer.value
    assert (number, word, list(numbers)) == (1, "two", [3.0])
    assert answer.format == "%ld %s %alf" and len(answer.values) == 3
    assert stream.ask("echo", timeout=HANG).value is None


def test_a_format_says_what_numbers_become(stream: sapwood.Stream) -> None:
    answer = stream.ask("echo", 1, 2, [3, 4], "x", ["y"], format="%s %hd %f %Aud %s %As", timeout=HANG)
    assert answer.format == "%hd %f %Aud %s %As"
    assert answer.values[2].dtype == numpy.uint32 and answer.values[4] == ["y"]
    large = 2**64 - 1
    answer = stream.ask("echo", large, [1, large], format="%s %uld %auld", timeout=HANG)
    assert answer.format == "%uld %auld"
    assert answer.values[0] == large and list(answer.values[1]) == [1, large]


@pytest.mark.parametrize(
    ("values", "format", "kind", "words"),
    [
        ((1, 2), "%d", sapwood.ValuesError, "1 values, 2 were given"),
        ((1,), "%z", sapwood.ValuesError, "no directive"),
        ((300,), "%c", sapwood.ValuesError, "300 does not fit %c"),
        ((-1,), "%ud", sapwood.ValuesError, "-1 does not fit %ud"),
        ((1.5,), "%d", sapwood.DtypeError, "the format says %d, a float"),
        (("x",), "%d", sapwood.DtypeError, "a str was given"),
        ((1,), "%s", sapwood.DtypeError, "a int was given"),
        (("xy",), "%as", sapwood.DtypeError, "a str was given"),
        ((numpy.zeros(3, "f4"),), "%alf", sapwood.DtypeError, "ndarray of float32"),
        ((numpy.zeros(3, "f8"),), "%lf", sapwood.DtypeError, "%lf"),
        (([1, "x"],), "%ad", sapwood.DtypeError, "a str was given"),
    ],
)
def test_what_does_not_fit_its_format_is_refused(
    stream: sapwood.Stream, values: tuple[Any, ...], format: str, kind: type, words: str
) -> None:
    with pytest.raises(kind) as raised:
        stream.send(*values, format=format)
    assert words in str(raised.value)


@pytest.mark.parametrize(
    ("value", "kind", "words"),
    [
        ({}, sapwood.DtypeError, "a dict is no value"),
        (None, sapwood.DtypeError, "a NoneType is no value"),
        ([], sapwood.DtypeError, "empty list has no type"),
        ([1, "x"], sapwood.DtypeError, "texts or numbers"),
        (["x", 1], sapwood.DtypeError, "holds a int"),
        (2**63, sapwood.ValuesError, '9223372036854775808 does not fit %ld; larger numbers need format="%uld"'),
        (-(2**63) - 1, sapwood.ValuesError, "does not fit 64 bits"),
        ([1, 2**63], sapwood.ValuesError, 'format="%auld"'),
        ([1, 2**70], sapwood.ValuesError, "1180591620717411303424 of the list does not fit 64 bits"),
        ([-1, 2**63], sapwood.ValuesError, "-1 and 9223372036854775808 of the list fit neither"),
        ([1, -(2**63) - 1], sapwood.ValuesError, "does not fit 64 bits"),
        (1j, sapwood.DtypeError, "a complex is no value"),
        (numpy.zeros(2, "f2"), sapwood.DtypeError, "astype"),
        (numpy.zeros(2, "c16"), sapwood.DtypeError, "astype"),
        (numpy.zeros(2, "?"), sapwood.DtypeError, "astype"),
        (numpy.zeros(2, ">f8"), sapwood.DtypeError, "byte order"),
        (numpy.zeros(2, object), sapwood.DtypeError, "astype"),
        (numpy.array(["a"]), sapwood.DtypeError, "astype"),
        (numpy.float16(1), sapwood.DtypeError, "'<f2'"),
        (numpy.zeros(10)[::2], sapwood.LayoutError, "ascontiguousarray"),
        (memoryview(b"abcd")[::2], sapwood.LayoutError, "copy"),
        (numpy.zeros((2, 3)), sapwood.LayoutError, "ravel"),
        (numpy.zeros((2, 3)).T, sapwood.LayoutError, "ravel"),
    ],
)
def test_what_no_packet_holds_is_refused(
    stream: sapwood.Stream, value: Any, kind: type, words: str
) -> None:
    with pytest.raises(kind) as raised:
        stream.send("echo", value)
    assert words in str(raised.value) and str(raised.value).startswith("value 1: ")


def test_too_many_values_are_refused(stream: sapwood.Stream) -> None:
    with pytest.raises(sapwood.ValuesError, match="too many"):
        stream.send(*range(65))


def test_errors_are_what_python_catches_already() -> None:
    assert issubclass(sapwood.DtypeError, TypeError) and issubclass(sapwood.DtypeError, ValueError)
    assert issubclass(sapwood.LayoutError, BufferError)
    assert issubclass(sapwood.TimeoutError, TimeoutError)
    assert issubclass(sapwood.ClosedError, ValueError)
    for name in sapwood.errors.__all__:
        assert issubclass(getattr(sapwood, name), sapwood.SapwoodError)


def test_an_array_is_a_view_that_keeps_the_packet_and_cannot_be_written(opened: Opener) -> None:
    stream = opened("2").stream(up="sum")
    answer = stream.ask("array", 1000, "f8", timeout=HANG)
    first, second = answer.value, answer.value
    assert numpy.all(first == 3.0)
    # The same memory both times: nothing was copied.
    assert first.__array_interface__["data"] == second.__array_interface__["data"]
    assert not first.flags.writeable and not first.flags.owndata
    assert first.ctypes.data % 8 == 0
    with pytest.raises(ValueError):
        first[0] = 1.0
    with pytest.raises(ValueError):
        first.flags.writeable = True
    gone = weakref.ref(first.base.obj if isinstance(first.base, memoryview) else first)
    del answer, second
    gc.collect()
    stream.close()
    stream.network.close()
    assert numpy.all(first == 3.0) and gone() is not None


def test_an_array_is_read_where_it_lies(stream: sapwood.Stream) -> None:
    given = numpy.arange(4096, dtype="u1")
    # An odd address is read all the same.
    apart = given[1:4089].view("f8")
    assert numpy.array_equal(stream.ask("echo", apart, timeout=HANG).value, apart, equal_nan=True)
    given.flags.writeable = False
    assert numpy.array_equal(stream.ask("echo", given, timeout=HANG).value, given)
