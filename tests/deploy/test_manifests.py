"""What `deploy/` says agrees with the code, with itself, and with the published schemas."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from aiohttp import web
from aiohttp.test_utils import TestServer

import app
from adapters.api.agent_to_agent import contract as agents
from adapters.gateway import receiver as gateway
from adapters.oauth import http
from adapters.shared import serving
from adapters.slack.web_api import client as slack
from adapters.slack.web_api import installing
from adapters.teams.connector import client as teams
from adapters.tool_servers.config import HttpTransport, parse_config
from bot.accounts import only_once
from bot.records import postgres_connections, postgresql
from bot.records.database import AT_LAST_SECONDS, KEPT_OR_LOST_SECONDS
from bot.settings import Settings, load_settings, variable
from servers import requester
from servers.start import HEALTH, SHORTEST_TOKEN, TOKEN
from tests.deploy.image import DOCKERFILE, ROOT, bases

DEPLOY = ROOT / "deploy"
KUBERNETES = DEPLOY / "kubernetes"
VERSION = "1.37"
"""Of Kubernetes, whose schemas are installed."""
PORT = Settings.model_fields["port"].default
OF_THE_PRODUCT = {variable(name) for name in Settings.model_fields}
SIGNING = {"tasks": "TASKS_SECRET", "documents": "DOCUMENTS_SECRET"}
"""Tool server → the variable with what the replicas sign with for it."""
OF_TOOL_SERVERS = {TOKEN, *SIGNING.values()}
OF_COMPOSE = {"DOMAIN", "POSTGRES_PASSWORD", *OF_TOOL_SERVERS}
MADE_OF = {"kustomization.yaml", "policy.yaml"}
FOLDERS = {"adapters", "bot", "demo_model", "graph", "policies", "servers", "translations"}


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def manifests() -> list[dict[str, Any]]:
    files = [path for path in sorted(KUBERNETES.glob("*.yaml")) if path.name not in MADE_OF]
    return [each for path in files for each in yaml.safe_load_all(path.read_text())]


def manifest(kind: str, name: str = "countersign") -> dict[str, Any]:
    (found,) = [each for each in manifests() if (each["kind"], each["metadata"]["name"]) == (kind, name)]
    return found


def templates() -> dict[str, dict[str, Any]]:
    """What pods are made from, by kind."""
    found = {
        each["kind"]: each["spec"]["template"]["spec"] for each in manifests() if "template" in each.get("spec", {})
    }
    assert set(found) == {"Deployment", "Job", "StatefulSet"}
    return found


def containers() -> list[dict[str, Any]]:
    return [each for pod in templates().values() for each in pod["containers"]]


COMPOSE = read(DEPLOY / "compose.yaml")
SERVICES: dict[str, Any] = COMPOSE["services"]
OURS = {name: each for name, each in SERVICES.items() if each["image"].startswith("countersign:")}
REPLICAS = ("replica-1", "replica-2")


def assignments(file: Path) -> dict[str, str]:
    """What a file of variables sets."""
    lines = [line for line in file.read_text().splitlines() if line and not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines)


# ------------------------------------------------------------------------------------------- well formed


@pytest.mark.parametrize("each", manifests(), ids=lambda each: f"{each['kind']}/{each['metadata']['name']}")
def test_manifests_are_as_kubernetes_says(each: dict[str, Any]) -> None:
    kubernetes_validate.validate(each, VERSION, strict=True)


def test_a_manifest_with_a_typing_mistake_is_found() -> None:
    broken = json.loads(json.dumps(manifest("Deployment")).replace("readinessProbe", "readynessProbe"))
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(broken, VERSION, strict=True)


def tool(name: str, *arguments: str | Path) -> str:
    """What a checker says; it must be content."""
    done = subprocess.run(
        [Path(sys.executable).with_name(name), *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_compose_file_is_as_its_specification_says() -> None:
    tool("check-jsonschema", "--builtin-schema", "vendor.compose-spec", DEPLOY / "compose.yaml")


def test_the_dockerfile_is_as_others_write_theirs() -> None:
    # DL3008: versions of Debian's packages are those of the pinned release, with its security updates.
    tool("hadolint", "--ignore", "DL3008", DOCKERFILE)


def test_the_kustomization_names_each_manifest_and_nothing_that_is_not_there() -> None:
    said = read(KUBERNETES / "kustomization.yaml")
    files = {path.name for path in KUBERNETES.glob("*.yaml") if ".example." not in path.name} - MADE_OF
    assert set(said["resources"]) == files
    generated = {each["name"]: {*each.get("files", ()), *each.get("envs", ())} for each in said["configMapGenerator"]}
    assert all((KUBERNETES / file).is_file() for files in generated.values() for file in files)
    used = {each["configMap"]["name"] for pod in templates().values() for each in pod["volumes"] if "configMap" in each}
    used |= {
        source["configMapRef"]["name"]
        for each in containers()
        for source in each.get("envFrom", ())
        if "configMapRef" in source
    }
    assert used == set(generated)


# ------------------------------------------------------------------------------------------- as the code says


def test_every_variable_that_is_set_is_one_of_the_product() -> None:
    assert set(assignments(DEPLOY / "env.example")) <= OF_THE_PRODUCT | OF_COMPOSE
    assert set(assignments(KUBERNETES / "settings.env")) <= OF_THE_PRODUCT
    assert set(manifest("Secret")["stringData"]) <= OF_THE_PRODUCT | OF_TOOL_SERVERS
    for name in REPLICAS:
        assert set(SERVICES[name]["environment"]) <= OF_THE_PRODUCT | OF_TOOL_SERVERS
    for container in containers():
        assert {each["name"] for each in container.get("env", ())} <= OF_THE_PRODUCT | {TOKEN, requester.SECRET}


def test_what_several_processes_need_is_set() -> None:
    needed = {"DATABASE_URL", "ENCRYPTION_KEY", "PUBLIC_URL"}
    for name in REPLICAS:
        assert needed <= set(SERVICES[name]["environment"])
    assert needed <= set(assignments(KUBERNETES / "settings.env")) | set(manifest("Secret")["stringData"])


def test_the_settings_of_a_deployment_are_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = dict(manifest("Secret")["stringData"])
    secrets |= {"DATABASE_URL": "postgresql://a:b@c/d", "ENCRYPTION_KEY": "A" * 43 + "=", "WEB_PASSWORD": "open sesame"}
    for name in OF_THE_PRODUCT:
        monkeypatch.delenv(name, raising=False)
    for name, value in {**assignments(KUBERNETES / "settings.env"), **secrets, "HOST": "0.0.0.0"}.items():
        monkeypatch.setenv(name, value)
    settings = load_settings(None)
    assert settings.sqlite_file is None
    assert settings.web_enabled


def test_no_secret_is_filled_in() -> None:
    filled = {name for name, value in manifest("Secret")["stringData"].items() if value}
    assert filled == set()
    assert {name for name, value in assignments(DEPLOY / "env.example").items() if value} == {"DOMAIN"}
    for path in (path for path in DEPLOY.rglob("*") if path.is_file()):
        assert not re.search(r"(xoxb-|xapp-|sk-)\w|gAAAA|BEGIN [A-Z ]*PRIVATE", path.read_text()), path
    for service in SERVICES.values():
        for name, value in (service.get("environment") or {}).items():
            if re.search("PASSWORD|KEY|TOKEN|SECRET|DATABASE_URL", name):
                assert re.search(r"\$\{\w+:\?", value), f"{name} has to come from the file of secrets"


def test_whoever_copies_the_file_of_secrets_cannot_commit_it() -> None:
    ignored = ["git", "check-ignore", "--quiet", "deploy/.env"]
    assert subprocess.run(ignored, cwd=ROOT, check=False).returncode == 0
    kept_out = (ROOT / ".dockerignore").read_text().splitlines()
    assert kept_out[1] == "*"
    assert not {"!.env", "!deploy", "!data", "!tests"} & set(kept_out)


def test_ports_are_the_products() -> None:
    dockerfile = DOCKERFILE.read_text()
    assert f"PORT={PORT} " in dockerfile
    assert f"EXPOSE {PORT}\n" in dockerfile
    (container,) = templates()["Deployment"]["containers"]
    assert container["ports"] == [{"name": "http", "containerPort": PORT}]
    assert manifest("Service")["spec"]["ports"][0]["targetPort"] == "http"
    assert all(f"{name}:{PORT}" in (DEPLOY / "Caddyfile").read_text() for name in REPLICAS)


async def test_probes_ask_what_the_product_answers() -> None:
    paths = {route.resource.canonical for route in product_routes().router.routes() if route.resource is not None}
    (container,) = templates()["Deployment"]["containers"]
    alive, ready = container["livenessProbe"]["httpGet"], container["readinessProbe"]["httpGet"]
    assert (alive["path"], ready["path"]) == ("/health-check", "/ready")
    assert {alive["path"], ready["path"], container["startupProbe"]["httpGet"]["path"]} <= paths
    assert f"'{alive['path']}'" in DOCKERFILE.read_text()
    assert f"health_uri {ready['path']}\n" in (DEPLOY / "Caddyfile").read_text()
    for server in templates()["StatefulSet"]["containers"]:
        assert server["readinessProbe"]["httpGet"] == {"path": HEALTH, "port": server["name"]}


@pytest.mark.parametrize("service", sorted({"replica-1", "replica-2", "calendar", "tasks", "documents"}))
@pytest.mark.parametrize(("status", "code"), [(200, 0), (503, 1)])
async def test_health_checks_of_compose_end_as_what_they_ask_answers(service: str, status: int, code: int) -> None:
    _, _, _, program = SERVICES[service]["healthcheck"]["test"]
    (path,) = re.findall(r"'GET', '(/\w+)'", program)
    assert path == ("/ready" if service in REPLICAS else HEALTH)

    async def answer(_request: web.Request) -> web.Response:
        return web.Response(status=status)

    application = web.Application()
    application.router.add_get(path, answer)
    async with TestServer(application) as server:
        here = re.sub(r"'127\.0\.0\.1', \d+", f"'127.0.0.1', {server.port}", program)
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", here)
        assert await process.wait() == code


def product_routes() -> web.Application:
    """An application with what is named in `app.running`."""
    application = web.Application()

    async def details() -> dict[str, Any]:
        return {}

    handlers = {"health_check": serving.health_check(details, None), "readiness": serving.readiness(lambda: True)}
    source = Path(app.__file__).read_text()
    for path, name in re.findall(r'add_get\("(/[\w-]+)", (\w+)\(', source):
        application.router.add_get(path, handlers[name])
    return application


def test_it_has_time_to_end() -> None:
    """Also where it keeps what a service gives only once while PostgreSQL is away."""
    longest = app.TURNED_AWAY_SECONDS + app.HANDOVER_SECONDS + 4.5
    assert longest <= 10
    pod = templates()["Deployment"]
    _, before = pod["containers"][0]["lifecycle"]["preStop"]["exec"]["command"]
    assert pod["terminationGracePeriodSeconds"] >= float(before) + app.LONGEST_KEEPING_SECONDS + longest
    for name, service in OURS.items():
        keeps = app.LONGEST_KEEPING_SECONDS if name in REPLICAS else longest
        assert float(service["stop_grace_period"].removesuffix("s")) >= keeps + longest
    interval = re.search(r"health_interval (\d+)s", (DEPLOY / "Caddyfile").read_text())
    assert interval is not None
    assert float(interval[1]) < app.TURNED_AWAY_SECONDS


def test_what_a_service_gives_only_once_has_time_to_be_written_until_the_last_try() -> None:
    """Also where services take all their time to answer, and PostgreSQL does not answer the last try."""
    one_try = max(postgres_connections.CONNECT_SECONDS, postgresql.LOCK_SECONDS) + postgres_connections.ANSWER_SECONDS
    assert AT_LAST_SECONDS + one_try < KEPT_OR_LOST_SECONDS
    sign_in = 2 * http.SECONDS + max(slack.AT_ONCE, teams.AT_ONCE)
    install = 2 * slack.REQUEST_SECONDS + 2 * installing.REVOKE_SECONDS
    assert max(sign_in, install) <= only_once.ANSWERS_SECONDS
    assert only_once.ANSWERS_SECONDS + KEPT_OR_LOST_SECONDS <= only_once.LONGEST_SECONDS
    until = app.LONGEST_KEEPING_SECONDS - app.KEPT_SECONDS
    assert until >= app.LONGEST_END_SECONDS + only_once.LONGEST_SECONDS


def test_there_are_enough_connections_to_postgresql() -> None:
    pods = manifest("Deployment")["spec"]
    at_once = pods["replicas"] + pods["strategy"]["rollingUpdate"]["maxSurge"]
    (given,) = re.findall(r"max_connections=(\d+)", " ".join(SERVICES["database"]["command"]))
    assert int(given) > at_once * MOST_CONNECTIONS


def test_whoever_makes_an_ingress_reads_that_answers_to_other_agents_are_streams() -> None:
    said = " ".join((KUBERNETES / "ingress.example.yaml").read_text().replace("\n#", " ").split())
    (streams,) = re.findall(r"does not buffer event streams \(([^)]*)\)", said)
    assert {gateway.PATH, f"{gateway.PATH}/*", agents.RPC_PATH} <= set(streams.split(", "))


def test_no_request_makes_the_proxy_take_a_replica_for_dead() -> None:
    """What a client breaks off fails too: two of these would keep everybody out."""
    directives = {line.split()[0] for line in (DEPLOY / "Caddyfile").read_text().splitlines() if line.strip()}
    assert not directives & {"fail_duration", "max_fails", "unhealthy_status", "unhealthy_latency"}
    assert "health_uri" in directives


MOST_CONNECTIONS = 66
"""Of one process: docs/deployment.md has the sum."""


def test_what_is_started_exists() -> None:
    for arguments in [*(each["args"] for each in containers() if "args" in each), *commands()]:
        if arguments[0] == "-m":
            place = ROOT / arguments[1].replace(".", "/")
            assert place.with_suffix(".py").is_file() or (place / "__main__.py").is_file()
        else:
            assert arguments == ["app.py", "migrate", "up"]


def commands() -> list[list[str]]:
    return [each["command"] for each in OURS.values() if "command" in each]


def test_the_tool_servers_are_where_the_configuration_says() -> None:
    text = (DEPLOY / "mcp.json").read_text()
    secrets = {TOKEN: "t" * SHORTEST_TOKEN} | dict.fromkeys(SIGNING.values(), "s" * requester.SHORTEST_SECRET)
    for server in parse_config(text, DEPLOY / "mcp.json", secrets).servers:
        assert isinstance(server.transport, HttpTransport)
        port = server.transport.url.removeprefix(f"http://{server.name}:").removesuffix("/mcp")
        assert SERVICES[server.name]["command"] == ["-m", f"servers.{server.name}", "--http", port, "--host", "0.0.0.0"]
        (container,) = [each for each in templates()["StatefulSet"]["containers"] if each["name"] == server.name]
        assert container["args"] == SERVICES[server.name]["command"]
        assert container["ports"] == [{"name": server.name, "containerPort": int(port)}]
        (of_service,) = manifest("Service", server.name)["spec"]["ports"]
        assert of_service["port"] == int(port)
        assert port in str(SERVICES[server.name]["healthcheck"]["test"])


@pytest.mark.parametrize(("server", "secret"), SIGNING.items())
def test_what_is_signed_for_a_tool_server_it_can_check(server: str, secret: str) -> None:
    signs_with = {SERVICES[name]["environment"][secret] for name in REPLICAS}
    assert signs_with == {SERVICES[server]["environment"][requester.SECRET]}
    (container,) = [each for each in templates()["StatefulSet"]["containers"] if each["name"] == server]
    (given,) = [each for each in container["env"] if each["name"] == requester.SECRET]
    assert given["valueFrom"]["secretKeyRef"] == {"name": "countersign", "key": secret}
    servers = json.loads((DEPLOY / "mcp.json").read_text())["mcpServers"]
    assert servers[server]["requesterSecret"] == f"${{{secret}}}"


def test_the_tool_servers_are_told_of_as_they_are_without_replicas() -> None:
    """Where they are, and with what is signed, is all that differs."""
    elsewhere = {"url", "headers", "requesterSecret", "command", "args"}
    here, there = (
        {
            name: {key: value for key, value in entry.items() if key not in elsewhere}
            for name, entry in json.loads((folder / "mcp.json").read_text())["mcpServers"].items()
        }
        for folder in (ROOT, DEPLOY)
    )
    assert here == there


def test_copies_are_copies() -> None:
    assert (KUBERNETES / "mcp.json").read_text() == (DEPLOY / "mcp.json").read_text()
    assert (KUBERNETES / "policy.yaml").read_text() == (ROOT / "policies" / "default.yaml").read_text()


def test_the_image_gets_what_runs_and_nothing_else() -> None:
    let_in = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert let_in == FOLDERS | {"app.py", "mcp.json", "pyproject.toml", "uv.lock", "LICENSE"}
    assert all((ROOT / name).exists() for name in let_in)


# ------------------------------------------------------------------------------------------- closed


def test_everything_of_ours_runs_without_rights() -> None:
    assert "\nUSER 10001:10001\n" in DOCKERFILE.read_text()
    for pod in templates().values():
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert (pod["securityContext"]["runAsUser"], pod["securityContext"]["runAsGroup"]) == (10001, 10001)
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert pod["automountServiceAccountToken"] is False
    for container in containers():
        assert container["securityContext"] == {
            "readOnlyRootFilesystem": True,
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container["resources"]["requests"].keys() == {"cpu", "memory"}
        assert "memory" in container["resources"]["limits"]
        assert {"name": "tmp", "mountPath": "/tmp"} in container["volumeMounts"]
    for service in OURS.values():
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]


def test_only_the_proxy_can_be_reached_from_outside() -> None:
    assert {name for name, each in SERVICES.items() if "ports" in each} == {"proxy"}
    assert COMPOSE["networks"]["inside"] == {"internal": True}
    assert {name for name, each in SERVICES.items() if "outside" in each["networks"]} == {*REPLICAS, "proxy"}


def test_a_rollout_and_a_drained_machine_leave_somebody_who_takes_work() -> None:
    deployment = manifest("Deployment")["spec"]
    assert deployment["replicas"] >= 2
    assert deployment["strategy"]["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": 1}
    assert manifest("PodDisruptionBudget")["spec"]["minAvailable"] < deployment["replicas"]
    wanted = deployment["selector"]["matchLabels"]
    assert wanted.items() <= deployment["template"]["metadata"]["labels"].items()
    assert manifest("Service")["spec"]["selector"] == wanted
    assert manifest("PodDisruptionBudget")["spec"]["selector"]["matchLabels"] == wanted


def test_images_of_others_have_a_version() -> None:
    others = [each["image"] for name, each in SERVICES.items() if name not in OURS]
    for name in [*others, *bases()]:
        assert re.fullmatch(r"[a-z]+:\d+(\.\d+)+(-slim)?", name), name


def test_there_is_one_version_of_our_image() -> None:
    version = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert version is not None
    assert {each["image"] for each in OURS.values()} == {f"countersign:{version[1]}"}
    assert f'image.version="{version[1]}"' in DOCKERFILE.read_text()
    (image,) = read(KUBERNETES / "kustomization.yaml")["images"]
    assert image["newTag"] == version[1]
    assert {each["image"] for each in containers()} == {image["name"]}
