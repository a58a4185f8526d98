"""Whatever goes wrong, the client never lies and never hangs: scripts, run in virtual time and held against a model."""

from __future__ import annotations

from hypothesis import given, settings

from tests.properties.run_script import run_script
from tests.properties.scripts import Script, scripts

STEPS_MAX = 8


@given(script=scripts(max_size=STEPS_MAX))
def test_the_client_agrees_with_the_model(script: Script) -> None:
    """Callers are told what some history allows, in time; and once nothing is wrong any more, everything works."""
    run_script(script)


# What is not repeatable shows in almost any script, and each runs twice.
@settings(max_examples=10)
@given(script=scripts(max_size=STEPS_MAX))
def test_the_same_script_gives_the_same_run(script: Script) -> None:
    """Every answer, every command and the virtual duration are the same when a script runs again."""
    assert run_script(script) == run_script(script)
