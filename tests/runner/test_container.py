# SPDX-License-Identifier: GPL-2.0-or-later
"""The container's recipe, run line by line in a fresh Debian 13 instead of by a container engine.

So it needs no registry of containers. What stands for the base image is mmdebstrap's minbase of the
same release.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rsd import debian
from rsd.artifacts import REPOSITORY, Artifacts

CONTAINER = REPOSITORY / "ci/container"
AUTHORITIES = Path("/etc/ssl/certs/ca-certificates.crt")
PATIENCE_S = 1800


def instructions(text: str) -> list[tuple[str, str]]:
    """Those of a Containerfile: a word, and what follows it."""
    text = re.sub(r"^#.*\n", "", text, flags=re.M).replace("\\\n", " ")
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in text.splitlines())]


def script(text: str) -> str:
    """A shell script for the root that does what the instructions say, and then the entry point."""
    lines = ["set -eu"]
    user, directory = "0", "/"
    for word, rest in instructions(text):
        # setpriv takes no name, and keeps what the user's privileges allow.
        become = f"setpriv --reuid={user} --regid={user} --clear-groups --no-new-privs"
        start = (
            f"cd {directory} && {become} env HOME=/home/rsd"
            if user != "0"
            else f"cd {directory} &&"
        )
        if word == "FROM":
            assert rest == f"debian:{debian.SUITE}-slim"
        elif word == "RUN":
            lines.append(f"{start} bash -o pipefail -ec {shlex.quote(rest)}")
        elif word == "COPY":
            owner, source, target = rest.split()
            assert (owner, source) == ("--chown=rsd:rsd", ".")
            lines.append(f"mv /context {target} && chown -R rsd:rsd {target}")
        elif word == "USER":
            user = rest
        elif word == "WORKDIR":
            directory = rest
        elif word == "ENTRYPOINT":
            (program,) = re.findall(r'^\["([^"]*)"\]$', rest)
            lines.append(f"{start} {program} run -- nvme list")
        else:
            assert word in ("", "SHELL", "CMD"), word
    return "\n".join(lines) + "\n"


def test_the_script_has_each_step() -> None:
    text = script((CONTAINER / "Containerfile").read_text())
    for part in ("apt-get install", "mv /context /home/rsd/rsd-nvme", "image import", "nvme list"):
        assert part in text
    before, _, after = text.partition("mv /context")
    assert "setpriv" not in before and after.count("setpriv --reuid=1000") == 2


@pytest.mark.guest
@pytest.mark.long
def test_the_recipe_makes_what_runs_without_privileges(built: Artifacts, tmp_path: Path) -> None:
    context = tmp_path / "context"
    names = subprocess.run(
        ["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, text=True, check=True
    ).stdout.split("\0")
    for name in filter(None, names):
        (context / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(REPOSITORY / name, context / name)
    image = context / "build/container/image.tar"
    image.parent.mkdir(parents=True)
    runner = [sys.executable, "-m", "rsd"]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "host/tools")}
    subprocess.run([*runner, "image", "export", image], env=environment, check=True)
    (tmp_path / "script").write_text(script((CONTAINER / "Containerfile").read_text()))
    isolate = ["unshare", "--mount", "--propagation", "private"] if os.geteuid() == 0 else []
    # The host's certificate authorities, since it may reach PyPI through a proxy with its own.
    trust = (
        [f"--customize-hook=copy-in {AUTHORITIES} /etc/ssl/certs"] if AUTHORITIES.exists() else []
    )
    done = subprocess.run(
        [
            *isolate,
            *("mmdebstrap", "--variant=minbase", "--include=ca-certificates"),
            # A terminal of apt may still be open when mmdebstrap unmounts /dev/pts.
            '--aptopt=Dpkg::Use-Pty "false"',
            *trust,
            f"--customize-hook=copy-in {context} {tmp_path}/script /",
            "--customize-hook=chroot $1 sh /script",
            *(debian.SUITE, "/dev/null", debian.BINARY_SOURCE),
        ],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:]
    assert re.search(r"^/dev/nvme0n1 .* 2\.15 +GB", done.stdout, re.M), done.stdout[-5000:]
