"""`stado job schema`: what an editor reads is what `submit` accepts."""

from __future__ import annotations

import json
import subprocess
import sys


def test_schema_is_json_and_knows_the_fields_that_submit_takes() -> None:
    command = [sys.executable, "-P", "-m", "stado_cli", "job", "schema"]
    shown = json.loads(subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout)
    text = json.dumps(shown)
    assert shown["type"] == "object"
    assert {"metadata", "spec"} <= set(shown["properties"])
    for field in ("time_limit_seconds", "max_parallel", "heartbeat_ttl_seconds", "stop_grace_seconds"):
        assert f'"{field}"' in text
