"""Descriptions inside built wheels: readers see them without the repository around them."""

from __future__ import annotations

import re
import zipfile
from email.parser import Parser
from pathlib import Path

LINK = re.compile(r"\]\(([^)\s]*)|^\[[^]]+\]: *(\S+)|(?:src|srcset|href)=\"([^\"]*)", re.MULTILINE)
"""Pattern of the target of a link or picture, in Markdown or HTML."""
PLACEHOLDER = re.compile(r"git\+URL|`URL`")


def description_of(wheel: Path) -> str:
    """Return the description in the metadata of a wheel.

    Raises:
        KeyError: the wheel does not have exactly one METADATA.
    """
    with zipfile.ZipFile(wheel) as archive:
        found = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        if len(found) != 1:
            raise KeyError(f"{wheel.name} has {len(found)} METADATA files instead of one")
        message = Parser().parsestr(archive.read(found[0]).decode())
    return str(message.get_payload())


def faults_of(description: str) -> list[str]:
    """Return the faults: targets that are neither https nor anchors, placeholders for an address, or no text."""
    targets = [next(filter(None, match.groups()), "") for match in LINK.finditer(description)]
    return [
        *(
            f"link to {target!r} instead of an https address"
            for target in targets
            if not target.startswith(("https://", "#"))
        ),
        *(f"placeholder {match.group()!r}" for match in PLACEHOLDER.finditer(description)),
        *([] if description.strip() else ["no description"]),
    ]
