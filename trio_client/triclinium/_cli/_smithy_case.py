"""From the options of ``triclinium explain smithy`` to a case that the core explains."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypedDict

from triclinium._cli._wrong_input import WrongInput, choose
from triclinium_core.explain.smithy.explain import Case
from triclinium_core.explain.smithy.script import Response, ScriptedClock
from triclinium_core.explain.vectors.smithy import NUMBERS, RESPONSES, STRATEGIES, Draws
from triclinium_core.retry.smithy.adaptive import AdaptiveRetryStrategy
from triclinium_core.retry.smithy.numbers import AwsRetryNumbers
from triclinium_core.retry.smithy.simple import SimpleRetryStrategy
from triclinium_core.retry.smithy.standard import StandardRetryStrategy

RETRY_AFTER_MAX = 1e9
"""Three decades, in seconds: the clock of a strategy holds a few of them."""


class SmithyOptions(TypedDict):
    """The options of the command; None for one that was not given."""

    responses: tuple[str, ...]
    strategy: str
    numbers: str | None
    max_attempts: int | None
    quota: int | None
    random: float
    retry_after: float | None


def build_case(options: SmithyOptions) -> Case:
    """Return the case.

    Raises:
        WrongInput: a name is not known, or options are missing or do not go together.
    """
    if not options["responses"]:
        raise WrongInput("say with --responses what the attempts end with, such as E,T,ok; --help says what they are")
    if math.isnan(options["random"]):
        raise WrongInput("--random nan is not a number from 0 to 1")
    retry_after = options["retry_after"]
    if retry_after is not None and retry_after > RETRY_AFTER_MAX:
        raise WrongInput(f"--retry-after {retry_after:g} is too long; {RETRY_AFTER_MAX:g} seconds at most")
    operations = [_operation(text) for text in options["responses"]]
    clock = ScriptedClock()
    return Case(
        strategy=_strategy(options, clock),
        operations=operations,
        retry_after=retry_after,
        wait=clock.wait,
    )


def _operation(text: str) -> Sequence[Response]:
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise WrongInput(f"--responses {text!r} has an empty place; write it like E,T,ok")
    return [choose(name, RESPONSES, "response") for name in names]


def _strategy(options: SmithyOptions, clock: ScriptedClock) -> StandardRetryStrategy | SimpleRetryStrategy:
    name = choose(options["strategy"], _NAMES, "strategy")
    rng, attempts, quota = Draws(options["random"]), options["max_attempts"], options["quota"]
    if name == "standard":
        return StandardRetryStrategy(rng=rng, numbers=_numbers(options), max_attempts=attempts, quota_capacity=quota)
    if name == "adaptive":
        return AdaptiveRetryStrategy(
            rng=rng, clock=clock, numbers=_numbers(options), max_attempts=attempts, quota_capacity=quota
        )
    for option, value in (("--numbers", options["numbers"]), ("--quota", quota)):
        if value is not None:
            raise WrongInput(f"{option} says nothing about the strategy {name}, which has none; leave it out")
    return SimpleRetryStrategy(rng=rng) if attempts is None else SimpleRetryStrategy(rng=rng, max_attempts=attempts)


_NAMES: Mapping[str, str] = {name: name for name in STRATEGIES}


def _numbers(options: SmithyOptions) -> AwsRetryNumbers:
    year = options["numbers"]
    return AwsRetryNumbers.OF_2026 if year is None else choose(year, NUMBERS, "year of numbers")
