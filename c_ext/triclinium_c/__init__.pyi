from typing import Final

__all__ = ["FIELDS_PER_FRAME", "FRAMES_PER_CALL", "HeaderScanner", "MalformedHeader", "__version__"]

__version__: Final[str]
FIELDS_PER_FRAME: Final[int]
FRAMES_PER_CALL: Final[int]

class MalformedHeader(ValueError):
    code: int
    offset: int
    def __init__(self, code: int, offset: int) -> None: ...

class HeaderScanner:
    def __init__(self, buffer: bytearray) -> None: ...
    def scan(self, start: int, end: int, /) -> list[int]: ...
    def release(self) -> None: ...
