"""The scopes and collections of a bucket: the requests that create, change, read and drop them.

Source: SDK-RFC 0054 "CollectionsManager".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import msgspec

from triclinium_core import errors
from triclinium_core.checks import Duration, check_duration, check_flag, check_type, in_seconds
from triclinium_core.error_context import ErrorContext
from triclinium_core.kv.operation.codec_parts import MalformedResponse
from triclinium_core.kv.operation.manifest.collections_manifest import CollectionsManifest
from triclinium_core.kv.operation.manifest.manifest_codec import decode_manifest, parse_uid
from triclinium_core.kv.operation.validation import check_name
from triclinium_core.services.management.buckets import BUCKETS, EXPIRY_SECONDS_MAX, BucketRequest, whole_seconds
from triclinium_core.services.paths import path
from triclinium_core.services.service_request import HttpResponse, MalformedAnswer, ServiceResult
from triclinium_core.shown import one_line

NEVER_EXPIRES = -1
"""As ``max_expiry``: documents of the collection never expire, whatever the bucket says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateCollectionSettings:
    """What a new collection is like. A setting that is None is not sent: the server chooses.

    Raises:
        InvalidArgumentException: a setting is wrong.

    Source: SDK-RFC 0054 "CreateCollectionSettings".
    """

    max_expiry: Duration | None = None
    """Maximum lifetime of documents: a duration, rounded up to whole seconds; 0 for the maximum of the bucket,
    ``NEVER_EXPIRES`` (-1, or ``timedelta(seconds=-1)``) for no maximum."""
    history: bool | None = None
    """Whether older versions of its documents are kept."""

    def __post_init__(self) -> None:
        if self.max_expiry is not None and in_seconds(self.max_expiry) != NEVER_EXPIRES:
            check_duration(self.max_expiry, "max_expiry", most=EXPIRY_SECONDS_MAX)
        if self.history is not None:
            check_flag(self.history, "history")


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateCollectionSettings(CreateCollectionSettings):
    """What a collection is to be like. A setting that is None stays as it is.

    Raises:
        InvalidArgumentException: a setting is wrong.

    Source: SDK-RFC 0054 "UpdateCollectionSettings".
    """

    def __post_init__(self) -> None:
        CreateCollectionSettings.__post_init__(self)
        if self.max_expiry is None and self.history is None:
            raise errors.InvalidArgumentException(
                "UpdateCollectionSettings() changes nothing; give max_expiry or history", parameter="settings"
            )


class ManifestChanged(ServiceResult, frozen=True):
    """The scopes and collections of a bucket were changed."""

    uid: int
    """Of the manifest that has the change; every later one has a greater number."""


class ScopesResult(ServiceResult, frozen=True):
    """All scopes and collections of a bucket, as the management service knows them."""

    manifest: CollectionsManifest


class _Uid(msgspec.Struct, frozen=True):
    uid: str


class _ScopesRequest(BucketRequest, frozen=True):
    """Base of the requests about the scopes of one bucket."""

    @property
    def target(self) -> str:
        """All scopes."""
        return path(*BUCKETS, self.bucket_name, "scopes")


class GetAllScopes(_ScopesRequest, frozen=True):
    """Read which scopes and collections a bucket has."""

    name: ClassVar[str] = "get_all_scopes"

    def decode(self, answer: HttpResponse) -> ScopesResult:
        """Return the scopes."""
        try:
            return ScopesResult(decode_manifest(answer.body))
        except MalformedResponse as error:
            raise MalformedAnswer(str(error)) from error


class ManifestChange(_ScopesRequest, frozen=True):
    """Base of the requests that change the manifest of a bucket."""

    scope_name: str

    def __post_init__(self) -> None:
        _ScopesRequest.__post_init__(self)
        check_name(self.scope_name, "scope_name")

    def decode(self, answer: HttpResponse) -> ManifestChanged:
        """Return which manifest has the change."""
        digits = answer.body_as(_Uid).uid
        try:
            return ManifestChanged(parse_uid(digits))
        except ValueError as error:
            raise MalformedAnswer(f"the number of a manifest that cannot be: {one_line(str(error))}") from error

    def error_context(self) -> ErrorContext:
        """Return what errors tell of the request: also what it is about."""
        return replace(_ScopesRequest.error_context(self), scope=self.scope_name)


class CreateScope(ManifestChange, frozen=True):
    """Make a scope."""

    name: ClassVar[str] = "create_scope"
    method: ClassVar[str] = "POST"

    def form(self) -> Mapping[str, str]:
        """Return the name of the scope."""
        return {"name": self.scope_name}


class DropScope(ManifestChange, frozen=True):
    """Remove a scope with all that is in it."""

    name: ClassVar[str] = "drop_scope"
    method: ClassVar[str] = "DELETE"

    @property
    def target(self) -> str:
        """The scope."""
        return path(*BUCKETS, self.bucket_name, "scopes", self.scope_name)


class _OfCollection(ManifestChange, frozen=True):
    """Base of the requests about one collection."""

    collection_name: str

    def __post_init__(self) -> None:
        ManifestChange.__post_init__(self)
        check_name(self.collection_name, "collection_name")

    @property
    def target(self) -> str:
        """The collection."""
        return path(*BUCKETS, self.bucket_name, "scopes", self.scope_name, "collections", self.collection_name)

    def error_context(self) -> ErrorContext:
        """Return what errors tell of the request: also what it is about."""
        return replace(ManifestChange.error_context(self), collection=self.collection_name)


class CreateCollection(_OfCollection, frozen=True):
    """Make a collection."""

    name: ClassVar[str] = "create_collection"
    method: ClassVar[str] = "POST"

    settings: CreateCollectionSettings = CreateCollectionSettings()

    def __post_init__(self) -> None:
        _OfCollection.__post_init__(self)
        check_type(self.settings, "settings", CreateCollectionSettings)

    @property
    def target(self) -> str:
        """All collections of the scope."""
        return path(*BUCKETS, self.bucket_name, "scopes", self.scope_name, "collections")

    def form(self) -> Mapping[str, str]:
        """Return the name of the collection, and the settings that are given."""
        return {"name": self.collection_name, **_form(self.settings)}


class UpdateCollection(_OfCollection, frozen=True):
    """Change a collection."""

    name: ClassVar[str] = "update_collection"
    method: ClassVar[str] = "PATCH"

    settings: UpdateCollectionSettings

    def __post_init__(self) -> None:
        _OfCollection.__post_init__(self)
        check_type(self.settings, "settings", UpdateCollectionSettings)

    def form(self) -> Mapping[str, str]:
        """Return the settings that are given."""
        return _form(self.settings)


class DropCollection(_OfCollection, frozen=True):
    """Remove a collection with all that is in it."""

    name: ClassVar[str] = "drop_collection"
    method: ClassVar[str] = "DELETE"


def _form(settings: CreateCollectionSettings) -> Mapping[str, str]:
    form = {}
    if settings.max_expiry is not None:
        form["maxTTL"] = whole_seconds(settings.max_expiry)
    if settings.history is not None:
        form["history"] = "true" if settings.history else "false"
    return form
