"""Files for clusters in `deploy/`: they parse, name what exists, hold no secrets, and agree with package and docs.

The schema of KubeRay is in no package that installs here: fields are compared with those of its published Go types.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.docs.test_docs import ROOT, parse

yaml: Any = pytest.importorskip("yaml")
DEPLOY = ROOT / "deploy"
SCRIPTS = sorted((DEPLOY / "slurm").iterdir())
PINS = dict(re.findall(r"^([\w.-]+)==(\S+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE))
JOB = {
    "activeDeadlineSeconds", "backoffLimit", "rayClusterSpec", "submitterPodTemplate", "metadata", "clusterSelector",
    "submitterConfig", "managedBy", "entrypoint", "runtimeEnvYAML", "jobId", "submissionMode", "entrypointResources",
    "entrypointNumCpus", "entrypointNumGpus", "ttlSecondsAfterFinished", "shutdownAfterJobFinishes", "suspend",
}  # fmt: skip
CLUSTER = {
    "headGroupSpec", "workerGroupSpecs", "rayVersion", "enableInTreeAutoscaling", "autoscalerOptions",
    "headServiceAnnotations", "suspend", "authOptions",
}  # fmt: skip
HEAD = {"serviceType", "headService", "enableIngress", "rayStartParams", "template"}
WORKERS = {
    "groupName", "replicas", "minReplicas", "maxReplicas", "numOfHosts", "rayStartParams", "template", "scaleStrategy",
}  # fmt: skip


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_scripts_are_bash_and_the_command_in_their_head_parses(script: Path) -> None:
    subprocess.run(["bash", "-n", str(script)], check=True)
    text = script.read_text()
    assert text.startswith("#!/usr/bin/env bash\n")
    for line in re.findall(r"^#   sbatch \S+ hoofbeat (.+)$", text, re.MULTILINE):
        parse(shlex.split(line))


def test_the_servers_script_names_the_file_that_is_there() -> None:
    named = set(re.findall(r"\$SCRIPTS/([\w.]+)", (DEPLOY / "slurm" / "servers_and_run.sbatch").read_text()))
    assert named == {"model_server.sh"}
    assert named <= {script.name for script in SCRIPTS}


def test_compose_publishes_only_the_pages_and_only_on_loopback() -> None:
    found = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    services = found["services"]
    assert {name: each.get("ports", []) for name, each in services.items()} == {
        "db": [], "run": [], "pages": ["127.0.0.1:8350:8350"],
    }  # fmt: skip
    assert found["networks"]["inside"] == {"internal": True}
    assert services["db"]["networks"] == ["inside"]
    assert services["db"]["image"].startswith("pgvector/pgvector:")
    assert (DEPLOY / services["pages"]["build"]["context"] / services["pages"]["build"]["dockerfile"]).exists()
    named = {volume.partition(":")[0] for each in services.values() for volume in each["volumes"]}
    assert {name for name in named if name.isalpha()} == set(found["volumes"])
    passwords = [services["db"]["environment"]["POSTGRES_PASSWORD"], services["run"]["environment"]["PGPASSWORD"]]
    assert passwords == ["${HOOFBEAT_DB_PASSWORD:?set HOOFBEAT_DB_PASSWORD}"] * 2, "it is in no file"


def test_compose_commands_parse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]["pages"]["command"]
    monkeypatch.chdir(tmp_path)
    parse(list(command))


def test_the_container_file_has_no_secret_a_plain_user_and_pinned_versions() -> None:
    text = (DEPLOY / "Containerfile").read_text()
    steps = [line.split(maxsplit=1) for line in re.sub(r"\\\n", "", text).splitlines() if line and line[0].isupper()]
    words = [word for word, _ in steps]
    assert set(words) <= {"FROM", "WORKDIR", "COPY", "RUN", "ENV", "USER", "VOLUME", "EXPOSE", "ENTRYPOINT", "CMD"}
    assert words.index("USER") < words.index("ENTRYPOINT")
    [user] = [rest for word, rest in steps if word == "USER"]
    assert user == "hoofbeat"
    assert "-c constraints.txt" in text
    assert not re.search(r"(?i)password|secret=|api_key|token", text)
    copied = [rest for word, rest in steps if word == "COPY" and "--from" not in rest]
    names = [name for rest in copied for name in rest.split()[:-1]]
    ignored = (DEPLOY / "Containerfile.dockerignore").read_text().split()
    assert ignored[0] == "*"
    for name in names:
        assert (ROOT / name).exists()
        assert f"!{name}" in ignored, "all else stays out of the build"


def test_the_ray_job_has_fields_that_kuberay_knows_and_this_version_of_ray() -> None:
    job = yaml.safe_load((DEPLOY / "kubernetes" / "rayjob.yaml").read_text())
    assert (job["apiVersion"], job["kind"]) == ("ray.io/v1", "RayJob")
    spec = job["spec"]
    cluster = spec["rayClusterSpec"]
    [workers] = cluster["workerGroupSpecs"]
    for found, known in ((spec, JOB), (cluster, CLUSTER), (cluster["headGroupSpec"], HEAD), (workers, WORKERS)):
        assert set(found) <= known
    assert cluster["rayVersion"] == PINS["ray"]
    assert workers["minReplicas"] <= workers["replicas"] <= workers["maxReplicas"]
    assert all(isinstance(value, str) for value in cluster["headGroupSpec"]["rayStartParams"].values())
    pods = [cluster["headGroupSpec"]["template"]["spec"], workers["template"]["spec"]]
    for pod in pods:
        [container] = pod["containers"]
        volumes = {volume["name"] for volume in pod["volumes"]}
        assert {mount["name"] for mount in container["volumeMounts"]} == volumes
        assert container["env"][0]["name"] == "HOOFBEAT_LEDGER"
        assert pod["securityContext"]["runAsNonRoot"]
    assert pods[0]["volumes"] == pods[1]["volumes"], "all pods see the same folders"
    ports = {port["name"]: port["containerPort"] for port in pods[0]["containers"][0]["ports"]}
    assert ports == {"gcs-server": 6379, "dashboard": 8265, "client": 10001}
    inner = shlex.split(spec["entrypoint"])[-1]
    parse(shlex.split(inner.rpartition("&& hoofbeat ")[2]))


def test_the_page_on_scale_names_every_file() -> None:
    page = (ROOT / "docs" / "scale.md").read_text()
    for path in DEPLOY.rglob("*"):
        if path.is_file() and path.suffix != ".dockerignore":
            assert f"deploy/{path.relative_to(DEPLOY)}" in page
    assert "127.0.0.1:8350" in page
