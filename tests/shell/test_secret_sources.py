"""Credentials from their sources: exact bytes, keys, waiting for what is late, and nothing of a value in any word."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from stado_worker.secrets.fetch import Ref, Secrets, fetch, registry_login
from stado_worker.secrets.table import Table
from stado_worker.shim.preparing import CouldNotPrepare, GivenUp
from tests import servers

VALUE = "hf_the_value"
LATE = "waiting for external secret hf-token (key token) to be synced to this node"
REF = Ref("hf-token", {"token": "HF_TOKEN"})


class Machine:
    """A settings file, an environment, and what a waiting task says. `on_pause` is what happens meanwhile."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "config.toml"
        self.environ: dict[str, str] = {}
        self.table = Table(self.file, self.environ)
        self.said: list[str] = []
        self.pauses: list[float] = []
        self.on_pause: Callable[[], object] = self.give_up
        self.wanted = True

    def settings(self, text: str) -> Machine:
        fresh = self.file.with_suffix(".fresh")
        fresh.write_text(text)
        fresh.replace(self.file)
        return self

    def give_up(self) -> None:
        self.wanted = False

    def pause(self, seconds: float) -> bool:
        self.pauses.append(seconds)
        self.on_pause()
        return not self.wanted

    def fetch(self, *refs: Ref) -> Secrets:
        return fetch(refs, self.table, self.said.append, self.pause)

    def waits_saying(self, *refs: Ref) -> str:
        with pytest.raises(GivenUp):
            self.fetch(*refs)
        assert len(self.said) == 1
        return self.said.pop()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


# ---- env, file


def test_environment_and_file_give_their_exact_bytes(machine: Machine, tmp_path: Path) -> None:
    raw = bytes(range(1, 256))
    (tmp_path / "key").write_bytes(raw)
    machine.environ["HF_TOKEN"] = f" {VALUE}\t"
    machine.settings(f'[secrets]\nhf-token = "env:HF_TOKEN"\nraw = "file:{tmp_path}/key"\n')
    got = machine.fetch(REF, Ref("raw", {"value": "RAW"}))
    assert got.env["HF_TOKEN"] == f" {VALUE}\t"
    assert os.fsencode(got.env["RAW"]) == raw
    assert (got.files, got.notes, machine.said) == ({}, (), [])
    assert VALUE not in repr(got)


def test_token_that_ends_in_a_newline_is_given_as_it_is_with_a_warning_unless_trimmed(
    machine: Machine, tmp_path: Path
) -> None:
    """Token ends with a newline, auth fails: echo without -n. Exact bytes and a warning, unless the source trims."""
    (tmp_path / "key").write_text(f"{VALUE}\n")
    machine.settings(f'[secrets]\nhf-token = "file:{tmp_path}/key"\n')
    got = machine.fetch(REF, Ref("hf-token", {"token": "AGAIN"}))
    assert got.env == {"HF_TOKEN": f"{VALUE}\n", "AGAIN": f"{VALUE}\n"}
    assert got.notes == (
        "the credential hf-token (key token) ends with a newline, and was given as it is: add ?trim=1 to its source",
    ), "said once"
    for trimming in (
        f'hf-token = "file:{tmp_path}/key?trim=1"',
        f'hf-token = {{token="file:{tmp_path}/key",trim=true}}',
    ):
        machine.settings(f"[secrets]\n{trimming}\n")
        got = machine.fetch(REF)
        assert (got.env["HF_TOKEN"], got.notes) == (VALUE, ())
    (tmp_path / "key").write_text("-----BEGIN\nMIIE\n-----END\n")
    machine.settings(f'[secrets]\nhf-token = "file:{tmp_path}/key"\n')
    assert machine.fetch(REF).notes == (), "a file of several lines ends with one by right"


def test_keys_of_a_json_object_of_a_table_and_of_one_value(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "login").write_text('{"user": "me", "port": 5432, "tls": true, "rate": 1.50}')
    machine.environ["T"] = VALUE
    machine.settings(
        f'[secrets]\nlogin = "file:{tmp_path}/login"\none = "env:T"\n'
        f'[secrets.parts]\n"a.json" = "file:{tmp_path}/login"\nb = "env:T"\n'
    )
    json_text = (tmp_path / "login").read_bytes()
    got = machine.fetch(Ref("login", {"user": "U", "port": "P", "value": "ALL"}))
    assert got.env == {"U": "me", "P": "5432", "ALL": json_text.decode()}
    assert machine.fetch(Ref("login", mount_path="/x")).files == {
        "/x": {"user": b"me", "port": b"5432", "tls": b"true", "rate": b"1.50"}
    }
    assert machine.fetch(Ref("one", mount_path="/x")).files == {"/x": {"value": VALUE.encode()}}
    assert machine.fetch(Ref("one", {"k": "K"}, "/x")).files == {"/x": {"k": VALUE.encode()}}
    assert machine.fetch(Ref("parts", {"b": "B"}, "/x")).files == {"/x": {"a.json": json_text, "b": VALUE.encode()}}
    assert machine.fetch(Ref("parts", {"b": "B"})).env == {"B": VALUE}
    assert machine.waits_saying(Ref("one", {"k": "K", "l": "L"})) == (
        "waiting for external secret one (key l) to be synced to this node: the source holds one value, and 2 keys are "
        "asked for"
    )


def test_missing_key_of_an_object_and_of_a_table_waits_and_names_it(machine: Machine) -> None:
    machine.environ |= {"A": '{"user": "me"}', "B": "b"}
    for entry in ('hf-token = "env:A"', 'hf-token = {other="env:B"}', 'hf-token = "env:C"', "", 'else = "env:A"'):
        machine.settings(f"[secrets]\n{entry}\n")
        assert machine.waits_saying(REF) == LATE


def test_late_secret_is_there_a_second_after_the_settings_file_says_so(machine: Machine) -> None:
    """No settings file, a broken one, then one with the entry: the task waits, and goes on by itself."""
    machine.environ["HF_TOKEN"] = VALUE
    steps: Iterator[Callable[[], object]] = iter(
        (
            lambda: machine.settings("[secrets\n"),
            lambda: machine.settings('[secrets]\nother = "env:HF_TOKEN"\n'),
            lambda: None,
            lambda: machine.settings('[secrets]\nother = "env:HF_TOKEN"\nhf-token = "env:HF_TOKEN"\n'),
        )
    )
    machine.on_pause = lambda: next(steps)()
    assert machine.fetch(REF).env == {"HF_TOKEN": VALUE}
    assert machine.said[0] == machine.said[2] == LATE
    assert machine.said[1].startswith(f"{LATE}: the settings file {machine.file} cannot be used: it is not TOML")
    assert len(machine.said) == 3, "said when it changes"
    assert max(machine.pauses) <= 1.0
    assert VALUE not in "".join(machine.said)


def test_late_file_is_asked_for_again_and_a_stop_ends_the_wait_at_once(machine: Machine, tmp_path: Path) -> None:
    machine.settings(f'[secrets]\nhf-token = "file:{tmp_path}/late"\n')
    machine.on_pause = lambda: len(machine.pauses) == 9 and (tmp_path / "late").write_text(VALUE)
    assert machine.fetch(REF).env == {"HF_TOKEN": VALUE}
    assert 9 <= sum(machine.pauses) <= 17
    assert machine.said == [LATE]
    (tmp_path / "late").unlink()
    machine.pauses.clear()
    machine.on_pause = machine.give_up
    with pytest.raises(GivenUp):
        machine.fetch(REF)
    assert len(machine.pauses) == 1


def test_source_that_cannot_be_asked_waits_with_its_reason(machine: Machine, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large").write_bytes(b"x" * ((1 << 20) + 1))
    reasons: Mapping[str, str] = {
        f"{tmp_path}": f"{tmp_path} is not a plain file",
        f"{tmp_path}/pipe": f"{tmp_path}/pipe is not a plain file",
        f"{tmp_path}/large": f"{tmp_path}/large is larger than 1 MiB",
    }
    for path, why in reasons.items():
        machine.settings(f'[secrets]\nhf-token = "file:{path}"\n')
        assert machine.waits_saying(REF) == f"{LATE}: {why}"


def test_value_that_can_be_no_variable_fails_clearly_and_is_not_told(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(b"\0" + VALUE.encode())
    machine.settings(f'[secrets]\nhf-token = "file:{tmp_path}/key"\n')
    with pytest.raises(CouldNotPrepare) as refused:
        machine.fetch(REF)
    assert refused.value.message.startswith("Writing config HF_TOKEN: the credential hf-token (key token) holds a NUL")
    assert VALUE not in refused.value.message
    (tmp_path / "key").write_bytes(b"x" * (120 << 10) + b"y")
    with pytest.raises(CouldNotPrepare) as refused:
        machine.fetch(REF)
    assert "122881 bytes" in refused.value.message
    assert machine.fetch(Ref("hf-token", mount_path="/x")).files["/x"]["value"][-1:] == b"y", "as a file it may"


def test_keys_that_can_be_no_file_and_directories_asked_for_twice(machine: Machine) -> None:
    machine.environ |= {"A": '{"../up": "x1"}', "B": '{"k": "1"}', "C": '{"k": "2"}', "D": '{"l": "3"}'}
    machine.settings('[secrets]\na = "env:A"\nb = "env:B"\nc = "env:C"\nd = "env:D"\n')
    with pytest.raises(CouldNotPrepare, match=r"Writing config /x: a key of a cannot be a file's name"):
        machine.fetch(Ref("a", mount_path="/x"))
    with pytest.raises(CouldNotPrepare, match=r"Writing config /x/k: two credentials"):
        machine.fetch(Ref("b", mount_path="/x"), Ref("c", mount_path="/x"))
    assert machine.fetch(Ref("b", mount_path="/x"), Ref("d", mount_path="/x")).files == {"/x": {"k": b"1", "l": b"3"}}


def test_every_value_is_masked_also_of_keys_that_were_only_mounted(machine: Machine) -> None:
    machine.environ["A"] = '{"user": "root", "password": "pass word", "pin": "123"}'
    machine.settings('[secrets]\na = "env:A"\n')
    got = machine.fetch(Ref("a", {"password": "P"}, "/x"))
    assert set(got.masks.values) == {b"root", b"pass word"}


def test_reference_is_read_as_it_is_stored() -> None:
    stored: dict[str, Any] = {"external_secret_name": "a", "mount_path": "/x", "env_vars": {"k": "K"}}
    assert Ref.of(stored) == Ref("a", {"k": "K"}, "/x")
    assert Ref.of({"external_secret_name": "a"}) == Ref("a")


def test_registry_login_waits_until_it_is_whole(machine: Machine) -> None:
    late = "waiting for registry secret login to be synced to this node"
    machine.environ["A"] = VALUE
    machine.settings('[secrets]\nlogin = "env:A"\n')
    texts = [json.dumps({"username": "u"}), json.dumps({"username": "u", "password": "p", "server": "s"})]
    machine.on_pause = lambda: texts and machine.environ.__setitem__("A", texts.pop(0))
    login = registry_login("login", machine.table, machine.said.append, machine.pause)
    assert (login.username, login.password, login.server) == ("u", "p", "s")
    assert machine.said == [f"{late}: the source holds one value, and 3 keys are asked for", late]
    assert "password" not in repr(login) or "'p'" not in repr(login)


# ---- AWS


@pytest.fixture(scope="module")
def emulator() -> Iterator[servers.Server]:
    with servers.moto() as server:
        yield server


@pytest.fixture
def aws(emulator: servers.Server, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """Clients of the emulator; this process's own AWS settings lead there too."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in {**servers.CREDENTIALS, "AWS_EC2_METADATA_DISABLED": "true"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", emulator.endpoint)

    def client(service: str) -> Any:
        import boto3

        return boto3.session.Session().client(service)

    return client


def test_parameter_store_decrypts_and_waits_for_one_that_is_not_there(
    machine: Machine, aws: Callable[[str], Any]
) -> None:
    aws("ssm").describe_parameters()  # at its first request the emulator loads a service: that takes its time
    machine.settings('[secrets]\nhf-token = "ssm:/prod/hf"\n')
    machine.on_pause = lambda: aws("ssm").put_parameter(Name="/prod/hf", Value=VALUE, Type="SecureString")
    assert machine.fetch(REF).env == {"HF_TOKEN": VALUE}
    assert machine.said == [LATE]


def test_secrets_manager_gives_texts_objects_and_bytes(machine: Machine, aws: Callable[[str], Any]) -> None:
    manager = aws("secretsmanager")
    arn = manager.create_secret(Name="prod/login", SecretString='{"user": "me", "port": 1}')["ARN"]
    manager.create_secret(Name="raw", SecretBinary=b"\xff\x00raw")
    machine.settings(
        f'[secrets]\nhf-token = "secretsmanager:late"\nlogin = "secretsmanager:{arn}"\nraw = "secretsmanager:raw"\n'
    )
    assert machine.fetch(Ref("login", {"user": "U", "port": "P"})).env == {"U": "me", "P": "1"}
    assert machine.fetch(Ref("raw", mount_path="/x")).files == {"/x": {"value": b"\xff\x00raw"}}
    assert machine.waits_saying(REF) == LATE


def test_endpoint_and_region_of_the_table_win(
    machine: Machine, aws: Callable[[str], Any], emulator: servers.Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    aws("ssm").put_parameter(Name="/only/here", Value=VALUE, Type="String")
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    entry = f'region = "us-east-1"\nendpoint_url = "{emulator.endpoint}"\n'
    machine.settings(f'[secrets.hf-token]\ntoken = "ssm:/only/here"\n{entry}')
    assert machine.fetch(REF).env == {"HF_TOKEN": VALUE}
    machine.settings(f'[secrets]\nhf-token = "ssm:/only/here?endpoint_url={emulator.endpoint}"\n')
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    assert machine.waits_saying(REF).startswith(f"{LATE}: no AWS region is known for ssm:/only/here")
    machine.wanted = True
    machine.environ["AWS_REGION"] = "us-east-1"
    assert machine.fetch(REF).env == {"HF_TOKEN": VALUE}


def test_aws_that_cannot_be_reached_or_refuses_waits_and_says_so(
    machine: Machine, aws: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    nobody = f"http://127.0.0.1:{servers.free_port()}"
    machine.settings(f'[secrets]\nhf-token = "secretsmanager:x?endpoint_url={nobody}"\n')
    said = machine.waits_saying(REF)
    assert said.startswith(f"{LATE}: AWS Secrets Manager (x) could not be asked: EndpointConnectionError")
    machine.wanted = True
    aws("secretsmanager").create_secret(Name="going", SecretString=VALUE)
    aws("secretsmanager").delete_secret(SecretId="going")
    machine.settings('[secrets]\nhf-token = "secretsmanager:going"\n')
    assert machine.waits_saying(REF) == f"{LATE}: AWS Secrets Manager (going) answered InvalidRequestException"
    machine.wanted = True
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    assert "NoCredentialsError" in machine.waits_saying(REF)
