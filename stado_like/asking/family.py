"""The jobs a new one belongs to: the one whose task submits it, and those it waits for.

A task knows its job from STADO_JOB. A job that it submits to its own store is its child, and goes when the parent
goes; submitted to another store it is a stranger there. A job to wait for is named by words, and a name may be used
again after a delete, so what is stored is the one incarnation that the words mean now.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

from stado_like.bucket.bucket import Bucket
from stado_like.errors import StadoError
from stado_like.job import keys
from stado_like.reading.resolve import Meant, no_such_job, resolve
from stado_like.store.url import open_store


def parent_here(environment: Mapping[str, str], store_url: str) -> str:
    """The job in whose task this runs, when its store is this store; else an empty text."""
    job, store = environment.get("STADO_JOB", ""), environment.get("STADO_STORE", "")
    return job if job and store and _same_place(store, store_url) else ""


def _same_place(said: str, url: str) -> bool:
    """Whether two URLs name one store: how it is reached (`durable`, `poll`, `region`) makes no difference."""
    try:
        opened = open_store(said)
    except StadoError:
        return False  # what names no store names no store of ours
    try:
        return _place(opened.url) == _place(url)
    finally:
        opened.close()


def _place(url: str) -> tuple[str, str, str, str]:
    parts = urlsplit(url)
    endpoint = parse_qs(parts.query).get("endpoint_url", [""])[0]
    return parts.scheme, parts.netloc, parts.path.rstrip("/"), endpoint.rstrip("/")


def resolve_awaited(bucket: Bucket, document: Mapping[str, Any], workspace: str) -> None:
    """Put the incarnation for the words of every `after`, in place. Raises `NotFound`; what has another form is left
    for the validation to name.
    """
    spec = document.get("spec")
    after = spec.get("after") if isinstance(spec, dict) else None
    if not isinstance(after, list):
        return
    metadata = document.get("metadata")
    said = metadata.get("workspace") if isinstance(metadata, dict) else None
    own = said if isinstance(said, str) and said else workspace
    for at, one in enumerate(after):
        if isinstance(one, dict) and isinstance(one.get("job"), str) and one["job"]:
            after[at] = {**one, "job": _incarnation(bucket, one["job"], own)}


def _incarnation(bucket: Bucket, words: str, workspace: str) -> str:
    j = resolve(bucket, words, workspace)
    if not any(bucket.present(keys.job(j))):
        raise no_such_job(bucket, Meant(j.workspace, j.name, j.k))
    return str(j)
