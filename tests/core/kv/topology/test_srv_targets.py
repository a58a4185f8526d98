"""Targets that the client accepts from DNS SRV records."""

from __future__ import annotations

import pytest

from tests.rows import rows
from triclinium_core.kv.topology.srv_targets import AcceptedDomains, is_literal

TWO, THREE, FOUR = "corp.example", "db.corp.example", "cb.id.cloud.example"


@rows(
    ("host", "target"),
    [
        ("cluster", "cluster"),
        ("cluster", "node.cluster"),
        (TWO, "corp.example"),
        (TWO, "db.corp.example"),
        *(
            (THREE, target)
            for target in (
                *("db.corp.example", "a.db.corp.example", "b.a.db.corp.example", "DB.Corp.EXAMPLE."),
                *("_node-1.db.corp.example",),
            )
        ),
        (f"{THREE}.", "a.db.corp.example"),
        (THREE.upper(), "a.db.corp.example."),
        ("_cb.corp.example", "a._CB.corp.example"),
        (FOUR, "svc-1.id.cloud.example"),
        (FOUR, "id.cloud.example"),
        (FOUR, "a.svc-1.id.cloud.example"),
        (f"{FOUR}.", "svc-1.id.cloud.example"),
        ("cb.ns.svc.cluster.local", "cb-0.nodes.ns.svc.cluster.local"),
        ("bücher.example", "a.xn--bcher-kva.example"),
        ("bücher.example", "a.BÜCHER.example"),
        ("xn--bcher-kva.example", "a.bücher.example"),
        ("XN--BCHER-KVA.example", "a.xn--bcher-kva.example"),
        ("straße.example", "a.straße.example"),
    ],
)
def test_accepted(host: str, target: str) -> None:
    """A target is accepted at or below the host and, if the host has four labels or more, at or below its parent."""
    assert AcceptedDomains(host).accepts(target)


@rows(
    ("host", "target"),
    [
        *(
            (THREE, target)
            for target in (
                *("localhost", "evil.test", "example", "corp.example", "other.corp.example"),
                *("evildb.corp.example", "db.corp.example.evil.test", "db.corp.example.."),
                *(".db.corp.example", "a..db.corp.example", "db..corp.example", "db.corp.example:80"),
                *("::1%.db.corp.example", "10.0.0.1", "", ".", "db\N{IDEOGRAPHIC FULL STOP}corp.example"),
            )
        ),
        (FOUR, "cloud.example"),
        (FOUR, "cb.other.cloud.example"),
        (FOUR, "evilid.cloud.example"),
        ("a.b.co.uk", "c.co.uk"),
        ("x.co.uk", "y.co.uk"),
        ("", "evil.test"),
        (".", "evil.test"),
        ("a..b.example", "evil.b.example"),
        ("..b.example", "evil.b.example"),
        ("10.0.0.1", "10.0.0.1"),
        ("10.0.0.1", "11.0.0.1"),
        ("straße.example", "a.strasse.example"),
        ("bücher.example", "a.bucher.example"),
        ("xn--a.example", "b.a.example"),
    ],
)
def test_refused(host: str, target: str) -> None:
    """A target is refused if it is in another domain, even a similar one, has an empty label, or is an address."""
    assert not AcceptedDomains(host).accepts(target)


@rows(
    ("domain", "target", "expected"),
    [
        ("nodes.example", "nodes.example", True),
        ("nodes.example", "a.nodes.example", True),
        ("Nodes.Example.", "a.b.nodes.example.", True),
        ("nodes.example", "evilnodes.example", False),
        ("a.b.c.nodes.example", "d.b.c.nodes.example", False),
        ("localhost", "localhost", True),
        ("10.0.0.1", "10.0.0.1", True),
        ("10.0.0.1", "10.0.0.2", False),
        ("10.0.0.1", "9.10.0.0.1", False),
        ("0.0.1", "10.0.0.1", False),
        ("FD00::1", "fd00::1", True),
        ("fd00::1", "fd00::2", False),
    ],
)
def test_further_domains(domain: str, target: str, expected: bool) -> None:
    """A domain of the option accepts targets at or below it, not below its parent; an address accepts only itself."""
    assert expected == AcceptedDomains(THREE, [domain]).accepts(target)


def test_the_rule_in_words() -> None:
    """The text that describes the accepted domains names each domain once."""
    assert f"{FOUR} or id.cloud.example or nodes.example" == str(AcceptedDomains(f"{FOUR}.", ["nodes.example", FOUR]))


@pytest.mark.parametrize(
    ("host", "expected"), [("127.1", True), ("10.0.0.1.", True), ("::1", True), ("7.cluster7", False)]
)
def test_addresses(host: str, expected: bool) -> None:
    """A host is an address if its last label is a number or if it contains a colon."""
    assert expected == is_literal(host)
