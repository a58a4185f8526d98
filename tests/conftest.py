"""Choice of the header decoder and the Hypothesis profile, which the header of a run shows.

Only this file reads ``TRICLINIUM_IMPL`` (``c`` or ``python``). The workspace always builds the C module, so a plain run
tests the module, and fails if it cannot be loaded.
"""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from typing import cast

import pytest
from hypothesis import HealthCheck, Phase, settings

from tests.decoder_faults import CONTAIN, reraise
from tests.environment import IN_CI, keep_bytecode, left_out
from tests.stages import check_stages
from triclinium_core import decoder_faults
from triclinium_core._speedups import Implementation, implementation, use_implementation

FUZZ_INPUTS = int(os.environ.get("TRICLINIUM_FUZZ_INPUTS", "50000"))

# No profile depends on the clock: neither `deadline` nor `too_slow` may determine whether a test passes.
COMMON = settings(deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("dev", COMMON, max_examples=25)
settings.register_profile("ci", COMMON, derandomize=True, database=None, max_examples=200)
settings.register_profile("fuzz", COMMON, database=None, max_examples=FUZZ_INPUTS)
# These profiles are for planted bugs: "find" uses the examples of CI, and "shrink" reduces a failing example.
settings.register_profile(
    "find", settings.get_profile("ci"), phases=[Phase.explicit, Phase.generate], report_multiple_bugs=False
)
settings.register_profile(
    "shrink", COMMON, derandomize=True, database=None, max_examples=600, report_multiple_bugs=False
)
settings.register_profile("wasm", COMMON, derandomize=True, database=None, max_examples=20)
settings.load_profile("ci" if IN_CI else "dev")

collect_ignore = left_out()
keep_bytecode()


def pytest_configure() -> None:
    """Bind the decoder before any test module is imported, check stages, and restore Ctrl-C."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # Restore SIGINT, which shells make background processes ignore: child processes of tests would inherit this.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    check_stages()
    try:
        use_implementation(cast("Implementation", os.environ.get("TRICLINIUM_IMPL", "c")))
    except (ImportError, ValueError) as error:
        raise pytest.UsageError(f"TRICLINIUM_IMPL: {error}") from error


def pytest_collection() -> None:
    """Pause the garbage collector, because the collection of tests creates almost no garbage."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Resume the garbage collector."""
    gc.enable()


@pytest.fixture(autouse=True, scope="session")
def _raise_decoder_faults() -> Iterator[None]:
    """Let an unexpected exception of a decoder fail the test, so that fuzzing finds it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decoder_faults, "unexpected", reraise)
        yield


@pytest.fixture
def contain_decoder_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    """Contain unexpected exceptions of decoders, as programs do."""
    monkeypatch.setattr(decoder_faults, "unexpected", CONTAIN)


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Show the parameters of the run, and how to repeat it."""
    profile = settings.get_current_profile_name()
    seed = config.getoption("hypothesis_seed", default=None)
    if seed is not None:
        replay = f"--hypothesis-profile={profile} --hypothesis-seed={seed}"
    elif settings.default is not None and settings.default.derandomize:
        replay = f"--hypothesis-profile={profile} (the same examples every time)"
    else:
        replay = "--hypothesis-seed=N fixes the examples; a failure prints its @reproduce_failure line"
    lines = [f"header decoder: {implementation()}, hypothesis profile: {profile}", f"replay: {replay}"]
    if collect_ignore:
        lines.append(f"this Python is too old for {', '.join(collect_ignore)}: tests/wasm/run has a newer one")
    return lines
