"""Unexpected exceptions of decoders: the second line of defense against the bytes of a node.

A decoder takes bytes and returns a value. It documents its exceptions; any other one is a defect of this library. Such
a defect costs the connection that sent the bytes and the requests that waited for them, not the program. Callers guard
only the decoder::

    try:
        value = decode(data)
    except Malformed as error:
        ...
    except Exception as error:
        fault = decoder_faults.unexpected(Decoder.ROWS, error)

Code that changes state is never guarded: after an exception there, its state may be inconsistent.
"""

from __future__ import annotations

from enum import Enum, unique

from triclinium_core.shown import one_line, shown


@unique
class Decoder(Enum):
    """Guarded decoders. The value names the input."""

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

    ``__traceback__`` is that of the exception. The exception itself is not kept, because its text may have any length.
    """

    def __init__(self, decoder: Decoder, error_type: str, error_text: str) -> None:
        super().__init__(f"the decoder of the {decoder.value} failed with {error_text}; please report this defect")
        self.kind: tuple[Decoder, str] = decoder, error_type
        """Decoder and exception type. Each kind is reported once."""


def unexpected(decoder: Decoder, error: Exception) -> DecoderFault:
    """Return the fault for an exception that ``decoder`` does not document."""
    # shown() and not str(): an exception whose str() raises must not escape here.
    return DecoderFault(decoder, type(error).__name__, one_line(shown(error))).with_traceback(error.__traceback__)
