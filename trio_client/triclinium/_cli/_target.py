"""Connection options of commands: credentials and trusted certificates."""

from __future__ import annotations

import ssl
import sys
from dataclasses import dataclass

import click

from triclinium._cli._input import WrongInput
from triclinium._cli._options import option
from triclinium_core.kv.topology.connection_string import ConnectionString, Scheme
from triclinium_core.options import PasswordAuthenticator


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetOptions:
    """Credentials and trusted certificates of a command."""

    username: str | None = option(
        metavar="NAME",
        envvar="TRICLINIUM_USERNAME",
        show_envvar=True,
        help="User name. The command prompts for a missing one on a terminal.",
    )
    password: str | None = option(
        metavar="SECRET",
        envvar="TRICLINIUM_PASSWORD",
        show_envvar=True,
        help="Password. The command prompts for a missing one on a terminal.",
    )
    ca_file: str | None = option(
        type=click.Path(exists=True, dir_okay=False),
        help="PEM file of CA certificates to trust instead of the system's.",
    )


def authenticator_for(target: ConnectionString, options: TargetOptions) -> PasswordAuthenticator | None:
    """Return the credentials; None for ``memcached://``. On a terminal, prompt for a missing name or password.

    Raises:
        WrongInput: the name or the password is missing, and standard input is not a terminal.
        InvalidArgumentException: the name or the password is not valid.
    """
    if target.scheme is Scheme.MEMCACHED:
        return None
    return PasswordAuthenticator(
        _asked_for("username", options.username, hide_input=False),
        _asked_for("password", options.password, hide_input=True),
    )


def _asked_for(name: str, value: str | None, *, hide_input: bool) -> str:
    if value is not None:
        return value
    if not is_interactive():
        raise WrongInput(f"--{name} is missing; pass it, or set TRICLINIUM_{name.upper()}")
    answer: str = click.prompt(name.capitalize(), hide_input=hide_input, err=True)
    return answer


def is_interactive() -> bool:
    """Return whether standard input is a terminal."""
    return sys.stdin is not None and sys.stdin.isatty()


def ssl_context_for(target: ConnectionString, ca_file: str | None) -> ssl.SSLContext | None:
    """Return a context that trusts the certificates in ``ca_file``; None without a file, to trust the system's.

    Raises:
        WrongInput: the file cannot be read or has no valid certificates, or the scheme does not use TLS.
    """
    if ca_file is None:
        return None
    if not target.tls:
        raise WrongInput(
            f"--ca-file has no effect with {target.scheme}://, which does not use TLS; omit it, or use couchbases://"
        )
    try:
        return ssl.create_default_context(cafile=ca_file)
    except (OSError, ssl.SSLError) as error:
        raise WrongInput(f"--ca-file {ca_file} cannot be read, or has no valid certificates: {error}") from error
