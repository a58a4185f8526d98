"""Scripts of the client in virtual time: every result agrees with a model, and no call hangs."""

from __future__ import annotations

from hypothesis import given, settings

from tests.properties.run_script import run_script
from tests.properties.scripts import Script, scripts

STEPS_MAX = 8


@given(script=scripts(max_size=STEPS_MAX))
def test_the_client_agrees_with_the_model(script: Script) -> None:
    """Every result fits a history and is on time, and after the faults every operation succeeds."""
    run_script(script)


# Ten examples are enough: almost any script reveals a run that is not repeatable, and each script runs twice.
@settings(max_examples=10)
@given(script=scripts(max_size=STEPS_MAX))
def test_the_same_script_gives_the_same_run(script: Script) -> None:
    """If a script runs twice, both runs have equal results, commands and virtual durations."""
    assert run_script(script) == run_script(script)
