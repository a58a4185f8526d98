"""Server of built pages: files of one folder, over HTTP on the loopback interface, for browsers on this machine."""

from __future__ import annotations

import re
from base64 import b64encode
from functools import partial
from hashlib import sha256
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

HOST = "127.0.0.1"

_INLINE_SCRIPT = re.compile(rb"<script>(.*?)</script>", re.DOTALL)

_POLICY = (
    "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'{hashes}; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Content security policy: files of this server, WebAssembly, data images, and inline scripts with
the inserted hashes. Inline styles are permitted, because the theme has styles in its elements."""


class PagesHandler(SimpleHTTPRequestHandler):
    """Handler of GET and HEAD for one folder. It lists no folders, and serves no file outside its own, even by a link."""

    protocol_version = "HTTP/1.1"
    timeout: ClassVar[float | None] = 60.0
    """Seconds after which a silent connection is closed."""
    server_version = "triclinium"
    sys_version = ""
    extensions_map = {  # noqa: RUF012  # The base class declares an attribute of the instance.
        **SimpleHTTPRequestHandler.extensions_map,
        ".js": "text/javascript",
        ".json": "application/json",
        ".mjs": "text/javascript",
        ".py": "text/plain; charset=utf-8",
        ".svg": "image/svg+xml",
        ".wasm": "application/wasm",
        ".whl": "application/zip",
    }

    path = ""
    """Path of the request; empty if its first line is invalid."""

    def send_head(self):  # type: ignore[no-untyped-def]  # The type of the result is private.
        """Send the head of a response, and return the open file; None if the response has no file."""
        # A page of another site must not read the files, even if the name of the site resolves to this machine.
        if self.headers.get("Host", HOST).partition(":")[0].lower() not in {HOST, "localhost"}:
            self.send_error(HTTPStatus.MISDIRECTED_REQUEST)
            return None
        if self._file() is None:
            self.send_error(HTTPStatus.NOT_FOUND)
            return None
        return super().send_head()

    def end_headers(self) -> None:
        """Add the headers of every response."""
        self.send_header("Content-Security-Policy", _POLICY.format(hashes=self._hashes()))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Cache-Control", "no-cache")
        super().end_headers()

    def _file(self) -> Path | None:
        """Return the requested file, or the index of a requested folder; None if the served folder has no such file."""
        try:
            path = Path(self.translate_path(self.path))
            found = (path / "index.html" if path.is_dir() else path).resolve()
            return found if found.is_relative_to(Path(self.directory).resolve()) and found.is_file() else None
        except (OSError, ValueError):
            # For example, the path is too long for the system, or has a null byte.
            return None

    def _hashes(self) -> str:
        """Return the hashes of the inline scripts of the requested page, which the policy then permits."""
        page = self._file()
        if page is None or page.suffix != ".html":
            return ""
        scripts = _INLINE_SCRIPT.findall(page.read_bytes())
        return "".join(sorted({f" 'sha256-{b64encode(sha256(script).digest()).decode()}'" for script in scripts}))

    def log_message(self, format: str, *args: object) -> None:  # The base class names the parameters.
        """Log nothing: the browser shows what is missing."""


def pages_server(folder: Path, port: int) -> ThreadingHTTPServer:
    """Return a server that listens on a port of this machine; 0 picks a free port.

    Raises:
        OSError: the port cannot be used.
    """
    return ThreadingHTTPServer((HOST, port), partial(PagesHandler, directory=str(folder)))
