"""Program that opens and closes clusters until Ctrl-C, prints the exception that arrives, and starts again."""

from __future__ import annotations

import socket
import sys

import trio

from triclinium import PasswordAuthenticator, open_cluster

AUTHENTICATOR = PasswordAuthenticator("app", "secret")


async def open_and_close(node: str) -> None:
    """Open and close clusters forever; some blocks end before a connection exists, and some after."""
    for count in range(sys.maxsize):
        async with open_cluster(node, AUTHENTICATOR):
            for _ in range(count % 5):
                await trio.lowlevel.checkpoint()
        if count == 5:
            print("running", flush=True)  # noqa: T201  # the test reads it


def main(times: int) -> None:
    """Run until interrupted, ``times`` times."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        node = f"couchbase://127.0.0.1:{silent.getsockname()[1]}"
        for _ in range(times):
            try:
                trio.run(open_and_close, node)
            except BaseException as arrived:
                print(repr(arrived).replace("\n", " "), flush=True)  # noqa: T201  # the test reads it


if __name__ == "__main__":
    main(int(sys.argv[1]))
