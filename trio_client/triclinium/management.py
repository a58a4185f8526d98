"""Managers of buckets, collections, users and indexes, with their settings."""

from __future__ import annotations

from triclinium._management.buckets import BucketManager
from triclinium._management.collections import CollectionManager
from triclinium._management.query_indexes import CollectionQueryIndexManager, QueryIndexManager
from triclinium._management.search_indexes import SearchIndexManager
from triclinium._management.users import UserManager
from triclinium_core.kv.operation.manifest.collections_manifest import CollectionSpec, ScopeSpec
from triclinium_core.services.management.buckets import (
    BucketSettings,
    BucketType,
    CompressionMode,
    ConflictResolutionType,
    CreateBucketSettings,
    EvictionPolicy,
    StorageBackend,
)
from triclinium_core.services.management.collections import CreateCollectionSettings, UpdateCollectionSettings
from triclinium_core.services.management.query_indexes import QueryIndex, QueryIndexType
from triclinium_core.services.management.search_indexes import SearchIndex
from triclinium_core.services.management.users import (
    AuthDomain,
    Group,
    Origin,
    Role,
    RoleAndDescription,
    RoleAndOrigins,
    User,
    UserAndMetadata,
)

__all__ = [
    "AuthDomain",
    "BucketManager",
    "BucketSettings",
    "BucketType",
    "CollectionManager",
    "CollectionQueryIndexManager",
    "CollectionSpec",
    "CompressionMode",
    "ConflictResolutionType",
    "CreateBucketSettings",
    "CreateCollectionSettings",
    "EvictionPolicy",
    "Group",
    "Origin",
    "QueryIndex",
    "QueryIndexManager",
    "QueryIndexType",
    "Role",
    "RoleAndDescription",
    "RoleAndOrigins",
    "ScopeSpec",
    "SearchIndex",
    "SearchIndexManager",
    "StorageBackend",
    "UpdateCollectionSettings",
    "User",
    "UserAndMetadata",
    "UserManager",
]
