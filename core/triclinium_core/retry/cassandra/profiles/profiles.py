"""Execution profiles: policies and default options for requests, by the name of the profile.

Source: the retry page of the Cassandra Java driver, "Using multiple policies"; decisions A11 and D72.
"""

from __future__ import annotations

import dataclasses
import inspect
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Self, cast

from triclinium_core.argument_error import ArgumentError
from triclinium_core.checks import Duration
from triclinium_core.retry.cassandra.consistency import ConsistencyLevel
from triclinium_core.retry.cassandra.policies import POLICIES, DefaultRetryPolicy
from triclinium_core.retry.cassandra.policy import RetryPolicy, require_policy
from triclinium_core.retry.cassandra.profiles.policy_settings import PolicyChoices, make_policies
from triclinium_core.retry.cassandra.profiles.settings import (
    DEFAULT_PROFILE,
    LEVELS,
    SERIAL_LEVELS,
    SPECULATIVE_EXECUTION,
    ProfilesDocument,
    check_level,
    read_profiles,
)
from triclinium_core.retry.cassandra.requests import cassandra_request
from triclinium_core.retry.cassandra.requests.speculation import (
    NoSpeculativeExecution,
    SpeculativeExecutionPolicy,
    require_speculation,
)
from triclinium_core.retry.checks import check_flag
from triclinium_core.shown import shown, total_repr

_POLICY, _SPECULATION = "retry_policy", "speculative_execution_policy"
_HINT = ", or register your class under this name in policies"

PolicyFactory = Callable[..., RetryPolicy]
"""Factory, usually a class, that takes the options in the document as keyword arguments and returns a retry policy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionProfile:
    """Policies and options of a request. The defaults are those of the Cassandra Java driver.

    Args:
        name: name of the profile.
        retry_policy: policy that decides about failures.
        speculative_execution_policy: policy that decides whether a slow request is also sent to another node.
        default_idempotence: whether a statement is idempotent if it does not specify this itself.
        request_timeout: timeout of the complete request, in seconds; ``math.inf`` for no timeout.
        consistency: consistency level of a statement that specifies no level.
        serial_consistency: level for the condition of a lightweight transaction, SERIAL or LOCAL_SERIAL.

    Raises:
        ArgumentError: an argument is of the wrong type or out of range.
    """

    name: str = DEFAULT_PROFILE
    retry_policy: RetryPolicy = field(default_factory=DefaultRetryPolicy)
    speculative_execution_policy: SpeculativeExecutionPolicy = field(default_factory=NoSpeculativeExecution)
    default_idempotence: bool = False
    request_timeout: float = cassandra_request.TIMEOUT_DEFAULT
    consistency: ConsistencyLevel = ConsistencyLevel.LOCAL_ONE
    serial_consistency: ConsistencyLevel = ConsistencyLevel.SERIAL

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise ArgumentError(f"name={shown(self.name)} must be a non-empty string", parameter="name")
        require_policy(self.retry_policy, "retry_policy")
        require_speculation(self.speculative_execution_policy, "speculative_execution_policy")
        check_flag(self.default_idempotence, "default_idempotence")
        object.__setattr__(
            self, "request_timeout", cassandra_request.check_timeout(self.request_timeout, "request_timeout")
        )
        check_level(self.consistency, "consistency", LEVELS)
        check_level(self.serial_consistency, "serial_consistency", SERIAL_LEVELS)

    def request(
        self,
        *,
        kind: cassandra_request.RequestKind = cassandra_request.RequestKind.STATEMENT,
        idempotent: bool | None = None,
        consistency: ConsistencyLevel | None = None,
        serial_consistency: ConsistencyLevel | None = None,
        timeout: Duration | None = None,
    ) -> cassandra_request.CassandraRequest:
        """Return a request with this profile's policies and options. An argument that is not None replaces an option.

        Raises:
            ArgumentError: an argument is of the wrong type or out of range, or a PREPARE has a consistency level.
        """
        has_levels = kind is cassandra_request.RequestKind.STATEMENT
        if has_levels and consistency is None:
            consistency = self.consistency
        if has_levels and serial_consistency is None:
            serial_consistency = self.serial_consistency
        return cassandra_request.CassandraRequest(
            policy=self.retry_policy,
            idempotent=self.default_idempotence if idempotent is None else idempotent,
            kind=kind,
            consistency=consistency,
            serial_consistency=serial_consistency,
            timeout=self.request_timeout if timeout is None else timeout,
            speculation=self.speculative_execution_policy,
        )

    def derived(
        self,
        *,
        default_idempotence: bool | None = None,
        request_timeout: float | None = None,
        consistency: ConsistencyLevel | None = None,
        serial_consistency: ConsistencyLevel | None = None,
    ) -> Self:
        """Return a copy of this profile with some options replaced. None keeps an option.

        The copy keeps the name and the policies, because all requests under a name share its policies.

        Raises:
            ArgumentError: an argument is of the wrong type or out of range.
        """
        return dataclasses.replace(
            self,
            default_idempotence=self.default_idempotence if default_idempotence is None else default_idempotence,
            request_timeout=self.request_timeout if request_timeout is None else request_timeout,
            consistency=self.consistency if consistency is None else consistency,
            serial_consistency=self.serial_consistency if serial_consistency is None else serial_consistency,
        )


class ExecutionProfiles:
    """Profiles by name. There is always a profile named "default".

    Args:
        profiles: the profiles. If none is named "default", a profile with the driver's defaults is added.

    Raises:
        ArgumentError: an argument is not a profile, or two profiles have the same name.
    """

    def __init__(self, *profiles: ExecutionProfile) -> None:
        found: dict[str, ExecutionProfile] = {}
        for profile in profiles:
            if not isinstance(profile, ExecutionProfile):
                raise ArgumentError(f"profiles: {shown(profile)} is not an ExecutionProfile", parameter="profiles")
            if profile.name in found:
                raise ArgumentError(
                    f"profiles: two are named {shown(profile.name)}; rename one of them", parameter="profiles"
                )
            found[profile.name] = profile
        if DEFAULT_PROFILE not in found:
            found = {DEFAULT_PROFILE: ExecutionProfile(), **found}
        self._profiles: Mapping[str, ExecutionProfile] = MappingProxyType(found)

    @classmethod
    def from_mapping(
        cls, document: ProfilesDocument, *, policies: Mapping[str, PolicyFactory] = MappingProxyType({})
    ) -> Self:
        """Return the profiles in ``document``: the default profile at its top level, the others under ``profiles``.

        A profile inherits each option that it omits from the default profile. It inherits the options of a policy only
        if the class of the policy is the same. Profiles with the same class and the same options share one policy.

        Options may also have the names of the driver's configuration, such as ``basic.request.timeout`` and
        ``advanced.retry-policy``. These names may be nested tables or one dotted key, and may be inside a table
        ``datastax-java-driver``. Other options of the driver are refused. A duration is a number of seconds, or a
        string with a unit, such as ``30 seconds``. A duration under a name of the driver requires the unit, unless it
        is 0 or infinite, because the driver reads a number as milliseconds.

        This method checks the complete document before it calls a class in ``policies``.

        Args:
            policies: your own retry policies, by the value of ``class`` in the document. That value may be a qualified
                name, but no class is imported by name. Each factory is called with the other keys of ``retry_policy``
                as keyword arguments, with underscores instead of hyphens.

        Raises:
            ArgumentError: a key or name is unknown, a value is of the wrong type or out of range, or a class raised an
                exception (the ``__cause__``). ``parameter`` is the path, such as ``profiles.slow.request_timeout``.
        """
        retry: PolicyChoices[RetryPolicy] = PolicyChoices(POLICIES, _require_own(policies), require_policy, _HINT)
        settings = read_profiles(document, retry)
        speculative = make_policies([one[_SPECULATION] for one in settings], SPECULATIVE_EXECUTION)
        made = make_policies([one[_POLICY] for one in settings], retry)
        return cls(
            *(
                ExecutionProfile(**{**one, _POLICY: policy, _SPECULATION: speculation})
                for one, policy, speculation in zip(settings, made, speculative, strict=True)
            )
        )

    @classmethod
    def from_toml(cls, text: str, *, policies: Mapping[str, PolicyFactory] = MappingProxyType({})) -> Self:
        """Return the profiles in a TOML document, as ``from_mapping`` does. ``text`` is the document, not its path.

        Raises:
            ArgumentError: ``text`` is not TOML, or ``from_mapping`` raises it for the parsed document.
        """
        if not isinstance(text, str):
            raise ArgumentError(f"text={shown(text)} must be a string; decode bytes first", parameter="text")
        try:
            document = tomllib.loads(text)
        except (ValueError, RecursionError) as error:
            # A number with too many digits raises a plain ValueError, and deep nesting a RecursionError.
            raise ArgumentError(f"text is not TOML: {error}", parameter="text") from error
        return cls.from_mapping(cast(ProfilesDocument, document), policies=policies)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all profiles."""
        return tuple(self._profiles)

    @property
    def default(self) -> ExecutionProfile:
        """Profile for requests that specify no profile."""
        return self._profiles[DEFAULT_PROFILE]

    def find(self, name: str = DEFAULT_PROFILE) -> ExecutionProfile:
        """Return the profile with this name.

        Raises:
            ArgumentError: the name is unknown.
        """
        if not isinstance(name, str) or name not in self._profiles:
            raise ArgumentError(
                f"name={shown(name)} is not a profile; known profiles: {', '.join(self._profiles)}", parameter="name"
            )
        return self._profiles[name]

    @total_repr
    def __repr__(self) -> str:
        return f"<ExecutionProfiles {', '.join(self._profiles)}>"


def _require_own(policies: Mapping[str, PolicyFactory]) -> Mapping[str, PolicyFactory]:
    if not isinstance(policies, Mapping):
        raise ArgumentError(f"policies={shown(policies)} must map names to classes", parameter="policies")
    for name, factory in policies.items():
        if not isinstance(name, str) or not name or name in POLICIES:
            raise ArgumentError(
                f"policies: {shown(name)} must be a new name, not one of {', '.join(POLICIES)}",
                parameter="policies",
            )
        if not callable(factory):
            raise ArgumentError(
                f"policies: {shown(name)} is {shown(factory)}; pass a class, which is called with the options",
                parameter="policies",
            )
        if inspect.iscoroutinefunction(factory):
            raise ArgumentError(
                f"policies: {shown(name)} is an `async def`; pass a class or a plain function", parameter="policies"
            )
    return dict(policies)
