"""What every job of a campaign runs: it leaves a line in the effect log when it starts, while it runs, and before it
exits, so that whatever really ran is known without asking the queue.

    python -I -S effect.py LOG SECONDS FAILING_ATTEMPTS EXIT_CODE

It fails in its first FAILING_ATTEMPTS attempts. Where it has a checkpoint directory it counts on there from what it
finds. It knows nothing of this project and imports little: hundreds of it
run on a small machine. Lines are appended in one write each (O_APPEND) and, where they decide something, synced.
"""

import json
import os
import sys
import time

ALIVE_EVERY_S = 0.25


def resume(folder: str) -> int:
    try:
        with open(f"{folder}/reached", encoding="ascii") as file:
            return int(file.read())
    except FileNotFoundError:
        return 0


def keep(folder: str, reached: int) -> None:
    with open(f"{folder}/new", "w", encoding="ascii") as file:
        file.write(str(reached))
    os.replace(f"{folder}/new", f"{folder}/reached")


def main(log: str, seconds: float, failing: int, code: int) -> int:
    fd = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    attempt_id = os.environ["STADO_ATTEMPT_ID"]

    def say(what: str) -> None:
        line = json.dumps({"attempt": attempt_id, "pid": os.getpid(), "what": what, "at": time.time()})
        os.write(fd, line.encode() + b"\n")
        if what in ("start", "done", "fail"):
            os.fsync(fd)

    say("start")
    saved = os.environ.get("STADO_CHECKPOINT_DIR", "")
    reached = resume(saved) if saved else 0
    if saved:
        say(f"resumed {reached}")
    end_s = time.monotonic() + seconds
    while (left_s := end_s - time.monotonic()) > 0:
        time.sleep(min(left_s, ALIVE_EVERY_S))
        if saved:
            reached += 1
            keep(saved, reached)
            say(f"kept {reached}")
        else:
            say("alive")
    if int(os.environ["STADO_ATTEMPT"]) <= failing:
        say("fail")
        return code
    say("done")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])))
