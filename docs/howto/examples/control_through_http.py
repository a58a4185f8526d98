"""Control fake nodes in another process, with Python's standard library only."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any

SERVE = [sys.executable, "-m", "triclinium", "serve", "--json", "--nodes", "2"]


def ask(control: Mapping[str, str], path: str, command: object = None) -> Any:
    """Return the answer to a request; with a command, carry it out. A refused command raises ValueError."""
    headers = {"Authorization": f"Bearer {control['token']}", "Content-Type": "application/json"}
    body = None if command is None else json.dumps(command).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(control["url"] + path, body, headers)) as response:
            return json.load(response)
    except urllib.error.HTTPError as refused:
        with refused:
            error = json.load(refused)["error"]
        raise ValueError(f"{error['field']}: {error['message']}") from refused


def alive(control: Mapping[str, str]) -> list[bool]:
    """Return for each node whether it is alive."""
    return [node["is_alive"] for node in ask(control, "/state")["nodes"]]


def main() -> None:
    """Kill a node and revive it, add a fault, and make a mistake."""
    with subprocess.Popen(SERVE, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            control = json.loads(server.stdout.readline())["control"]
            ask(control, "/commands", {"command": "kill", "node": 1})
            print("alive after the kill:", alive(control))
            ask(control, "/commands", "@1: revive")
            print("alive again:", alive(control))
            fault = {"kind": "delay", "seconds": 0.4}
            ask(control, "/commands", {"command": "add_fault", "target": "get", "fault": fault, "times": 2})
            print("faults of the first node:", ask(control, "/state")["nodes"][0]["faults"])
            ask(control, "/commands", {"command": "kill", "node": 2})
        except ValueError as error:
            print("refused:", error)
        finally:
            server.terminate()


if __name__ == "__main__":
    main()
