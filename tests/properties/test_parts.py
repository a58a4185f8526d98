"""Random documents and specs: the client with its fake node, compared with the model in ``parts``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import trio
from hypothesis import given, strategies as st
from trio.testing import MockClock

from tests.properties.parts import CREATING, Path, PathStep, look_up, mutated
from triclinium import Collection, errors
from triclinium.testing import open_fake_cluster
from triclinium_core.testing import FakeNodeOptions

OPTIONS = FakeNodeOptions(vbuckets=128)

keys = st.sampled_from(("a", "b", "c", "two words", "dot.ted", "a[0]", "tick`", 'quote"d', "Ἀ"))
scalars = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from((2**63 - 1, -(2**63), 1.5, "", "x"))
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3), max_leaves=8
)
documents = st.dictionaries(keys, values, max_size=4) | st.lists(values, max_size=3)
attributes = st.dictionaries(st.sampled_from(("m", "n")), values, max_size=2)
components = keys | st.integers(-1, 2)


def paths_in(value: Any) -> list[Path]:
    """Return the paths to all values inside a value, including the empty path to the value."""
    found: list[Path] = [()]
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for component, inner in entries:
        found += [(component, *path) for path in paths_in(inner)]
    return found


@st.composite
def paths(draw: st.DrawFn, document: Any) -> Path:
    """Return a path that exists in the document, a longer path, or an arbitrary path."""
    path = draw(st.sampled_from(paths_in(document)) | st.just(()))
    return (*path, *draw(st.lists(components, max_size=2)))


@st.composite
def steps(draw: st.DrawFn, names: Sequence[str], body: Any, beside: Any) -> PathStep:
    """Return a spec on the body of a document or on its attributes."""
    do = draw(st.sampled_from(names))
    xattr = draw(st.integers(0, 4)) == 0
    path = draw(paths(beside if xattr else body))
    if xattr:
        # The first component is the key of an attribute, because a path cannot begin inside an attribute.
        path = (draw(st.sampled_from(("m", "n"))), *path[1:])
    elif not path and do not in ("get", "count", "array_append", "array_prepend", "array_add_unique"):
        path = (draw(components),)
    drawn: tuple[Any, ...] = (draw(values),)
    if do in ("array_append", "array_prepend", "array_insert"):
        drawn = tuple(draw(st.lists(values, min_size=1, max_size=2)))
    elif do == "array_add_unique":
        drawn = (draw(scalars),)
    elif do in ("increment", "decrement"):
        drawn = (draw(st.sampled_from((1, 2, 2**63 - 1))),)
    elif do == "remove":
        drawn = ()
    return PathStep(do, path, drawn, xattr, do in CREATING and draw(st.booleans()))


@st.composite
def lookups(draw: st.DrawFn) -> tuple[Any, Any, list[PathStep]]:
    """Return the body and the attributes of a document, and lookup specs for them."""
    body, beside = draw(documents), draw(attributes)
    return body, beside, draw(st.lists(steps(("get", "exists", "count"), body, beside), min_size=1, max_size=8))


@st.composite
def mutations(draw: st.DrawFn) -> tuple[Any, Any, list[PathStep]]:
    """Return the body and the attributes of a document, and mutation specs for them."""
    body, beside = draw(documents), draw(attributes)
    names = (*CREATING, "replace", "remove", "array_insert")
    return body, beside, draw(st.lists(steps(names, body, beside), min_size=1, max_size=4))


async def written(people: Collection, body: Any, beside: Any) -> None:
    """Store a document with this body and these attributes."""
    await people.upsert("ada", body)
    if beside:
        whole = [PathStep("upsert", (key,), (value,), xattr=True).mutation() for key, value in beside.items()]
        await people.mutate_in("ada", whole)


async def read(people: Collection) -> tuple[Any, Any]:
    """Return the body and the attributes of the document."""
    whole = [PathStep("get", (), ()), *(PathStep("get", (key,), (), xattr=True) for key in ("m", "n"))]
    found = await people.lookup_in("ada", [step.lookup() for step in whole])
    beside = {key: found.content_as(object, index) for index, key in ((1, "m"), (2, "n")) if found.exists(index)}
    return found.content_as(object, 0), beside


def exact(value: object) -> str:
    """Return the value as text that distinguishes 1, 1.0 and true, and that does not depend on the order of keys."""
    return json.dumps(value, sort_keys=True)


async def check_lookup(body: Any, beside: Any, wanted: Sequence[PathStep]) -> None:
    """Check that the client returns the model's result for each lookup spec."""
    async with open_fake_cluster(options=OPTIONS) as fake, fake.open_client() as cluster:
        people = cluster.bucket("default").default_collection()
        await written(people, body, beside)
        result = await people.lookup_in("ada", [step.lookup() for step in wanted])
    for index, step in enumerate(wanted):
        try:
            expected: object = look_up(step, beside if step.xattr else body)
        except errors.CouchbaseException as error:
            expected = type(error)
        try:
            actual: object = result.content_as(object, index)
        except errors.CouchbaseException as error:
            actual = type(error)

        assert repr(expected) == repr(actual), step


async def check_mutation(body: Any, beside: Any, wanted: Sequence[PathStep]) -> None:
    """Check that the result of a mutation, and then the stored document, equal the model's."""
    expected = mutated(wanted, body, beside)
    failed, returned = None, {}
    async with open_fake_cluster(options=OPTIONS) as fake, fake.open_client() as cluster:
        people = cluster.bucket("default").default_collection()
        await written(people, body, beside)
        try:
            result = await people.mutate_in("ada", [step.mutation() for step in wanted])
            returned = {index: result.content_as(int, index) for index in expected.returned}
        except errors.CouchbaseException as error:
            failed = error.context.path_index, type(error)
        after = await read(people)

    assert (expected.failed, expected.returned) == (failed, returned)
    assert exact((expected.body, expected.attributes)) == exact(after)


@given(lookups())
def test_lookups_agree_with_the_model(asked: tuple[Any, Any, list[PathStep]]) -> None:
    """Each lookup spec returns the model's value or fails with the model's error, whatever the other specs do."""
    trio.run(check_lookup, *asked, clock=MockClock(autojump_threshold=0))


@given(mutations())
def test_mutations_agree_with_the_model(asked: tuple[Any, Any, list[PathStep]]) -> None:
    """A mutation applies all specs, or reports the first failure and applies no spec."""
    trio.run(check_mutation, *asked, clock=MockClock(autojump_threshold=0))
