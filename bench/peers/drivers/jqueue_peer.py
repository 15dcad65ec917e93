"""jqueue, the nearest relative: a queue that is one JSON object, changed by compare-and-set. Here on a local file.

It is a library without workers, so two consumers in this process start the programs. Its `BrokerQueue` commits many
operations in one write, which its documentation advises for throughput. It keeps no results: a job that was
acknowledged is gone.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from serving import CLOCK, SLOTS, TRUE, serve

WITHIN_S = 300.0


class JQueue:
    def __init__(self, place: Path) -> None:
        from jqueue import BrokerQueue, LocalFileSystemStorage

        self.versions = {"jqueue": version("jqueue")}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._queue = BrokerQueue(LocalFileSystemStorage(place / "queue.json"))
        self._here(self._queue.__aenter__())
        self._said = ""

    def _here(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(WITHIN_S)

    def singles(self, n: int) -> None:
        self._here(self._all(n))

    def array(self, n: int) -> None:
        raise RuntimeError("jqueue has jobs only")

    async def _all(self, n: int) -> None:
        filling = asyncio.gather(*(self._queue.enqueue("true", b"") for _ in range(n)))
        left = [n]
        await asyncio.gather(filling, *(self._consume(left) for _ in range(SLOTS)))

    async def _consume(self, left: list[int]) -> None:
        while left[0] > 0:
            jobs = await self._queue.dequeue("true")
            if not jobs:
                await asyncio.sleep(0.001)
            for job in jobs:
                process = await asyncio.create_subprocess_exec(TRUE)
                if await process.wait() != 0:
                    raise RuntimeError(f"a program ended with {process.returncode}")
                await self._queue.ack(job.id)
                left[0] -= 1

    def clock(self, i: int) -> str:
        return str(self._here(self._one()))

    async def _one(self) -> str:
        """One consumer that looks every ten milliseconds, as a worker of ours on a directory does."""
        consumer = asyncio.create_task(self._consume_clock())
        await asyncio.sleep(0.02)
        await self._queue.enqueue("clock", b"")
        return await consumer

    async def _consume_clock(self) -> str:
        while not (jobs := await self._queue.dequeue("clock")):
            await asyncio.sleep(0.01)
        process = await asyncio.create_subprocess_exec(*CLOCK, stdout=asyncio.subprocess.PIPE)
        out, _ = await process.communicate()
        await self._queue.ack(jobs[0].id)
        return out.decode()

    def daemons(self) -> Mapping[str, Any]:
        return {"pids": [os.getpid()]}

    def stop(self) -> None:
        self._here(self._queue.__aexit__(None, None, None))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5.0)


if __name__ == "__main__":
    serve(JQueue)
