"""`stado job list` keeps what it was told on this disk: where, for whom, and what it need not load then."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from stado_like.bucket.bucket import Bucket
from stado_like.store.url import open_store
from tests import builders_jobs as build
from tests.builders_jobs import attempt, run
from tests.cli.conftest import Stado

JOBS = 3
EVERYTHING = "store requests: 12 (list 6, get 6)"
ONLY_PAGES = "store requests: 6 (list 6)"


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A store with jobs that have ended."""
    url = f"file://{tmp_path}/store?durable=0"
    bucket = Bucket(open_store(url))
    for number in range(JOBS):
        run(bucket, attempt(build.submit(bucket, f"job-{number}")))
    monkeypatch.setenv("STADO_STORE", url)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return url


def test_second_list_costs_its_pages(stado: Stado, url: str, tmp_path: Path) -> None:
    first, second = stado("job", "list", "--stats"), stado("job", "list", "--stats")
    assert EVERYTHING in first.err and ONLY_PAGES in second.err
    assert stado("job", "list", "--json").out == stado("job", "list", "--json", "--no-cache").out
    assert len(list((tmp_path / "cache" / "stado" / "rows").iterdir())) == 1


def test_list_keeps_nothing_where_it_may_not(
    stado: Stado, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(2):
        assert EVERYTHING in stado("job", "list", "--stats", "--no-cache").err
    monkeypatch.setenv("STADO_CACHE", "off")
    for _ in range(2):
        assert EVERYTHING in stado("job", "list", "--stats").err
    assert not (tmp_path / "cache").exists()


def test_list_of_what_was_kept_loads_nothing_that_reads_or_plans(stado: Stado, url: str) -> None:
    stado("job", "list")
    script = (
        "import sys; from stado_cli.main import main; main(['job', 'list', '--stats']);"
        "print(*(one for one in sys.modules if one.startswith('stado_')))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert ONLY_PAGES in done.stderr
    loaded = done.stdout.splitlines()[-1].split()
    assert "stado_like.reading.listing" in loaded
    heavy = ("stado_like.planning", "stado_like.client", "stado_like.reading.rows", "stado_like.job.spec.reading")
    assert [one for one in loaded if one.startswith(heavy)] == []
