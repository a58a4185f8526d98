"""Browser with one page, driven through ``browser.mjs``."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlsplit

from tests.live.line_process import LineProcess

ANSWERED, READY, RUNS = "The core has answered", "Python is ready", "Python runs"
LOADING = "Python is being loaded"


class Browser:
    """Browser with at most one open page."""

    def __init__(self, process: LineProcess) -> None:
        self._process = process

    def open(self, address: str, *, status: str = ANSWERED, **options: Any) -> None:
        """Open a page in a new context, and wait until its status begins with ``status``."""
        self._ask(open=address, **options)
        self.wait_for(status)

    def wait_for(self, status: str) -> None:
        """Wait until the status of the page begins with this text."""
        self.at(f"#playground-status:text-matches('^{status}')", "waitFor")

    def page(self, method: str, *arguments: object) -> Any:
        """Call a method of the page, and return its result."""
        return self._ask(call=method, arguments=arguments)

    def at(self, selector: str, method: str, *arguments: object) -> Any:
        """Call a method of an element, and return its result."""
        return self._ask(locate=selector, call=method, arguments=arguments)

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression of JavaScript."""
        return self.page("evaluate", expression)

    def shows(self, form: str, html: str) -> bool:
        """Return whether the answer below a form has exactly these elements, attributes and texts."""
        return bool(
            self.evaluate(
                f"document.getElementById('{form}-answer').innerHTML.trim() === "
                f"new DOMParser().parseFromString({json.dumps(html)}, 'text/html').body.innerHTML"
            )
        )

    def problems(self) -> list[str]:
        """Return the errors on the console, and the requests to other hosts, since the page was opened."""
        log = self._ask(log=True)
        own = urlsplit(self.evaluate("location.href")).netloc
        return [*log["wrong"], *(url for url in log["requests"] if not url.startswith(f"http://{own}/"))]

    def _ask(self, **question: Any) -> Any:
        answer = self._process.ask(**question)
        assert "error" not in answer, answer["error"]
        return answer["value"]
