"""Settings: which source wins, where each value came from, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from stado_like.config import SETTINGS, load
from stado_like.errors import Exit, Refused
from tests.cli.conftest import Stado


@pytest.fixture
def file(home: Path) -> Path:
    path = home / ".config" / "stado" / "config.toml"
    path.parent.mkdir(parents=True)
    return path


def test_nothing_said_gives_the_defaults(home: Path) -> None:
    settings = load()
    assert settings.store == "file://~/.local/share/stado"
    assert settings.workspace == "default"
    assert settings.state_dir == str(home / ".local/state/stado")
    assert {origin.kind for origin in settings.origins.values()} == {"default"}


def test_flag_beats_environment_beats_file_beats_default(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_text('workspace = "from-file"\n')
    assert (load().workspace, load().origins["workspace"].kind) == ("from-file", "file")
    monkeypatch.setenv("STADO_WORKSPACE", "from-env")
    assert (load().workspace, load().origins["workspace"].name) == ("from-env", "STADO_WORKSPACE")
    flagged = load({"workspace": "from-flag"})
    assert (flagged.workspace, flagged.origins["workspace"].kind) == ("from-flag", "flag")


def test_older_variable_name_is_understood_behind_our_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASTRAEUS_STOP_GRACE", "45")
    assert load().stop_grace_s == 45
    monkeypatch.setenv("STADO_STOP_GRACE", "50")
    assert load().stop_grace_s == 50


def test_unknown_key_is_refused_naming_the_nearest(file: Path) -> None:
    file.write_text('stor = "memory://x"\n')
    with pytest.raises(Refused) as refused:
        load()
    assert refused.value.code == "CONFIG_INVALID"
    assert refused.value.detail == {"stor": "unknown; did you mean store?"}


def test_all_wrong_values_are_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STADO_STORE", "ftp://x/y")
    monkeypatch.setenv("STADO_WORKSPACE", "Not Allowed")
    monkeypatch.setenv("STADO_STOP_GRACE", "soon")
    monkeypatch.setenv("STADO_RETRY_MAX_ATTEMPTS", "-1")
    with pytest.raises(Refused) as refused:
        load()
    assert list(refused.value.detail) == ["store", "workspace", "stop_grace_s", "retry_max_attempts"]
    assert refused.value.detail["stop_grace_s"] == (
        "should be a number of seconds from 1 to 3600, found 'soon' in environment STADO_STOP_GRACE"
    )


def test_grace_above_its_ceiling_is_refused() -> None:
    with pytest.raises(Refused, match="1 setting is wrong"):
        load(environ={"HOME": "/", "STADO_STOP_GRACE": "90", "STADO_MAX_STOP_GRACE": "60"})


@pytest.mark.parametrize("body", [b"store = ", b"\xff\xfe", b"[store]\nurl = 1\n", b"stats = 7\n"])
def test_file_that_cannot_be_used_is_one_clear_error(file: Path, stado: Stado, body: bytes) -> None:
    file.write_bytes(body)
    said = stado("config", "show", "--json")
    assert said.code == Exit.REFUSED
    assert said.error["code"] == "CONFIG_INVALID"
    assert "config.toml" in str(said.error)


def test_named_file_that_does_not_exist_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("STADO_CONFIG", str(tmp_path / "absent.toml"))
    with pytest.raises(Refused, match="does not exist"):
        load()


def test_empty_variable_is_as_good_as_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STADO_STORE", "")
    assert load().origins["store"].kind == "default"


def test_no_color_is_respected_whatever_its_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "0")
    assert load().no_color is True


def test_config_show_lists_every_setting_with_its_source(stado: Stado, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STADO_WORKSPACE", "vision")
    rows = stado("config", "show", "--json").value
    assert {row["name"] for row in rows} == {"config_file", *(one.name for one in SETTINGS)}
    found = next(row for row in rows if row["name"] == "workspace")
    assert found == {"name": "workspace", "value": "vision", "origin": "environment", "source": "STADO_WORKSPACE"}
    table = stado("config", "show").out
    assert "vision" in table
    assert "STADO_WORKSPACE" in table


SECRETS = """
[secrets]
hf-token = "env:HF_TOKEN"
login = "secretsmanager:prod/login?region=eu-west-1"
[secrets.database]
password = "file:/run/keys/db?trim=1"
user = "ssm:/prod/db/user"
region = "eu-west-1"
endpoint_url = "http://127.0.0.1:5000"
"""


def test_sources_of_secrets_are_read_and_shown_and_their_values_are_not(
    file: Path, stado: Stado, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text(SECRETS)
    monkeypatch.setenv("HF_TOKEN", "hf_the_value")
    settings = load()
    assert settings.secrets["hf-token"].whole is not None
    database = settings.secrets["database"]
    assert (database.keys["password"].trim, database.keys["user"].region) == (True, "eu-west-1")
    ran = stado("config", "show")
    assert "secrets.hf-token" in ran.out
    assert "env:HF_TOKEN" in ran.out
    assert "hf_the_value" not in ran.out


def test_value_pasted_where_its_source_belongs_is_refused_and_not_repeated(file: Path) -> None:
    file.write_text(
        '[secrets]\na = "hf_the_value"\nb = 7\nc = "env:not a name"\nd = "file:relative"\n"e/f" = "env:X"\n'
        'g = "file:/x?what=1"\n[secrets.h]\nkey = "hf_the_value"\n[secrets.i]\ntrim = "hf_the_value"\n[secrets.j]\n'
    )
    with pytest.raises(Refused) as refused:
        load()
    assert list(refused.value.detail) == [
        *("secrets.a", "secrets.b", "secrets.c", "secrets.d", "secrets.e/f", "secrets.g"),
        *("secrets.h.key", "secrets.i.trim", "secrets.j"),
    ]
    assert "the_value" not in str(refused.value.as_json())
