"""Unexpected exceptions of decoders: the second line of defence against invalid bytes from a node.

A decoder takes bytes and returns a value. It documents the exceptions that it raises. Any other exception is a defect
of this library: the client fails the requests that waited for the bytes, and closes their connection unless it carries
another request by then, but the program continues. Callers guard only the decoder::

    try:
        value = decode(data)
    except Malformed as error:
        ...
    except Exception as error:
        fault = decoder_faults.unexpected(Decoder.ROWS, error)

Callers never guard code that changes state, because the state may be inconsistent after an exception.
"""

from __future__ import annotations

from enum import Enum, unique

from triclinium_core.shown import one_line, shown


@unique
class Decoder(Enum):
    """Guarded decoders. The value of each member names the input of the decoder."""

    CLUSTER_CONFIG = "cluster config"
    COLLECTIONS_MANIFEST = "collections manifest"
    COLLECTION_ID = "collection id"
    ERROR_MAP = "error map"
    COMPRESSED_VALUE = "compressed value"
    KEY_VALUE_RESULT = "key-value result"
    KEY_VALUE_ERROR = "key-value error"
    HTTP = "HTTP message"
    ROWS = "list of rows"
    ROW = "row"
    CONTEXT_ID = "client context id"
    SERVICE_VERDICT = "status of a service response"
    SERVICE_ANSWER = "service response"
    QUERY_PLAN = "query plan"


class DecoderFault(Exception):
    """Unexpected exception of a decoder. The message is one short, printable line.

    ``__traceback__`` is the traceback of the unexpected exception. This object does not keep that exception, because
    the text of an exception may have any length.
    """

    def __init__(self, decoder: Decoder, error_type: str, error_text: str) -> None:
        super().__init__(f"the decoder of the {decoder.value} failed with {error_text}; please report this defect")
        self.kind: tuple[Decoder, str] = decoder, error_type
        """Decoder and exception type. The client logs only the first fault with each pair."""


def unexpected(decoder: Decoder, error: Exception) -> DecoderFault:
    """Return the fault for an exception that ``decoder`` does not document."""
    # str() of the exception may raise; shown() does not.
    return DecoderFault(decoder, type(error).__name__, one_line(shown(error))).with_traceback(error.__traceback__)
