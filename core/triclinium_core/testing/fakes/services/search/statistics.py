"""Statistics of the search indexes of a fake cluster. Each index has one partition, which is always up to date.

Source: cbgt ``rest/rest_manage.go``; cbft ``ns_server.go``, ``pindex_bleve.go``.
"""

from __future__ import annotations

from collections.abc import Mapping

from triclinium_core.kv.operation.validation import DEFAULT_NAME
from triclinium_core.testing.fakes.store.state import NodeState

_DEFAULT = (DEFAULT_NAME, DEFAULT_NAME)


def document_count(node: NodeState, definition: Mapping[str, object]) -> int:
    """Return the number of documents that an index would contain: those of the collections that it maps."""
    bucket = node.cluster.buckets.get(str(definition.get("sourceName", "")))
    if bucket is None:
        return 0
    found = (bucket.collections.scopes.get(scope, {}).get(name) for scope, name in _collections_of(definition))
    return node.documents.count(bucket.name, {collection for collection in found if collection is not None})


def of_index(node: NodeState, name: str) -> Mapping[str, object]:
    """Return the statistics of one index."""
    indexes = node.cluster.services.search_indexes
    return {
        "doc_count": document_count(node, indexes.definitions[name]),
        "num_mutations_to_index": 0,
        "num_pindexes_actual": 1,
        "num_pindexes_target": 1,
        "total_queries": indexes.searches.get(name, 0),
    }


def of_all(node: NodeState) -> Mapping[str, object]:
    """Return the statistics of all indexes, each with bucket and index in front of its name."""
    return {
        f"{definition.get('sourceName', '')}:{name}:{statistic}": value
        for name, definition in node.cluster.services.search_indexes.definitions.items()
        for statistic, value in of_index(node, name).items()
    }


def of_partitions(node: NodeState, name: str) -> Mapping[str, object]:
    """Return the statistics of the feeds and of the only partition of an index."""
    definition = node.cluster.services.search_indexes.definitions[name]
    partition = f"{name}_{definition['uuid']}"
    count = document_count(node, definition)
    return {"feeds": {partition: {}}, "pindexes": {partition: {"basic": {"DocCount": count}}}}


def _collections_of(definition: Mapping[str, object]) -> set[tuple[str, str]]:
    """Return scope and collection of each mapped collection; without types by collection, the default collection."""
    params = definition.get("params")
    params = params if isinstance(params, Mapping) else {}
    config, mapping = params.get("doc_config"), params.get("mapping")
    mode = config.get("mode") if isinstance(config, Mapping) else None
    types = mapping.get("types") if isinstance(mapping, Mapping) else None
    if not isinstance(mode, str) or not mode.startswith("scope.collection.") or not isinstance(types, Mapping):
        return {_DEFAULT}
    paths = (str(name).split(".") for name in types)
    return {(path[0], path[1]) for path in paths if len(path) > 1}
