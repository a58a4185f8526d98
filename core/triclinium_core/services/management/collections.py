"""Scopes and collections of a bucket: the requests that create, change, read and drop them.

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
"""Value of ``max_expiry`` for a collection without a maximum lifetime, even if the bucket has one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateCollectionSettings:
    """Settings of a new collection. A setting of None is not sent, and the server chooses.

    Raises:
        InvalidArgumentException: a setting is invalid.

    Source: SDK-RFC 0054 "CreateCollectionSettings".
    """

    max_expiry: Duration | None = None
    """Maximum lifetime of documents: a duration, rounded up to whole seconds; 0 for the maximum of the bucket,
    ``NEVER_EXPIRES`` (-1, or ``timedelta(seconds=-1)``) for no maximum."""
    history: bool | None = None
    """Whether the collection keeps older versions of its documents."""

    def __post_init__(self) -> None:
        if self.max_expiry is not None and in_seconds(self.max_expiry) != NEVER_EXPIRES:
            check_duration(self.max_expiry, "max_expiry", most=EXPIRY_SECONDS_MAX)
        if self.history is not None:
            check_flag(self.history, "history")


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateCollectionSettings(CreateCollectionSettings):
    """New settings of a collection. A setting of None keeps its current value.

    Raises:
        InvalidArgumentException: a setting is invalid, or no setting is given.

    Source: SDK-RFC 0054 "UpdateCollectionSettings".
    """

    def __post_init__(self) -> None:
        CreateCollectionSettings.__post_init__(self)
        if self.max_expiry is None and self.history is None:
            raise errors.InvalidArgumentException(
                "UpdateCollectionSettings() changes nothing; pass max_expiry or history", parameter="settings"
            )


class ManifestChanged(ServiceResult, frozen=True):
    """Result of a change to the scopes and collections of a bucket."""

    uid: int
    """Number of the manifest with the change. Every later manifest has a greater number."""


class ScopesResult(ServiceResult, frozen=True):
    """All scopes and collections of a bucket, as reported by the management service."""

    manifest: CollectionsManifest


class _Uid(msgspec.Struct, frozen=True):
    uid: str


class _ScopesRequest(BucketRequest, frozen=True):
    """Base of the requests about the scopes of one bucket."""

    @property
    def target(self) -> str:
        """Path of all scopes."""
        return path(*BUCKETS, self.bucket_name, "scopes")


class GetAllScopes(_ScopesRequest, frozen=True):
    """Request for the scopes and collections of a bucket."""

    name: ClassVar[str] = "get_all_scopes"

    def decode(self, answer: HttpResponse) -> ScopesResult:
        """Return the scopes and collections in the response."""
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
        """Return the number of the manifest with the change."""
        digits = answer.body_as(_Uid).uid
        try:
            return ManifestChanged(parse_uid(digits))
        except ValueError as error:
            raise MalformedAnswer(one_line(str(error))) from error

    def error_context(self) -> ErrorContext:
        """Return the error context of the request, with its scope."""
        return replace(_ScopesRequest.error_context(self), scope=self.scope_name)


class CreateScope(ManifestChange, frozen=True):
    """Request that creates a scope."""

    name: ClassVar[str] = "create_scope"
    method: ClassVar[str] = "POST"

    def form(self) -> Mapping[str, str]:
        """Return the name of the scope."""
        return {"name": self.scope_name}


class DropScope(ManifestChange, frozen=True):
    """Request that drops a scope with all its data."""

    name: ClassVar[str] = "drop_scope"
    method: ClassVar[str] = "DELETE"

    @property
    def target(self) -> str:
        """Path of the scope."""
        return path(*BUCKETS, self.bucket_name, "scopes", self.scope_name)


class _OfCollection(ManifestChange, frozen=True):
    """Base of the requests about one collection."""

    collection_name: str

    def __post_init__(self) -> None:
        ManifestChange.__post_init__(self)
        check_name(self.collection_name, "collection_name")

    @property
    def target(self) -> str:
        """Path of the collection."""
        return path(*BUCKETS, self.bucket_name, "scopes", self.scope_name, "collections", self.collection_name)

    def error_context(self) -> ErrorContext:
        """Return the error context of the request, with its collection."""
        return replace(ManifestChange.error_context(self), collection=self.collection_name)


class CreateCollection(_OfCollection, frozen=True):
    """Request that creates a collection."""

    name: ClassVar[str] = "create_collection"
    method: ClassVar[str] = "POST"

    settings: CreateCollectionSettings = CreateCollectionSettings()

    def __post_init__(self) -> None:
        _OfCollection.__post_init__(self)
        check_type(self.settings, "settings", CreateCollectionSettings)

    @property
    def target(self) -> str:
        """Path of all collections of the scope."""
        return path(*BUCKETS, self.bucket_name, "scopes", self.scope_name, "collections")

    def form(self) -> Mapping[str, str]:
        """Return the name of the collection, and the settings that are not None."""
        return {"name": self.collection_name, **_form(self.settings)}


class UpdateCollection(_OfCollection, frozen=True):
    """Request that changes a collection."""

    name: ClassVar[str] = "update_collection"
    method: ClassVar[str] = "PATCH"

    settings: UpdateCollectionSettings

    def __post_init__(self) -> None:
        _OfCollection.__post_init__(self)
        check_type(self.settings, "settings", UpdateCollectionSettings)

    def form(self) -> Mapping[str, str]:
        """Return the settings that are not None."""
        return _form(self.settings)


class DropCollection(_OfCollection, frozen=True):
    """Request that drops a collection with all its data."""

    name: ClassVar[str] = "drop_collection"
    method: ClassVar[str] = "DELETE"


def _form(settings: CreateCollectionSettings) -> Mapping[str, str]:
    form = {}
    if settings.max_expiry is not None:
        form["maxTTL"] = whole_seconds(settings.max_expiry)
    if settings.history is not None:
        form["history"] = "true" if settings.history else "false"
    return form
