"""How quickly a command starts: by what it loads, which does not depend on how busy the machine is.

What it stands for: `--help` within 70 ms and a list of 1,000 jobs that are over within 250, on a directory. Of the
first, two thirds are Python's and click's; of the second, two thirds are modules, most of them those of records.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from stado_coordinator.compaction import Compaction
from stado_like.bucket.bucket import Bucket
from stado_like.store.url import open_store
from tests import builders_jobs as build
from tests.builders_jobs import attempt, run

FOR_HELP = 10
FOR_A_LIST = 68
"""Modules of ours. Each costs a millisecond or two; a room that is loaded by accident costs twenty."""
OF_OTHERS = (
    "boto3",
    "botocore",
    "pydantic",
    "rich",
    "yaml",
    "urllib3",
    "filelock",
    "psutil",
    "concurrent.futures",
    "email",
)


def loaded(*words: str) -> list[str]:
    script = (
        "import sys\nfrom stado_cli.main import main\n"
        f"try: main({list(words)!r})\nexcept SystemExit: pass\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    return done.stderr.splitlines()[-1].split()


def heavy(modules: list[str]) -> list[str]:
    return [one for one in modules if one.startswith(OF_OTHERS)]


def ours(modules: list[str]) -> list[str]:
    return [one for one in modules if one.startswith("stado_")]


def test_help_loads_next_to_nothing() -> None:
    modules = loaded("--help")
    assert heavy([*modules]) == [] and "orjson" not in modules
    assert len(ours(modules)) <= FOR_HELP, ours(modules)


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Twenty jobs that are over, in a day file; nothing is kept on this disk yet."""
    url = f"file://{tmp_path}/store?durable=0"
    bucket = Bucket(open_store(url))
    for number in range(20):
        run(bucket, attempt(build.submit(bucket, f"job-{number}")))
    assert Compaction().step(bucket, {}, (), resident=False)["rows"] == 20
    monkeypatch.setenv("STADO_STORE", url)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return url


def test_list_of_what_is_over_loads_nothing_that_reads_jobs_or_plans(url: str) -> None:
    """The first list on this machine, which goes by the day file, and the second, which goes by what was kept."""
    for _ in range(2):
        modules = loaded("job", "list")
        assert "stado_like.reading.listing" in modules
        rooms = (
            "stado_like.planning",
            "stado_like.client",
            "stado_like.reading.rows",
            "stado_like.reading.shapes",
            "stado_like.job.spec.reading",
        )
        assert [one for one in modules if one.startswith(rooms)] == []
        assert heavy(modules) == [], heavy(modules)
        assert len(ours(modules)) <= FOR_A_LIST, (len(ours(modules)), ours(modules))
