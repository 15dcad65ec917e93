"""AWS Systems Manager parameters (decrypted) and Secrets Manager, through boto3's usual chain of credentials.

The only place beside the S3 store that knows boto3. Time-outs are short and nothing is tried twice: the task that waits
asks again in a few seconds anyway, and a stop must not wait for a request. What is told of an error is its code, never
the answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stado_like.secret_sources import Source
from stado_worker.secrets.sources import CouldNotTell, Missing

CONNECT_TIMEOUT_S = 3
READ_TIMEOUT_S = 5
SERVICES = {"ssm": "AWS Parameter Store", "secretsmanager": "AWS Secrets Manager"}
NOT_THERE = frozenset({"ParameterNotFound", "ParameterVersionNotFound", "ResourceNotFoundException"})


def ask(source: Source, environ: Mapping[str, str]) -> bytes:
    """Raises `Missing`, `CouldNotTell`."""
    from botocore.exceptions import BotoCoreError, ClientError

    asked = f"{SERVICES[source.kind]} ({source.name})"
    try:
        client = _client(source, environ)
        return _parameter(client, source.name) if source.kind == "ssm" else _secret(client, source.name)
    except ClientError as answered:
        code = str(answered.response.get("Error", {}).get("Code", "no code"))
        if code in NOT_THERE:
            raise Missing from None
        raise CouldNotTell(f"{asked} answered {code}") from None
    except (BotoCoreError, ValueError, OSError) as trouble:
        raise CouldNotTell(f"{asked} could not be asked: {type(trouble).__name__}: {trouble}") from None


def _client(source: Source, environ: Mapping[str, str]) -> Any:
    import boto3
    from botocore.config import Config

    session = boto3.session.Session()
    region = source.region or environ.get("AWS_REGION") or session.region_name
    if not region:
        raise CouldNotTell(f"no AWS region is known for {source.kind}:{source.name}: add ?region=… or set AWS_REGION")
    config = Config(connect_timeout=CONNECT_TIMEOUT_S, read_timeout=READ_TIMEOUT_S, retries={"total_max_attempts": 1})
    return session.client(source.kind, region_name=region, endpoint_url=source.endpoint_url or None, config=config)


def _parameter(client: Any, name: str) -> bytes:
    value: str = client.get_parameter(Name=name, WithDecryption=True)["Parameter"]["Value"]
    return value.encode()


def _secret(client: Any, name: str) -> bytes:
    answer = client.get_secret_value(SecretId=name)
    if "SecretString" in answer:
        text: str = answer["SecretString"]
        return text.encode()
    content: bytes = answer["SecretBinary"]
    return content
