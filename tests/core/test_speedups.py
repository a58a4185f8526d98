"""Choice between the two header decoders, and their agreement; a stand-in replaces the C module."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

from tests.core.kv.wire.frame_cases import FRAME_CASES, MALFORMED_CASES, MalformedCase, case_name
from triclinium_core._speedups import (
    CScanner,
    PythonScanner,
    bind_scanner,
    default_implementation,
    implementation,
    use_implementation,
)
from triclinium_core.kv.wire.header import MalformedFrame


class MalformedHeader(ValueError):
    """Exception of the stand-in, named as in the C module."""

    def __init__(self, code: int, offset: int) -> None:
        super().__init__(code, offset)
        self.code = code
        self.offset = offset


class HeaderScanner:
    """Scanner of the stand-in, which returns or raises what the test sets."""

    answer: list[int] | MalformedHeader

    def __init__(self, buffer: bytearray) -> None:
        self.buffer = buffer

    def scan(self, start: int, end: int) -> list[int]:
        """Return the range and the result that the test has set, or raise its exception."""
        if isinstance(self.answer, MalformedHeader):
            raise self.answer
        return [start, end, *self.answer]

    def release(self) -> None:
        """Do nothing; a test replaces this method to observe the call."""


@pytest.fixture(autouse=True)
def _same_choice_afterwards() -> Iterator[None]:
    before = implementation()
    yield
    use_implementation(before)


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> type[HeaderScanner]:
    """Install the stand-in as the C module, and return its scanner class."""
    module = ModuleType("triclinium_c")
    scanner = type("OneHeaderScanner", (HeaderScanner,), {})
    vars(module).update(HeaderScanner=scanner, MalformedHeader=MalformedHeader)
    monkeypatch.setitem(sys.modules, "triclinium_c", module)
    return scanner


@pytest.fixture
def no_c_module(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make each import of the C module fail, as if the module were not installed."""
    monkeypatch.setitem(sys.modules, "triclinium_c", None)


@pytest.mark.usefixtures("stand_in")
def test_c_is_the_default_where_it_loads() -> None:
    """If the C module can be loaded, it is the default decoder."""
    assert "c" == default_implementation()


@pytest.mark.usefixtures("no_c_module")
def test_python_is_the_default_elsewhere() -> None:
    """If the C module cannot be loaded, the Python decoder is the default."""
    assert "python" == default_implementation()


@pytest.mark.usefixtures("stand_in")
def test_new_scanners_use_the_chosen_implementation() -> None:
    """A new scanner uses the chosen decoder, and ``implementation`` returns the choice."""
    use_implementation("python")
    assert "python" == implementation()
    assert isinstance(bind_scanner(bytearray(24)), PythonScanner)

    use_implementation("c")
    assert "c" == implementation()
    assert isinstance(bind_scanner(bytearray(24)), CScanner)


@pytest.mark.usefixtures("no_c_module")
def test_choosing_a_missing_c_module() -> None:
    """If the C module cannot be loaded, choosing it fails with cause and advice, and the choice stays unchanged."""
    use_implementation("python")

    with pytest.raises(ImportError, match=r"triclinium_c cannot be loaded .*c_ext") as caught:
        use_implementation("c")
    assert isinstance(caught.value.__cause__, ImportError)
    assert "python" == implementation()


def test_refuses_another_name() -> None:
    """An unknown name is rejected, and the choice stays unchanged."""
    use_implementation("python")

    with pytest.raises(ValueError, match='name=\'rust\' must be "python" or "c"'):
        use_implementation("rust")  # type: ignore[arg-type]
    assert "python" == implementation()


def test_python_scanner_finds_frames() -> None:
    """The Python scanner reads the current content of its buffer, and raises an error after the release."""
    case = FRAME_CASES[0]
    buffer = bytearray(len(case.wire))
    scanner = PythonScanner(buffer)
    buffer[:] = case.wire

    assert case.fields == scanner.scan(0, len(buffer))
    scanner.release()
    with pytest.raises(ValueError, match="must satisfy 0 <= start <= end <= 0"):
        scanner.scan(0, len(case.wire))


def test_c_scanner_passes_fields_on(stand_in: type[HeaderScanner]) -> None:
    """The scanner passes a range to the C module and returns the result unchanged."""
    stand_in.answer = [7, 8, 9]

    assert [3, 5, 7, 8, 9] == CScanner(bytearray(10)).scan(3, 5)


@pytest.mark.parametrize("case", MALFORMED_CASES, ids=case_name)
def test_both_scanners_refuse_in_the_same_words(stand_in: type[HeaderScanner], case: MalformedCase) -> None:
    """If the C module reports a malformed header, the error equals that of the Python decoder."""
    buffer = bytearray(b"before" + case.wire)
    code = {"magic": -1, "size": -2, "lengths": -3}[case.name.partition(":")[0]]
    stand_in.answer = MalformedHeader(code, 6)

    for scanner in (PythonScanner(buffer), CScanner(buffer)):
        with pytest.raises(MalformedFrame) as caught:
            scanner.scan(6, len(buffer))

        assert (case.reason, 6) == (caught.value.reason, caught.value.offset)


def test_release_reaches_the_c_module(stand_in: type[HeaderScanner], monkeypatch: pytest.MonkeyPatch) -> None:
    """Releasing a scanner also releases the scanner of the C module."""
    released: list[bytearray] = []
    monkeypatch.setattr(stand_in, "release", lambda scanner: released.append(scanner.buffer))
    buffer = bytearray(10)
    CScanner(buffer).release()

    assert [buffer] == released
