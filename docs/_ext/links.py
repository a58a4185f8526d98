"""Links to external pages: SDK-RFCs, RFCs of the IETF, and trio's documentation.

The URLs come from tables in this module, so that a build need not download an inventory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from operator import attrgetter

import trio
import trio.lowlevel
import trio.testing
from docutils import nodes  # type: ignore[import-untyped]
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms import SphinxTransform
from sphinx.util import logging

SDK_RFCS = "https://github.com/couchbaselabs/sdk-rfcs/blob/master/rfc"
IETF_RFCS = "https://www.rfc-editor.org/rfc"
TRIO = "https://trio.readthedocs.io/en/stable"

SDK_RFC_FILES: Mapping[str, str] = {
    "0004": "0004-at_plus.md",
    "0011": "0011-connection-string.md",
    "0013": "0013-kv-error-map.md",
    "0020": "0020-common-flags.md",
    "0024": "0024-fast-failover.md",
    "0027": "0027-analytics.md",
    "0035": "0035-rto.md",
    "0036": "0036-client-cert-auth.md",
    "0049": "0049-sdk3-retry-handling.md",
    "0051": "0051-sdk3-views.md",
    "0052": "0052-sdk3-full-text-search.md",
    "0053": "0053-sdk3-crud.md",
    "0054": "0054-sdk3-management-apis.md",
    "0055": "0055-serializers-transcoders.md",
    "0056": "0056-sdk3-query.md",
    "0057": "0057-sdk3-analytics.md",
    "0058": "0058-error-handling.md",
    "0059": "0059-sdk3-foundation.md",
    "0061": "0061-sdk3-diagnostics.md",
    "0067": "0067-extended-sdk-observability-rto-v2.md",
    "0069": "0069-kv-error-map-v2.md",
    "0074": "0074-config-profiles.md",
    "0076": "0076-subdoc-replica-reads.md",
}
"""File of each public SDK-RFC by number, in the folder of ``couchbaselabs/sdk-rfcs`` that holds the RFCs in force."""

UNPUBLISHED = frozenset({"0075"})
"""Numbers of SDK-RFCs that are not public."""

RFC = re.compile(r"\b((?:SDK-)?RFC \d{4})\b")

TRIO_PAGES: Mapping[str, str] = {
    "trio.abc": "reference-io",
    "trio.from_thread": "reference-core",
    "trio.lowlevel": "reference-lowlevel",
    "trio.socket": "reference-io",
    "trio.testing": "reference-testing",
    "trio.to_thread": "reference-core",
}
"""Page of trio's documentation that describes the names of each module. ``trio.abc.Instrument`` is on another page."""

TRIO_IO = frozenset(
    [
        "DTLSChannel",
        "DTLSChannelStatistics",
        "DTLSEndpoint",
        "Path",
        "Process",
        "SSLListener",
        "SSLStream",
        "SocketListener",
        "SocketStream",
        "StapledStream",
        "aclose_forcefully",
        "open_file",
        "open_signal_receiver",
        "open_ssl_over_tcp_listeners",
        "open_ssl_over_tcp_stream",
        "open_tcp_listeners",
        "open_tcp_stream",
        "open_unix_socket",
        "run_process",
        "serve_listeners",
        "NeedHandshakeError",
        "serve_ssl_over_tcp",
        "serve_tcp",
        "wrap_file",
    ]
)
"""Names of ``trio`` itself that are on the page about I/O; all other names are on the page about the core."""

TRIO_NAME = re.compile(r"(?P<module>trio(?:\.[a-z_]+)?)\.(?P<name>\w+)")

logger = logging.getLogger(__name__)


class Links(SphinxTransform):
    """Transform that links the first mention of an RFC in a section, and each name of trio, to its description."""

    default_priority = 410

    def apply(self) -> None:
        """Link the names of trio, then the RFCs."""
        for literal in list(self.document.findall(nodes.literal)):
            uri = trio_uri(literal.astext())
            if uri is not None and not _is_linked(literal):
                literal.replace_self(nodes.reference("", "", literal.deepcopy(), refuri=uri))
        seen: set[tuple[int, str]] = set()
        for text in list(self.document.findall(nodes.Text)):
            if RFC.search(text) and not _is_linked(text) and not _is_quoted(text):
                text.parent.replace(text, list(self._linked(text, seen)))

    def _linked(self, text: nodes.Text, seen: set[tuple[int, str]]) -> Iterator[nodes.Node]:
        section = id(_enclosing(text, nodes.section))
        for place, part in enumerate(RFC.split(text)):
            uri = rfc_uri(part[-4:]) if place % 2 and (section, part[-4:]) not in seen else None
            if uri is not None:
                seen.add((section, part[-4:]))
                yield nodes.reference("", part, refuri=uri, classes=["rfc"])
            elif part:
                yield nodes.Text(part)


def rfc_uri(number: str) -> str | None:
    """Return the URL of an RFC; None if it is not public. Numbers below 1000 mean SDK-RFCs, others the IETF's RFCs.

    An SDK-RFC without a file in the table causes a warning, so that the build fails.
    """
    if number >= "1000":
        return f"{IETF_RFCS}/rfc{number}"
    if number in UNPUBLISHED:
        return None
    if number not in SDK_RFC_FILES:
        logger.warning("SDK_RFC_FILES in docs/_ext/links.py has no file for SDK-RFC %s; add one", number)
        return None
    return f"{SDK_RFCS}/{SDK_RFC_FILES[number]}"


def trio_uri(name: str) -> str | None:
    """Return the URL of a name such as ``trio.TooSlowError`` in trio's documentation; None for any other text."""
    match = TRIO_NAME.fullmatch(name.removesuffix("()"))
    if match is None:
        return None
    module, own_name = match["module"], match["name"]
    try:
        attrgetter(f"{module}.{own_name}".removeprefix("trio."))(trio)
    except AttributeError:
        return None
    page = TRIO_PAGES.get(module, "reference-io" if own_name in TRIO_IO else "reference-core")
    return f"{TRIO}/{page}.html#{module}.{own_name}"


def resolve_trio(
    _app: Sphinx, _env: BuildEnvironment, node: pending_xref, shown: nodes.TextElement
) -> nodes.reference | None:
    """Return a link for a name of trio in a signature or a role; None for any other name."""
    uri = trio_uri(node["reftarget"])
    return None if uri is None else nodes.reference("", "", shown, refuri=uri)


def _enclosing(node: nodes.Node, kind: type[nodes.Element]) -> nodes.Element | None:
    while node is not None and not isinstance(node, kind):
        node = node.parent
    return node


def _is_linked(node: nodes.Node) -> bool:
    return isinstance(node.parent, nodes.reference | pending_xref) or isinstance(node.parent.parent, pending_xref)


def _is_quoted(text: nodes.Text) -> bool:
    return isinstance(text.parent, nodes.literal | nodes.literal_block | nodes.title | nodes.raw | nodes.comment)
