"""A bucket of any S3-compatible server as a store: what each answer means for an object.

Writes go out exactly once and answer `Unknown` when the answer is lost or open (409 too: it says that something else
happened to the key at the same time, not that the key exists); `conditional.create_once` reads back. Reads are tried
again here, with full jitter, inside a bound, and a page of a listing is such a read: nothing is listed twice.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Any, BinaryIO, NoReturn
from urllib.parse import urlsplit

from stado_like.ambient import REAL, Ambient
from stado_like.errors import (
    BucketMissing,
    CredentialsRefused,
    StoreError,
    StoreUnavailable,
    StoreUntrusted,
    UsageError,
)
from stado_like.store.http_answer import OPEN_STATUSES, REFUSED_STATUSES, Reply, skew_in_words
from stado_like.store.key_shape import check_written
from stado_like.store.protocol import Applied, Object, Page, Rejected, Row, Stat, Unchanged, Unknown, Write
from stado_like.store.wire import Answer, Answered, Listed, Place, Silent, Wire

READ_BUDGET_S = 8.0
LAST_START_S = 5.0  # no new attempt begins later than this after a silence: it could itself last for seconds
BACKOFF_FIRST_S = 0.1
BACKOFF_MOST_S = 2.0
HEADS_AT_ONCE = 8
DEFAULT_DRIVER = "lean"

_pool: ThreadPoolExecutor | None = None
_pool_lock = Lock()


def _heads_pool() -> ThreadPoolExecutor:
    global _pool
    with _pool_lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(HEADS_AT_ONCE, thread_name_prefix="store-head")
        return _pool


def _after_fork_in_child() -> None:
    global _pool, _pool_lock
    _pool, _pool_lock = None, Lock()  # threads do not survive a fork


os.register_at_fork(after_in_child=_after_fork_in_child)


def addressing_for(bucket: str, endpoint_url: str | None, addressing: str) -> str:
    """`auto` made definite where the bucket's name cannot be part of a host name."""
    if addressing != "auto":
        return addressing
    if "." in bucket:  # the certificate of *.host does not cover my.bucket.host
        return "path"
    if endpoint_url is None:
        return "auto"
    try:
        parts = urlsplit(endpoint_url)
        host, port = parts.hostname or "", parts.port
        if port is not None or host == "localhost" or host.endswith(".localhost"):
            return "path"
        ipaddress.ip_address(host)
    except ValueError:
        return "auto"  # a name; a malformed endpoint is refused when the client is built
    return "path"


class S3Store:
    """One bucket under one prefix. Reads raise as `ObjectStore` says; messages name endpoint and bucket."""

    def __init__(
        self,
        bucket: str,
        prefix: str = "",
        *,
        endpoint_url: str | None = None,
        region: str | None = None,
        addressing: str = "auto",
        etag_style: str = "quoted",
        concurrency: int = 32,
        near: bool = False,
        driver: str | None = None,
        ambient: Ambient = REAL,
        url: str | None = None,
    ) -> None:
        """`near`: on this machine, where a thread costs more than an answer: nothing is asked side by side."""
        self._under = f"{prefix}/" if prefix else ""
        style = addressing_for(bucket, endpoint_url, addressing)
        place = Place(driver or DEFAULT_DRIVER, endpoint_url, region, style, concurrency)
        self._wire = Wire(bucket, place, ambient, insists=driver is not None)
        self._where = self._wire.where
        self._ambient = ambient
        self._near = near
        self._bucket_seen = False
        self._url = url or f"s3://{bucket}/{prefix}".rstrip("/")
        self.etag_style = etag_style
        self.replaces = True

    @property
    def url(self) -> str:
        return self._url

    @property
    def can_replace(self) -> bool:
        return self.replaces

    @property
    def sends_date(self) -> bool:
        """Whether any answer so far carried the store's time."""
        return self._wire.clock.now() is not None

    def prepare(self) -> None:
        """Build the client without sending anything, so that children forked later need not."""
        self._wire.prepare()

    def close(self) -> None:
        """The client belongs to the process."""

    # --- writing: sent once ----------------------------------------------------------------------------------------

    def create(self, key: str, body: bytes) -> Write:
        return self._write(key, body, IfNoneMatch="*")  # guard: create-if-absent

    def put(self, key: str, body: bytes) -> Write:
        return self._write(key, body)

    def put_file(self, key: str, file: BinaryIO) -> Write:
        return self._write(key, file)

    def replace(self, key: str, body: bytes, etag: str) -> Write:
        said = etag.strip('"') if self.etag_style == "unquoted" else etag
        return self._write(key, body, IfMatch=said)  # guard: replace-if-same

    def _write(self, key: str, body: bytes | BinaryIO, **condition: str) -> Write:
        check_written(key)
        try:
            answer = self._wire.send("put_object", Key=self._under + key, Body=body, **condition)
        except Silent as silent:
            return Unknown(f"{silent.why} ({self._where})")
        except Answered as answered:
            reply = answered.reply
            if condition and reply.status in (412, 304):
                return Rejected(self._now())
            if reply.status == 404:
                if "IfMatch" in condition:  # the key is absent, unless it is the bucket that is
                    self._absent()
                    return Rejected(self._now())
                self._bucket_missing()
            if condition and reply.status == 501:
                raise StoreUntrusted(
                    f"{self._where} does not offer conditional writes: {reply.in_words}",
                    "Use a store with create-if-absent (PUT with If-None-Match); see `stado storage check`.",
                ) from None
            return self._open(reply, f"writing {key}")
        self._bucket_seen = True
        return Applied(answer.etag, self._now())

    def delete(self, key: str) -> Applied | Unknown:
        try:
            self._wire.send("delete_object", Key=self._key(key))
        except Silent as silent:
            return Unknown(f"{silent.why} ({self._where})")
        except Answered as answered:
            if answered.reply.status != 404:
                return self._open(answered.reply, f"deleting {key}")
            self._absent()
        return Applied("", self._now())

    def _open(self, reply: Reply, what: str) -> Unknown:
        if reply.status in REFUSED_STATUSES:
            self._refuse(reply, what)
        return Unknown(f"{reply.in_words} ({self._where})", reply.retry_after_s(self._wire.clock.now()))

    # --- reading: tried again --------------------------------------------------------------------------------------

    def get(self, key: str) -> Object | None:
        found = self._get(key)
        assert not isinstance(found, Unchanged)
        return found

    def get_if_changed(self, key: str, etag: str) -> Object | Unchanged | None:
        return self._get(key, IfNoneMatch=etag)

    def _get(self, key: str, **condition: str) -> Object | Unchanged | None:
        try:
            answer = self._read(f"reading {key}", "get_object", Key=self._key(key), **condition)
        except Answered as answered:
            if condition and answered.reply.status == 304:
                self._bucket_seen = True
                return Unchanged(self._now())
            self._absent()
            return None
        return Object(answer.body, answer.etag, answer.last_modified, self._now())

    def get_range(self, key: str, start: int, size_bytes: int) -> bytes | None:
        wanted = f"bytes={start}-{start + size_bytes - 1}"
        try:
            answer = self._read(f"reading {key}", "get_object", Key=self._key(key), Range=wanted)
        except Answered as answered:
            if answered.reply.status == 416:
                return b""
            self._absent()
            return None
        whole = answer.status == 200  # a server may ignore a range
        return answer.body[start : start + size_bytes] if whole else answer.body

    def head(self, key: str) -> Stat | None:
        try:
            answer = self._read(f"looking for {key}", "head_object", Key=self._key(key))
        except Answered:
            self._absent()
            return None
        return Stat(answer.etag, answer.size_bytes, answer.last_modified, self._now())

    def heads(self, keys: Sequence[str]) -> list[Stat | None]:
        if len(keys) < 2 or self._near:
            return [self.head(key) for key in keys]
        return list(_heads_pool().map(self.head, keys))

    def list(self, prefix: str, *, start_after: str = "", limit: int = 1000) -> Page:
        after = {"StartAfter": self._under + start_after} if start_after else {}
        limit = max(1, min(limit, 1000))
        while True:  # once, unless a page holds nothing but folder markers
            try:
                answer = self._read(
                    f"listing {prefix}", "list_objects_v2", Prefix=self._under + prefix, MaxKeys=limit, **after
                )
            except Answered:
                self._bucket_missing()
            found = answer.rows
            more = answer.truncated and bool(found)
            rows = self._rows(found, prefix)
            if rows or not more:
                return Page(rows, more, self._now())
            after = {"StartAfter": found[-1].key}

    def _rows(self, found: Sequence[Listed], prefix: str) -> tuple[Row, ...]:
        cut, wanted = len(self._under), self._under + prefix
        return tuple(
            Row(key[cut:], etag, size_bytes, last_modified)
            for key, etag, size_bytes, last_modified in found
            if key.startswith(wanted) and not key.endswith("/")
        )

    def now(self) -> float:
        if not self.sends_date:
            try:
                self._read("asking the time", "head_bucket")
            except Answered:
                self._bucket_missing()
        return self._now()

    def versioning(self) -> str | None:
        """`Enabled`, `Suspended`, `Off`, or None when the server would not say."""
        try:
            answer = self._read("asking for versioning", "get_bucket_versioning")
        except (Answered, StoreError):
            return None
        return answer.versioning or "Off"

    def _read(self, what: str, operation: str, **arguments: Any) -> Answer:
        """A request that changes nothing, until it is answered. Raises `Answered` only for 304, 404 and 416."""
        started_s = self._ambient.boot_s()
        wait_s = BACKOFF_FIRST_S
        while True:
            asked_s, last_start_s = 0.0, LAST_START_S
            try:
                answer = self._wire.send(operation, **arguments)
                self._bucket_seen = True
                return answer
            except Silent as silent:
                why = silent.why
            except Answered as answered:
                reply = answered.reply
                if reply.status in (304, 404, 416):
                    raise
                if reply.status in REFUSED_STATUSES:
                    self._refuse(reply, what)
                why = reply.in_words
                asked_s, last_start_s = reply.retry_after_s(self._wire.clock.now()), READ_BUDGET_S
                if reply.status not in OPEN_STATUSES:
                    last_start_s = 0.0
            pause_s = max(asked_s, self._ambient.uniform(0.0, wait_s))
            spent_s = self._ambient.boot_s() - started_s
            if spent_s + pause_s >= last_start_s:
                self._unavailable(what, why, spent_s, asked_s)
            self._ambient.sleep(pause_s)
            wait_s = min(2 * wait_s, BACKOFF_MOST_S)

    def _now(self) -> float:
        now = self._wire.clock.now()
        return self._ambient.wall_s() if now is None else now  # a store without Date is refused by the probe

    def _key(self, key: str) -> str:
        if not key:
            raise UsageError("an object's key cannot be empty", "Name a key, as `stado storage ls` prints it.")
        return self._under + key

    # --- refusals --------------------------------------------------------------------------------------------------

    def _absent(self) -> None:
        """404 says that the key is absent, or the bucket: asked once, unless the bucket has answered before."""
        if not self._bucket_seen:
            try:
                self._read("looking for the bucket", "head_bucket")
            except Answered:
                self._bucket_missing()
            except CredentialsRefused:
                pass  # it exists: a missing one answers 404
            self._bucket_seen = True

    def _bucket_missing(self) -> NoReturn:
        raise BucketMissing(
            f"there is no {self._where}", "Create the bucket, or correct the bucket or endpoint_url of the store's URL."
        ) from None

    def _refuse(self, reply: Reply, what: str) -> NoReturn:
        skew = skew_in_words(self._wire.dates.parse(reply.headers.get("date")), self._ambient.wall_s())
        if skew:
            raise CredentialsRefused(
                f"{skew}, so {self._where} refuses its signatures ({reply.in_words})",
                "Set this machine's clock (start chrony or systemd-timesyncd), then repeat the command.",
            ) from None
        raise CredentialsRefused(
            f"{self._where} refused {what}: {reply.in_words}",
            "Check the credentials, and that they allow s3:ListBucket on the bucket and s3:GetObject, s3:PutObject and "
            "s3:DeleteObject on its objects (without s3:ListBucket Amazon answers 403 for an absent key).",
        ) from None

    def _unavailable(self, what: str, why: str, spent_s: float, asked_s: float) -> NoReturn:
        asks = f"; it asks to wait {asked_s:g} s" if asked_s else ""
        raise StoreUnavailable(
            f"no definite answer to {what} within {spent_s:.1f} s from {self._where}; last: {why}{asks}",
            "Check that the endpoint of the store's URL answers from this machine; the command can be repeated.",
        ) from None
