"""Settings of a policy in a profile: the checked class name and options. Equal settings share one policy object.

Source: the Cassandra Java driver, "Using multiple policies"; decisions A11 and D72.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, time
from typing import Generic, TypeVar

from triclinium_core.argument_error import ArgumentError
from triclinium_core.shown import shown

T = TypeVar("T")

CLASS = "class"
"""Key of the class name in the table of a policy. All other keys are options of that class."""

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class PolicyChoices(Generic[T]):
    """Classes of one kind of policy, by name.

    Args:
        shipped: policies of this package. Their constructors check the options and have no other effect.
        own: policies of the program that embeds this package.
        require: function that raises ArgumentError for an object that is not a policy of this kind.
        hint: end of the error message about an unknown class, with the next step.
    """

    shipped: Mapping[str, Callable[..., T]]
    own: Mapping[str, Callable[..., T]]
    require: Callable[[T], None]
    hint: str = ""

    @property
    def factories(self) -> Mapping[str, Callable[..., T]]:
        """Factories of all policies by name; those of this package come first."""
        return {**self.shipped, **self.own}


@dataclass(frozen=True, slots=True)
class PolicySettings(Generic[T]):
    """Settings of one policy, including inherited settings. ``path`` is the path of its table in the document."""

    path: str
    name: str
    factory: Callable[..., T]
    options: Mapping[str, object]

    @property
    def key(self) -> Hashable:
        """Key that is equal for tables with the same policy, even if one uses another name or omits a default."""
        parameters = _parameters(self.factory) or {}
        defaults = {name: given.default for name, given in parameters.items() if given.default is not given.empty}
        return id(self.factory), _key({**defaults, **self.options})


def settle(
    tree: Mapping[str, object], path: str, choices: PolicyChoices[T], base: PolicySettings[T]
) -> PolicySettings[T]:
    """Return the settings in the table of a policy, without creating the policy.

    Args:
        base: settings to inherit. A table without ``class`` inherits the class. A table whose class is that of ``base``
            inherits the options that it omits.

    Raises:
        ArgumentError: the class is unknown, or an option is unknown, missing, given twice or nested too deeply.
    """
    name = tree.get(CLASS, base.name)
    factories = choices.factories
    if not isinstance(name, str) or name not in factories:
        raise wrong(
            key_path(path, CLASS), f"={shown(name)} is not known; choose one of {', '.join(factories)}{choices.hint}"
        )
    factory = factories[name]
    inherited = base.options if factory is base.factory else {}
    options = {**inherited, **_options_of(tree, path, factory)}
    _require_options(options, path, name, factory)
    settings = PolicySettings(path, name, factory, options)
    try:
        hash(settings.key)
    except RecursionError:
        raise wrong(path, " has an option that is nested too deeply") from None
    return settings


def _options_of(tree: Mapping[str, object], path: str, factory: Callable[..., object]) -> Mapping[str, object]:
    """Return the options in the table of a policy, by parameter name.

    The driver's option names have hyphens instead of underscores, as in ``max-executions``.
    """
    parameters = _parameters(factory) or {}
    options: dict[str, object] = {}
    for key, value in tree.items():
        if key == CLASS:
            continue
        keyword = key.replace("-", "_") if isinstance(key, str) else key
        option = keyword if keyword in parameters else key
        if option in options:
            raise wrong(key_path(path, key), f" is given twice, with hyphens and with underscores; keep {option}")
        options[option] = value
    return options


def _require_options(options: Mapping[str, object], path: str, name: str, factory: Callable[..., object]) -> None:
    parameters = _parameters(factory)
    if parameters is None:
        return
    named = [option for option, given in parameters.items() if given.kind in _GIVEN_BY_NAME]
    takes_any = any(given.kind is given.VAR_KEYWORD for given in parameters.values())
    for option in options:
        if option not in named and not (takes_any and isinstance(option, str)):
            raise wrong(key_path(path, option), f" is not an option of {name}; it has {', '.join(named) or 'none'}")
    for option in named:
        if parameters[option].default is inspect.Parameter.empty and option not in options:
            raise wrong(key_path(path, option), f" is missing; {name} needs it")


_GIVEN_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def _parameters(factory: Callable[..., object]) -> Mapping[str, inspect.Parameter] | None:
    """Return the parameters of ``factory``; None if Python cannot determine its signature."""
    try:
        return inspect.signature(factory).parameters
    except (TypeError, ValueError):
        return None


def _key(value: object) -> Hashable:
    """Return a key that is equal only for equal values of the same types. In Python, 1 equals True."""
    match value:
        case Mapping():
            return Mapping, frozenset((name, _key(entry)) for name, entry in value.items())
        case list() | tuple():
            return type(value), tuple(_key(entry) for entry in value)
        case None | bool() | int() | str():
            return type(value), value
        case float() | date() | time():
            # The values themselves do not serve as keys: NaN does not equal itself, and times in different time zones
            # may be equal.
            return type(value), repr(value)
        case _:
            return id(value)


def make_policies(settings: Sequence[PolicySettings[T]], choices: PolicyChoices[T]) -> Sequence[T]:
    """Return a policy for each settings object. Settings with the same key share one policy.

    Create the policies of this package first, so that their invalid options are found before any code of the embedding
    program runs.

    Raises:
        ArgumentError: a class refused the value of an option, raised another exception (the ``__cause__``), or created
            an object that is not a policy.
    """
    made: dict[Hashable, T] = {}
    for one in sorted(settings, key=lambda one: one.name not in choices.shipped):
        if one.key not in made:
            made[one.key] = _make(one, choices)
    return [made[one.key] for one in settings]


def _make(settings: PolicySettings[T], choices: PolicyChoices[T]) -> T:
    try:
        policy = settings.factory(**settings.options)
        choices.require(policy)
    except ArgumentError as error:
        if error.parameter not in settings.options:
            raise wrong(settings.path, f": {error}") from error
        where = key_path(settings.path, error.parameter)
        text = str(error).removeprefix(error.parameter)
        raise wrong(where, text if text.startswith("=") else f": {error}") from error
    except Exception as error:
        raise wrong(
            settings.path, f": {settings.name} cannot be created with its options: it raised {shown(error)}"
        ) from error
    return policy


def key_path(path: str, key: object) -> str:
    """Return the path of ``key`` in the table at ``path``, in the notation of TOML."""
    shown = key if isinstance(key, str) and _BARE_KEY.fullmatch(key) else _quoted(key)
    return f"{path}.{shown}" if path else shown


def _quoted(key: object) -> str:
    return json.dumps(key if isinstance(key, str) else shown(key), ensure_ascii=False)


def wrong(path: str, text: str) -> ArgumentError:
    """Return an error whose message is ``path`` followed by ``text``."""
    return ArgumentError(f"{path}{text}", parameter=path)
