"""`python -P -m stado_coordinator`: the resident coordinator of the store that the settings name.

`stado scheduler run` is the same thing with the command line around it. SIGTERM and Ctrl-C end it after the tick under
way.
"""

from __future__ import annotations

import signal
import sys
from types import FrameType

from stado_coordinator.coordinator import Coordinator
from stado_like.bucket.bucket import Bucket
from stado_like.config import load, ticks_kept_in
from stado_like.errors import StadoError
from stado_like.store.url import open_store


def _log(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def main() -> int:
    ended: list[int] = []

    def end(number: int, frame: FrameType | None) -> None:
        ended.append(number)

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    flags = {"store": sys.argv[1]} if len(sys.argv) > 1 else {}
    try:
        settings = load(flags)
        store = open_store(settings.store)
    except StadoError as error:
        _log(f"Error: {error.message}")
        if error.next_step:
            _log(error.next_step)
        return int(error.exit_code)
    try:
        Coordinator(Bucket(store), log=_log, cache=ticks_kept_in(settings)).run(lambda: bool(ended))
    finally:
        store.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
