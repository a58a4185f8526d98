"""Hosts that a client accepts as targets of SRV records.

The client cannot authenticate a DNS response, and a certificate proves only the name of the host that presents it. So
the client accepts only targets at or below a domain that the connection string or the program names, hosts in the
parent domain of a long enough host name, and addresses that the program names.

Source: decision D66; RFC 2782; RFC 3490 for names outside ASCII.
"""

from __future__ import annotations

from collections.abc import Sequence

PARENT_LABELS_MIN = 4
"""Minimum number of labels of a host for which the client also accepts other hosts in the parent domain. The parent of
a host with three labels may be a public suffix such as ``co.uk``."""


class AcceptedDomains:
    """Domains at or below which the client accepts targets. ``str`` lists the domains.

    Args:
        host: host name from the connection string.
        others: further domains and addresses. For an address, the client accepts only the address itself.
    """

    def __init__(self, host: str, others: Sequence[str] = ()) -> None:
        labels = _labels(host)
        parent = (".".join(labels[1:]),) if len(labels) >= PARENT_LABELS_MIN else ()
        self._names = tuple(dict.fromkeys((".".join(labels), *parent, *others)))
        self._addresses = frozenset(name.lower() for name in others if is_literal(name))
        self._domains = tuple(tuple(map(_spellings, _labels(name))) for name in self._names if not is_literal(name))

    def __str__(self) -> str:
        return " or ".join(self._names)

    def accepts(self, target: str) -> bool:
        """Return whether the client may connect to a host that DNS lists."""
        if is_literal(target):
            return target.lower() in self._addresses
        labels = _labels(target.lower())
        return "" not in labels and any(
            len(labels) >= len(domain)
            and all(label in spellings for label, spellings in zip(labels[-len(domain) :], domain, strict=True))
            for domain in self._domains
        )


def is_literal(host: str) -> bool:
    """Return whether a host is an address rather than a name. 127.1 is an address for the resolver of the system."""
    return ":" in host or host.removesuffix(".").rpartition(".")[2].isdigit()


def _labels(name: str) -> list[str]:
    return name.removesuffix(".").split(".")


def _spellings(label: str) -> frozenset[str]:
    """Return a label in lower case and, if there is one, its equivalent form in Unicode or ASCII.

    A label that changes in the round trip, such as a label with a sharp s, has no equivalent form, because resolvers
    disagree about that form.
    """
    written = label.lower()
    try:
        if written.isascii():
            other = written.encode().decode("idna")
            again = other.encode("idna").decode()
        else:
            other = written.encode("idna").decode()
            again = other.encode().decode("idna")
    except UnicodeError:
        return frozenset({written})
    return frozenset({written, other} if again == written else {written})
