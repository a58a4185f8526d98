"""Command group ``triclinium``, which imports each command on demand."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

from triclinium._cli._input import WrongInput, suggestion
from triclinium._cli._output import NOT_WRITTEN, PIPE_CLOSED, checked_output
from triclinium_core.shown import printable

COMMANDS: Mapping[str, str] = {
    "demo": "triclinium._cli.demo.demo_command",
    "docs": "triclinium._cli.docs.docs_command",
    "explain": "triclinium._cli.explain.explain_command",
    "ping": "triclinium._cli.ping.ping_command",
    "query": "triclinium._cli.query.query_command",
    "replay": "triclinium._cli.replay.replay_command",
    "serve": "triclinium._cli.serve.serve_command",
    "simulate": "triclinium._cli.simulate.simulate_command",
    "timeline": "triclinium._cli.timeline.timeline_command",
}
"""Module of each command. The module defines the command under the command's name."""


CLICK_WRITES = (click.MissingParameter, click.NoSuchOption, click.BadOptionUsage)
"""Errors whose messages click writes. Most of these messages name no next step."""


class LazyGroup(click.Group):
    """Group that imports a command on demand, and reports wrong input of a command in one line."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command; None if no command has that name."""
        if cmd_name not in COMMANDS:
            return None
        command = getattr(import_module(COMMANDS[cmd_name]), cmd_name)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command at the beginning of ``args``, and the remaining arguments.

        Raises:
            WrongInput: no command has that name.
        """
        if args[0] not in COMMANDS and not ctx.resilient_parsing:
            raise WrongInput(f"unknown command: {args[0]!r}{suggestion(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run the command line, and report lost output like any other error."""
        with checked_output():
            return super().main(*args, **extra)

    def invoke(self, ctx: click.Context) -> object:
        """Run the command.

        Raises:
            WrongInput: the arguments of the command are wrong. The usage lines are omitted, because they hide the
                error.
        """
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            message = error.format_message()
            if isinstance(error, CLICK_WRITES) and error.ctx is not None:
                message += f" Run {error.ctx.command_path} --help for the usage."
            raise WrongInput(printable(message)) from error
        except click.ClickException as error:
            _make_printable(error)
            raise

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Return the context of the command line.

        Raises:
            click.UsageError: an option of the group is invalid. The message is printable.
        """
        try:
            return super().make_context(info_name, args, parent, **extra)
        except CLICK_WRITES as error:
            _make_printable(error)
            raise


def _make_printable(error: click.ClickException) -> None:
    # click declares ``message`` final, so type checkers refuse an assignment.
    vars(error)["message"] = printable(error.message)


EPILOG = f"""\b
Exit status of every command, in addition to its own:
  {NOT_WRITTEN:<4} the output could not be written
  {PIPE_CLOSED:<4} the reader of the output closed the pipe
"""


@click.group(
    cls=LazyGroup, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"], "show_default": True}
)
@click.version_option(package_name="triclinium")
def main() -> None:
    """Couchbase for Trio: watch the client, explain its decisions, and try it without a server."""
