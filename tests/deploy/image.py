"""The image of `deploy/Dockerfile`, built and run without a container runtime: buildah runs the steps in a plain root
folder, on a Debian that mmdebstrap makes; what comes of it runs in a chroot with namespaces of its own for mounts and
processes. Both need root, and the steps need Debian's and Python's package indexes."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
DOCKERFILE = ROOT / "deploy" / "Dockerfile"
MIRROR = "http://deb.debian.org/debian"
RELEASES = {"13": "trixie"}
"""Debian's names for what the image is based on."""
TRUSTED = Path("/etc/ssl/certs/ca-certificates.crt")
"""What this machine trusts: packages may come by way of a proxy of its own."""
NEEDED = ("buildah", "mmdebstrap", "unshare", "chroot")
_ENTER = """
set -e
mount --make-rprivate /
mount --bind "$1" "$1"
mount --options remount,bind,ro "$1"
mount -t tmpfs -o size=64m,mode=1777 tmpfs "$1/tmp"
mount -t proc proc "$1/proc"
mount --rbind /dev "$1/dev"
mount --bind "$2" "$1/app/data"
exec chroot "$1" /usr/bin/setpriv --reuid="$4" --regid="$5" --clear-groups --no-new-privs --bounding-set=-all \\
    --inh-caps=-all -- /usr/bin/env --ignore-environment --chdir="$3" "${@:6}"
"""
"""As a container is run with a read-only root, all capabilities dropped and no new privileges."""


def why_not_here() -> str:
    """Returns what keeps the image from being built here; empty: nothing."""
    if os.geteuid() != 0:
        return "only root can change the root folder of a process"
    missing = [name for name in NEEDED if shutil.which(name) is None]
    return f"missing (Debian: apt-get install buildah mmdebstrap): {', '.join(missing)}" if missing else ""


@dataclass(frozen=True)
class Image:
    """What was built."""

    root: Path
    """Its files."""
    config: Mapping[str, Any]
    """What it says about how it is to be run, as Docker writes it."""

    def command(self, *arguments: str, data: Path, **variables: str) -> list[str]:
        """The command line that runs it. `data` is to be seen at /app/data."""
        user, group = self.config["User"].split(":")
        environment = [*self.config["Env"], *(f"{name}={value}" for name, value in variables.items())]
        inside = [*environment, *self.config["Entrypoint"], *arguments]
        places = [str(self.root), str(data), self.config["WorkingDir"], user, group]
        namespaces = ["unshare", "--mount", "--pid", "--fork"]
        return [*namespaces, "bash", "-c", _ENTER, "bash", *places, *inside]


@contextmanager
def built_image() -> Iterator[Image]:
    """Build it. Takes minutes."""
    with tempfile.TemporaryDirectory(prefix="countersign-image-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # whoever the image runs as has to come through
        buildah = _Buildah(folder)
        _make_base(folder, buildah)
        # Nothing is fetched: the base is what was just made.
        buildah("bud", "--pull-never", "--format=docker", f"--file={DOCKERFILE}", "--tag=built", str(ROOT))
        container = buildah("from", "--pull-never", "built")
        try:
            config = json.loads(buildah("inspect", "--type=image", "built"))["Docker"]["config"]
            yield Image(Path(buildah("mount", container)), config)
        finally:
            buildah("umount", "--all")
            buildah("rm", "--all")


class _Buildah:
    def __init__(self, folder: Path) -> None:
        self._where = [f"--root={folder / 'storage'}", f"--runroot={folder / 'run'}"]
        self._environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "BUILDAH_ISOLATION": "chroot"}
        self._environment["TMPDIR"] = str(folder)
        self._log = folder / "build.log"

    def __call__(self, *arguments: str) -> str:
        """What it says on its last line."""
        command = ["buildah", *self._where, *arguments]
        with self._log.open("w") as log:
            done = subprocess.run(
                command,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                check=False,
            )
        assert done.returncode == 0, f"{arguments}: {done.stdout.decode()[-2000:]}{self._log.read_text()[-2000:]}"
        said = done.stdout.decode().strip()
        return said if arguments[0] == "inspect" else said.rpartition("\n")[2]


def _make_base(folder: Path, buildah: _Buildah) -> None:
    """Debian's smallest system, under the name that the Dockerfile begins with."""
    (base,) = bases()
    found = re.fullmatch(r"debian:(?P<version>\d+)\.\d+-slim", base)
    assert found is not None, f"{base} is not one of Debian's slim images"
    archive = folder / "base.tar"
    trusted: Sequence[str] = ()
    if TRUSTED.exists():
        inside = "/usr/local/share/ca-certificates"
        trusted = (f'--customize-hook=mkdir -p "$1{inside}"', f"--customize-hook=upload {TRUSTED} {inside}/machine.crt")
    subprocess.run(
        ["mmdebstrap", "--variant=minbase", "--mode=root", *trusted, RELEASES[found["version"]], str(archive), MIRROR],
        env={"PATH": os.environ["PATH"], "TMPDIR": str(folder)},
        capture_output=True,
        check=True,
    )
    container = buildah("from", "scratch")
    buildah("add", container, str(archive), "/")
    buildah("commit", container, f"docker.io/library/{base}")
    buildah("rm", container)


def bases() -> set[str]:
    """The images of others that the Dockerfile begins with."""
    stages = re.findall(r"^FROM (\S+)(?: AS (\S+))?$", DOCKERFILE.read_text(), re.MULTILINE)
    return {base for base, _ in stages} - {name for _, name in stages}
