"""Server of the pages: types of files, headers, and paths that it refuses."""

from __future__ import annotations

import re
import socket
import threading
from base64 import b64encode
from collections.abc import Iterator
from hashlib import sha256
from http.client import HTTPConnection, HTTPResponse

import pytest

from tests.rows import rows
from triclinium._cli.docs.pages_server import HOST, pages_server

pytestmark = pytest.mark.native

SCRIPT = "document.body.dataset.theme = 'dark';"


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HTTPConnection]:
    """Yield a connection to a server of a folder with a few files."""
    root = tmp_path_factory.mktemp("served")
    (root / "secret.txt").write_text("secret", encoding="utf-8")
    pages = root / "pages"
    (pages / "empty").mkdir(parents=True)
    (pages / "index.html").write_text(f"<script>{SCRIPT}</script><script src='x.js'></script>", encoding="utf-8")
    (pages / "way_out.txt").symlink_to(root / "secret.txt")
    for suffix in ("css", "js", "json", "mjs", "py", "svg", "wasm", "whl"):
        (pages / f"file.{suffix}").write_bytes(b"contents")
    with pages_server(pages, 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        connected = HTTPConnection(HOST, server.server_address[1])
        yield connected
        connected.close()
        server.shutdown()
        thread.join()


def fetch(connection: HTTPConnection, path: str, method: str = "GET") -> tuple[HTTPResponse, bytes]:
    """Return the response to a request, and its body."""
    connection.request(method, path)
    response = connection.getresponse()
    return response, response.read()


@rows(
    ("path", "expected"),
    [
        ("/", "text/html"),
        ("/index.html?x=1#y", "text/html"),
        ("/file.css", "text/css"),
        ("/file.js", "text/javascript"),
        ("/file.json", "application/json"),
        ("/file.mjs", "text/javascript"),
        ("/file.py", "text/plain; charset=utf-8"),
        ("/file.svg", "image/svg+xml"),
        ("/file.wasm", "application/wasm"),
        ("/file.whl", "application/zip"),
    ],
)
def test_files_have_their_types(connection: HTTPConnection, path: str, expected: str) -> None:
    """Each file is sent with the type that a browser needs."""
    response, body = fetch(connection, path)

    assert (200, expected) == (response.status, response.headers["Content-Type"])
    assert body


@rows(
    "path",
    [
        "/nothing.html",
        "/../secret.txt",
        "/%2e%2e/secret.txt",
        "/..%2fsecret.txt",
        "//secret.txt",
        "/empty/../../secret.txt",
        "/way_out.txt",
        "/empty/",
        "/empty/nothing",
        "/index.html/",
        "/file.js%00",
        f"/{'x' * 5000}",
    ],
)
def test_other_paths_are_not_found(connection: HTTPConnection, path: str) -> None:
    """A path or a link out of the folder, a folder without an index, and a missing file are not found."""
    response, body = fetch(connection, path)

    assert 404 == response.status
    assert b"secret" not in body


def test_head_has_no_body(connection: HTTPConnection) -> None:
    """HEAD gets the head of the response to GET; other methods are refused."""
    response, body = fetch(connection, "/file.wasm", "HEAD")

    assert (200, "8", b"") == (response.status, response.headers["Content-Length"], body)
    assert 501 == fetch(connection, "/file.wasm", "POST")[0].status


@rows(("host", "expected"), [("localhost:80", 200), ("127.0.0.1", 200), ("evil.example:80", 421), ("[", 421)])
def test_other_hosts_are_refused(connection: HTTPConnection, host: str, expected: int) -> None:
    """Only a request with another or an invalid host name, as after DNS rebinding, gets the status 421 and no file."""
    connection.request("GET", "/file.json", headers={"Host": host})
    response = connection.getresponse()

    assert (expected, expected == 200) == (response.status, response.read() == b"contents")


def test_policy_permits_only_own_files(connection: HTTPConnection) -> None:
    """The policy of a page permits this server, WebAssembly, and the scripts inside the page by their hashes."""
    headers = fetch(connection, "/")[0].headers
    policy = dict(part.split(" ", 1) for part in headers["Content-Security-Policy"].split("; "))

    own = f"'sha256-{b64encode(sha256(SCRIPT.encode()).digest()).decode()}'"
    assert f"'self' 'wasm-unsafe-eval' {own}" == policy["script-src"]
    assert "'self'" == policy["default-src"]
    assert "unsafe-eval" not in re.sub("wasm-unsafe-eval", "", str(policy))
    assert "nosniff" == headers["X-Content-Type-Options"]
    assert "no-cache" == headers["Cache-Control"]
    worker = fetch(connection, "/file.js")[0].headers["Content-Security-Policy"]
    assert "script-src 'self' 'wasm-unsafe-eval';" in worker


def test_unchanged_file_is_not_sent_again(connection: HTTPConnection) -> None:
    """A browser that has a file gets the status 304 instead of the file."""
    changed = fetch(connection, "/file.wasm")[0].headers["Last-Modified"]

    connection.request("GET", "/file.wasm", headers={"If-Modified-Since": changed})
    response = connection.getresponse()

    assert (304, b"") == (response.status, response.read())


def test_invalid_request_is_refused(connection: HTTPConnection) -> None:
    """Bytes that are not HTTP get the status 400."""
    with socket.create_connection((connection.host, connection.port)) as client:
        client.sendall(b"nothing of HTTP here\r\n\r\n")

        assert b"Error code: 400" in client.makefile("rb").read()
