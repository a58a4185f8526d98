"""Links that the documentation generates."""

from __future__ import annotations

import re

import pytest
from docutils import nodes  # type: ignore[import-untyped]
from docutils.utils import new_document  # type: ignore[import-untyped]

from docs._ext.links import RFC, SDK_RFC_FILES, UNPUBLISHED, Links, rfc_uri, trio_uri
from tests.docs.pages import PAGES
from tests.rows import rows

pytestmark = pytest.mark.native


@rows(
    ("name", "page"),
    [
        ("trio.TooSlowError", "reference-core"),
        ("trio.run()", "reference-core"),
        ("trio.SocketStream", "reference-io"),
        ("trio.abc.Stream", "reference-io"),
        ("trio.lowlevel.checkpoint", "reference-lowlevel"),
        ("trio.testing.MockClock", "reference-testing"),
    ],
)
def test_names_of_trio_have_a_page(name: str, page: str) -> None:
    """A name of trio links to the page that describes it, with its anchor."""
    assert f"https://trio.readthedocs.io/en/stable/{page}.html#{name.removesuffix('()')}" == trio_uri(name)


@rows("text", ["trio", "trio.no_such_name", "trio.testing.no_such_name", "trio.run(main)", "triclinium.open_cluster"])
def test_other_texts_are_not_linked(text: str) -> None:
    """Text that is not a name of trio has no link."""
    assert trio_uri(text) is None


def test_every_rfc_on_pages_has_a_link() -> None:
    """Every RFC on a page has a file, belongs to the IETF, or is listed as not public."""
    named = {mention for page in PAGES for mention in RFC.findall(page.read_text(encoding="utf-8"))}

    assert named
    assert set() == {mention for mention in named if rfc_uri(mention[-4:]) is None and mention[-4:] not in UNPUBLISHED}
    assert [] == [name for number, name in SDK_RFC_FILES.items() if not re.fullmatch(rf"{number}-[\w-]+\.md", name)]


def test_the_first_mention_in_a_section_is_linked() -> None:
    """Only the first mention of an RFC in a section is linked, and none in titles, code or existing links."""
    document = new_document("page")
    section = nodes.section("", nodes.title("", "RFC 0013"))
    section += nodes.paragraph(
        "", "", nodes.literal("", "RFC 0058"), nodes.Text(" SDK-RFC 0049, RFC 0049 and RFC 9110")
    )
    section += nodes.paragraph("", "", nodes.reference("", "RFC 0061", refuri="elsewhere"))
    document += section
    Links(document).apply()

    assert ["SDK-RFC 0049", "RFC 9110", "RFC 0061"] == [found.astext() for found in document.findall(nodes.reference)]
    assert "RFC 0013RFC 0058 SDK-RFC 0049, RFC 0049 and RFC 9110RFC 0061" == section.astext().replace("\n", "")
