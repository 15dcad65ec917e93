"""Records of every kind: what version 1 wrote must load for ever, and a history stays short.

The files under tests/data/records/v1 were written once and are never written again: a change of a record that cannot
read them is a new major version.
"""

from __future__ import annotations

import dataclasses
import inspect
from pathlib import Path
from typing import Any

import orjson
import pytest

from stado_like.job import broadcast, cluster, codec, held_room, records, split, waits, workspace
from stado_like.job.records import HISTORY_FIRST, HISTORY_LAST, Change, History

VERSION_1 = Path(__file__).resolve().parent.parent / "data" / "records" / "v1"
PARTS = {
    records.Budgets, records.Change, records.History, records.LogTail, records.LastFailure, records.Held, records.Room,
    records.Armed, records.BellEvent, records.CollectedFile, records.LeftOut, workspace.Quota, workspace.Grants,
    workspace.Edit, held_room.HeldRoom, split.GroupSplit,
}  # fmt: skip


def _name(kind: type) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in kind.__name__).lstrip("_")


WHOLE = {
    _name(kind): kind
    for room in (records, broadcast, workspace, cluster, waits, held_room, split)
    for _, kind in inspect.getmembers(room, dataclasses.is_dataclass)
    if inspect.isclass(kind) and kind.__module__ == room.__name__ and kind not in PARTS
}


KEPT = sorted(path.stem for path in VERSION_1.glob("*.json"))
"""`entry` as version 1 first wrote it; `entry.picky` with fields that came later."""


def _kind(kept: str) -> str:
    return kept.partition(".")[0]


def test_every_kind_is_kept_as_data() -> None:
    assert sorted(set(map(_kind, KEPT))) == sorted(WHOLE)


def _kept_in(written: Any, kept: Any) -> bool:
    """Whether all that was kept is there; fields that came later may be there too, in a part as in the whole."""
    if isinstance(kept, list):
        return len(written) == len(kept) and all(map(_kept_in, written, kept))
    if not isinstance(kept, dict):
        return bool(written == kept)
    return all(field in written and _kept_in(written[field], value) for field, value in kept.items())


@pytest.mark.parametrize("name", KEPT)
def test_version_1_loads_and_is_written_back_unchanged(name: str) -> None:
    body = (VERSION_1 / f"{name}.json").read_bytes()
    record = codec.decode(WHOLE[_kind(name)], body, f"{name}.json")
    written = orjson.loads(codec.encode(record))
    kept = orjson.loads(body)
    assert _kept_in(written, kept)
    assert codec.decode(WHOLE[_kind(name)], codec.encode(record), name) == record


@pytest.mark.parametrize("name", sorted(WHOLE))
def test_fields_of_a_newer_minor_version_survive(name: str) -> None:
    """A record that one actor reads and writes back loses nothing that another wrote."""
    plain = orjson.loads((VERSION_1 / f"{name}.json").read_bytes())
    plain["invented_later"] = {"deep": [1, None, "é"]}
    record: Any = codec.decode(WHOLE[name], orjson.dumps(plain), name)
    assert orjson.loads(codec.encode(record))["invented_later"] == {"deep": [1, None, "é"]}


@pytest.mark.parametrize(
    ("name", "path"), [("doorbell", ("events", 0)), ("observed", ("armed", "default.train.1.00003.000002"))]
)
def test_what_is_rewritten_keeps_newer_fields_of_its_parts(name: str, path: tuple[Any, Any]) -> None:
    """An old client that rings the bell, or an old tick, must not strip what a newer one wrote into an event."""
    plain = orjson.loads((VERSION_1 / f"{name}.json").read_bytes())
    plain[path[0]][path[1]]["invented_later"] = 7
    record = codec.decode(WHOLE[name], orjson.dumps(plain), name)
    assert orjson.loads(codec.encode(record))[path[0]][path[1]]["invented_later"] == 7


def test_history_keeps_the_first_and_the_last_and_counts_the_rest() -> None:
    history = History()
    for index in range(200):
        history = history.add(Change(state="Running", reason=str(index), at=float(index)))
    kept = [int(change.reason) for change in history.changes]
    assert kept == [*range(HISTORY_FIRST), *range(200 - HISTORY_LAST, 200)]
    assert history.dropped + len(kept) == 200
