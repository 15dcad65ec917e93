"""What an HTTP answer of an S3 server means for a request, decided by its status alone.

Vendors name the same condition differently, and use one name for different ones, so a code word is shown to people
and never decided by.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime

from stado_like.store.clock import in_words

# Asked again by reads; "unknown" for writes. 408 and 425 say so themselves.
OPEN_STATUSES = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
REDIRECTS = frozenset({301, 302, 307, 308})
REFUSED_STATUSES = frozenset({401, 403})
SKEW_TOLD_S = 300.0  # servers allow 15 minutes; a difference as large as this is worth naming beside any refusal


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer without its body. `headers` have lower-case names; `code` and `message` are the server's own words."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    code: str = ""
    message: str = ""
    region: str = ""

    @property
    def in_words(self) -> str:
        words = ": ".join(word for word in (self.code, self.message) if word and word != str(self.status))
        return f"HTTP {self.status}" + (f" {words}" if words else "")

    def retry_after_s(self, now_s: float | None) -> float:
        """Seconds the server asks to wait; `Retry-After` holds seconds or a date (RFC 9110, section 10.2.3)."""
        text = self.headers.get("retry-after", "").strip()
        if not text:
            return 0.0
        if text.isdigit():
            return float(text)
        try:
            due_s = parsedate_to_datetime(text).timestamp()
        except ValueError:
            return 0.0
        return max(0.0, due_s - now_s) if now_s is not None else 0.0


def reply_of(response: Mapping[str, object]) -> Reply:
    """A `Reply` out of the dictionary that botocore makes of an answer, or of an error's."""
    meta = response.get("ResponseMetadata")
    meta = meta if isinstance(meta, Mapping) else {}
    error = response.get("Error")
    error = error if isinstance(error, Mapping) else {}
    headers = {str(name).lower(): str(value) for name, value in dict(meta.get("HTTPHeaders") or {}).items()}
    region = headers.get("x-amz-bucket-region") or str(error.get("Region") or "")
    return Reply(
        status=int(meta.get("HTTPStatusCode") or 0),
        headers=headers,
        code=str(error.get("Code") or ""),
        message=str(error.get("Message") or ""),
        region=region,
    )


def skew_in_words(date_s: float | None, wall_s: float) -> str:
    """One clear line when this machine's clock is far from the store's, else empty."""
    if date_s is None or abs(date_s - wall_s) < SKEW_TOLD_S:
        return ""
    way = "behind" if date_s > wall_s else "ahead of"
    return f"this machine's clock is {in_words(date_s - wall_s)} {way} the store's"
