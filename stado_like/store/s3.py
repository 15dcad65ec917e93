"""The plain driver: boto3's own client. The only module of the store that knows boto3, imported at the first request.

It is the reference: what the lean driver sends and says is compared with this one, and what the lean driver does not
know is left to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stado_like.store.http_answer import reply_of
from stado_like.store.wire import CONNECT_TIMEOUT_S, READ_TIMEOUT_S, Answer, Answered, Connection, Listed


def _without_waiting(request: Any, **_: Any) -> None:
    """A record is small: to ask first (`Expect: 100-continue`) costs a tenth of each PUT and saves nothing."""
    request.headers.pop("Expect", None)


class PlainConnection(Connection):
    """boto3's client of this process for one endpoint and region."""

    def _build(self) -> Any:
        import boto3
        from botocore.config import Config

        place = self.place
        config = Config(
            connect_timeout=CONNECT_TIMEOUT_S,
            read_timeout=READ_TIMEOUT_S,
            retries={"total_max_attempts": 1, "mode": "standard"},  # guard: one attempt
            max_pool_connections=place.concurrency,
            signature_version="s3v4",
            request_checksum_calculation="when_required",  # servers without trailers store them inside the body
            response_checksum_validation="when_required",
            tcp_keepalive=True,
            s3={"addressing_style": place.addressing},
        )
        session = boto3.session.Session()
        region = place.region or session.region_name or "us-east-1"
        client = session.client("s3", endpoint_url=place.endpoint_url, region_name=region, config=config)
        client.meta.events.register("before-send.s3", _without_waiting)
        return client

    def ask(self, bucket: str, operation: str, arguments: Mapping[str, Any]) -> Answer:
        from botocore.exceptions import ClientError

        try:
            said = getattr(self.client(), operation)(Bucket=bucket, **arguments)
            body = said["Body"].read() if operation == "get_object" else b""
        except ClientError as error:
            raise Answered(reply_of(error.response)) from error
        meta = said["ResponseMetadata"]
        return Answer(
            status=meta["HTTPStatusCode"],
            date=meta["HTTPHeaders"].get("date"),
            etag=str(said.get("ETag", "")),
            last_modified=said["LastModified"].timestamp() if "LastModified" in said else 0.0,
            size_bytes=said.get("ContentLength", 0),
            body=body,
            rows=tuple(
                Listed(row["Key"], str(row.get("ETag", "")), row["Size"], row["LastModified"].timestamp())
                for row in said.get("Contents", ())
            ),
            truncated=bool(said.get("IsTruncated")),
            versioning=str(said.get("Status", "")),
        )
