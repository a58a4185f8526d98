"""Documents as pydantic models and as attrs classes."""

from __future__ import annotations

from typing import Any, TypeVar

import attrs
import pydantic
import pydantic_core
import trio
import trio.testing

from triclinium import Collection, EncodedValue, JsonTranscoder, RawJsonTranscoder
from triclinium.errors import DecodingFailureException, EncodingFailureException
from triclinium.testing import open_fake_cluster

T = TypeVar("T")
JSON = JsonTranscoder()


class PydanticTranscoder:
    """JSON documents of anything that pydantic supports, such as a model or a list of models."""

    def __init__(self) -> None:
        # Building an adapter takes much longer than using it.
        self._adapters: dict[type, pydantic.TypeAdapter[Any]] = {}

    def encode(self, value: object, /) -> EncodedValue:
        """Return the value as JSON."""
        try:
            # Write null for NaN and infinities: JSON has neither, but pydantic_core writes them by default.
            data = pydantic_core.to_json(value, inf_nan_mode="null")
        except pydantic_core.PydanticSerializationError as error:
            raise EncodingFailureException(f"pydantic cannot store {type(value).__name__}: {error}") from error
        return RawJsonTranscoder().encode(data)

    def decode(self, data: bytes, flags: int, as_type: type[T], /) -> T:
        """Return the document, validated by pydantic; with ``object``, as it is."""
        if as_type is object:
            return JSON.decode(data, flags, as_type)
        try:
            if as_type not in self._adapters:
                self._adapters[as_type] = pydantic.TypeAdapter(as_type)
            found: T = self._adapters[as_type].validate_json(data)
        except pydantic.ValidationError as error:
            # The text of the error itself quotes the input, and has a link for each problem. A traceback would show it.
            problems = [": ".join([*map(str, each["loc"]), each["msg"]]) for each in error.errors()]
            raise DecodingFailureException(f"the document is not {as_type!r}: {'; '.join(problems)}") from None
        except pydantic.PydanticSchemaGenerationError as error:
            raise DecodingFailureException(f"pydantic does not support {as_type!r}: {error.message}") from error
        return found


class AttrsTranscoder:
    """JSON documents of attrs classes that have converters: it calls the class, so that the converters run."""

    def encode(self, value: object, /) -> EncodedValue:
        """Return the value as JSON, which needs no help for attrs classes."""
        return JSON.encode(value)

    def decode(self, data: bytes, flags: int, as_type: type[T], /) -> T:
        """Return the document as an object of the class."""
        is_built_here = attrs.has(as_type)
        if not is_built_here:
            return JSON.decode(data, flags, as_type)
        fields = JSON.decode(data, flags, dict[str, object])
        try:
            return as_type(**fields)
        except (TypeError, ValueError) as error:
            raise DecodingFailureException(f"the document is not {as_type.__name__}: {error}") from error


class Person(pydantic.BaseModel):
    """A pydantic model."""

    name: str
    born: pydantic.PositiveInt


@attrs.frozen
class Ship:
    """An attrs class with a validator."""

    name: str
    masts: int = attrs.field(default=1, validator=attrs.validators.ge(1))


def titled(name: str) -> str:
    """Return a name whose words begin with capitals."""
    return name.title()


@attrs.frozen
class Port:
    """An attrs class with a converter."""

    name: str = attrs.field(converter=titled)


async def pydantic_models(people: Collection) -> None:
    """Store a model, and read it with and without validation."""
    models = PydanticTranscoder()
    await people.upsert("ada", Person(name="Ada", born=1815), transcoder=models)
    found = await people.get("ada", transcoder=models)
    print(repr(found.content_as(Person)), found.content)

    await people.upsert("crew", [Person(name="Ada", born=1815)], transcoder=models)
    print((await people.get("crew", transcoder=models)).content_as(list[Person]))

    await people.upsert("bob", {"name": "Bob", "born": -1})
    try:
        (await people.get("bob", transcoder=models)).content_as(Person)
    except DecodingFailureException as error:
        print(error)


async def attrs_classes(things: Collection) -> None:
    """Store attrs classes: no transcoder is needed, except for converters."""
    await things.upsert("argo", Ship("Argo", masts=1))
    print((await things.get("argo")).content_as(Ship))

    await things.upsert("raft", {"name": "raft", "masts": 0})
    try:
        (await things.get("raft")).content_as(Ship)
    except DecodingFailureException as error:
        print(error)

    await things.upsert("ostia", {"name": "ostia"})
    print((await things.get("ostia")).content_as(Port), "without the converter")
    print((await things.get("ostia", transcoder=AttrsTranscoder())).content_as(Port))


async def main() -> None:
    """Show both libraries."""
    async with open_fake_cluster() as fake, fake.open_client() as cluster:
        collection = cluster.bucket("default").default_collection()
        await pydantic_models(collection)
        await attrs_classes(collection)


if __name__ == "__main__":
    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
