"""A scan at work: as many tasks as vbuckets are scanned at once, for the length of a block."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from zlib import crc32

import trio

from triclinium._driver.driver import Driver
from triclinium._driver.hidden_nursery import in_background
from triclinium._trio_run import TrioRun
from triclinium_core.errors import CouchbaseException
from triclinium_core.kv.operation.requests import Noop
from triclinium_core.kv.operation.results import Done, RangeScanCreated, ScanPage, ScanResult
from triclinium_core.kv.operation.scan.types import SamplingScan
from triclinium_core.kv.operation.scan.vbucket_scan import ScanOptions, VBucketScan, scan_order
from triclinium_core.retry.couchbase.strategy import AnyRetryStrategy


class ScanResults:
    """The documents that a scan finds, in no order: ``async for item in results``.

    Nothing is asked for before the first one is wanted. Then each vbucket under way has one page ready at most, and asks
    for the next one when that was taken. Several tasks may take from it; each document goes to one of them. It belongs to
    its block: afterwards it raises ``trio.ClosedResourceError``.
    """

    def __init__(self, scanner: _Scanner) -> None:
        self._scanner = scanner
        self._run = TrioRun()
        self._page: deque[ScanResult] = deque()
        scan_type = scanner.options.scan_type
        self._wanted: float = scan_type.limit if isinstance(scan_type, SamplingScan) else float("inf")

    def __repr__(self) -> str:
        keyspace = self._scanner.options.keyspace
        return f"<ScanResults of {keyspace.bucket}.{keyspace.scope}.{keyspace.collection}>"

    def __aiter__(self) -> ScanResults:
        return self

    async def __anext__(self) -> ScanResult:
        """Return the next document.

        Raises:
            StopAsyncIteration: there are no more.
            CouchbaseException: a vbucket cannot be scanned; nothing more comes then.
            trio.ClosedResourceError: the block was left, or the cluster is closed.
            RuntimeError: it is called in another trio run.
        """
        self._run.check_caller()
        self._scanner.begun.set()
        if self._page or not self._wanted or self._scanner.is_over:
            await trio.lowlevel.checkpoint()
        self._scanner.check_open()
        # Another task may have taken what was there.
        while self._wanted and not self._page:
            await self._turn_page()
        if not self._wanted:
            raise StopAsyncIteration
        self._wanted -= 1
        if not self._wanted:
            # A sample of each vbucket is larger than the sample of all.
            self._scanner.finish()
        return self._page.popleft()

    async def _turn_page(self) -> None:
        try:
            self._page.extend(await self._scanner.found.receive())
        except (trio.EndOfChannel, trio.ClosedResourceError):
            self._scanner.check_open()
            if self._scanner.failure is not None:
                raise self._scanner.failure from None
            raise StopAsyncIteration from None


class _Scanner:
    """The tasks of one scan, until all is scanned, one fails or the block is left."""

    def __init__(
        self, driver: Driver, options: ScanOptions, concurrency: int, strategy: AnyRetryStrategy | None
    ) -> None:
        self.started: trio.Event = trio.Event()
        self.started.set()
        self.options = options
        self.begun: trio.Event = trio.Event()
        """Set when somebody wants documents."""
        self.failure: Exception | None = None
        self.is_over: bool = False
        """Whether the block was left."""
        self._finding: trio.MemorySendChannel[Sequence[ScanResult]]
        self.found: trio.MemoryReceiveChannel[Sequence[ScanResult]]
        self._finding, self.found = trio.open_memory_channel[Sequence[ScanResult]](0)
        self._driver = driver
        self._concurrency = concurrency
        self._strategy = strategy
        self._seed = crc32(driver.make_nonce().encode())
        self._scope = trio.CancelScope(shield=True)
        self._work = trio.CancelScope()

    async def run(self) -> None:
        """Scan; the block learns of a cancellation, and ends this when it is left."""
        with self._finding, self._scope:
            await self.begun.wait()
            with self._work:
                await self._scan()

    def finish(self) -> None:
        """Give up what is not scanned yet, for there is enough, and have the nodes close what is open."""
        self._work.cancel()

    def close(self) -> None:
        """Do the same, for the block was left."""
        self.is_over = True
        self._scope.cancel()

    def check_open(self) -> None:
        """Raise trio.ClosedResourceError once the block was left."""
        if self.is_over:
            raise trio.ClosedResourceError("the scan's block was left; take its documents inside")

    async def _scan(self) -> None:
        vbuckets = iter(scan_order(self.options, await self._count(), seed=self._seed))
        async with trio.open_nursery() as nursery:
            for _ in range(self._concurrency):
                nursery.start_soon(self._scan_each, vbuckets)

    async def _count(self) -> int:
        """Return how many vbuckets there are: whoever answers has brought the map. Without any, 1 says what is wrong."""
        keyspace = self.options.keyspace
        try:
            await self._driver.perform(Done, lambda: Noop(keyspace), self._strategy)
        except (CouchbaseException, trio.ClosedResourceError) as error:
            self._fail(error)
        return max(self._driver.vbucket_count(keyspace.bucket), 1)

    async def _scan_each(self, vbuckets: Iterator[int]) -> None:
        for vbucket in vbuckets:
            scan = VBucketScan(self.options, vbucket, seed=self._seed)
            try:
                while not scan.is_done:
                    await self._take_page(scan)
            finally:
                cancel = scan.cancel_request()
                if cancel is not None:
                    self._driver.send_off(cancel)

    async def _take_page(self, scan: VBucketScan) -> None:
        if scan.pause:
            await trio.sleep(scan.pause)
        request = scan.next_request()
        try:
            result = await self._driver.perform(object, lambda: request, self._strategy)
        except CouchbaseException as error:
            failure = scan.failed(error)
            if failure is not None:
                self._fail(failure)
                await trio.lowlevel.checkpoint_if_cancelled()
            return
        except trio.ClosedResourceError as error:
            self._fail(error)
            await trio.lowlevel.checkpoint_if_cancelled()
            return
        assert isinstance(result, RangeScanCreated | ScanPage)
        items = scan.succeeded(result)
        if items:
            await self._finding.send(items)

    def _fail(self, error: Exception) -> None:
        """End the scan: the reader is told, when it has taken what was found before."""
        self.failure = self.failure or error
        self._work.cancel()


@asynccontextmanager
async def scanning(
    driver: Driver, options: ScanOptions, concurrency: int, strategy: AnyRetryStrategy | None
) -> AsyncIterator[ScanResults]:
    """Give the block what a scan finds.

    Args:
        concurrency: how many vbuckets are scanned at once.
    """
    driver.check_caller()
    scanner = _Scanner(driver, options, concurrency, strategy)
    with scanner.found:
        async with in_background(scanner, ScanResults(scanner)) as results:
            yield results
