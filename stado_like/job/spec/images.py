"""The name of a container image, as registries have them.

A name that no registry could hold would only fail on the machine, after the job waited for it; so the grammar of
references is checked here: `[host[:port]/]path[:tag][@digest]`, the path in lower case.
"""

from __future__ import annotations

from typing import Annotated

from stado_like.job.spec.fields import Text

_PART = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_HOST = r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*(?::[0-9]{1,5})?"
_TAG = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"
_DIGEST = r"[a-z0-9]+:[0-9a-f]{32,128}"

Image = Annotated[
    str,
    Text(
        max_bytes=1024,
        pattern=rf"(?:{_HOST}/)?{_PART}(?:/{_PART})*(?::{_TAG})?(?:@{_DIGEST})?",
        rule="an image's name, as registry.example.com/team/train:2026-09, in lower case but for host and tag",
    ),
]
