"""What a check of a bucket says of bundles: nothing, but of what is none."""

from __future__ import annotations

from stado_like.fsck.check import check
from stado_like.job import keys
from tests.builders_jobs import Clock, make_bucket, submit


def test_a_bundle_that_no_job_names_is_no_finding_and_a_stranger_among_them_is() -> None:
    bucket = make_bucket(Clock())
    submit(bucket)
    bucket.store.put(keys.bundle("0f" * 32), b"an archive, not a record")
    assert check(bucket, audit=True).findings == []
    bucket.store.put("bundles/notes.txt", b"x")
    assert [(one.code, one.key) for one in check(bucket, audit=True).findings] == [("foreign-key", "bundles/notes.txt")]
