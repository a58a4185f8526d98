"""``uv run python -m tests.docs.map``: write ``docs/internals/map.md``."""

from __future__ import annotations

from tests.docs.map.page import PAGE, map_page

if __name__ == "__main__":
    PAGE.write_text(map_page(), encoding="utf-8")
