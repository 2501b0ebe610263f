# SPDX-License-Identifier: MIT
"""What is in dist/ (or RTGAUGE_DIST), installed in clean roots of Debian and Ubuntu, without a compiler:
`make test-packages`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

# A root is filled over the network, which takes long on a busy machine.
pytestmark = pytest.mark.timeout(3600)
ROOT = Path(__file__).resolve().parents[2]
DIST = Path(os.environ.get("RTGAUGE_DIST", ROOT / "dist"))
SUITES = os.environ.get("RTGAUGE_SUITES", "bookworm trixie noble").split()
HEADERS = {"noble": "linux-headers-generic"}
MEASURE = "rtgauge probe wakeup --duration 1s --wait 10min --require 'period=1ms latency<=50ms'"
PIPX_RUN = f"pipx run --spec {{wheel}} {MEASURE}"
VERDICTS = {0: "HOLDS", 1: "FAILS", 4: "MARGINAL|CANNOT TELL"}
INSTALL = "DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends"
# The mounts end with the process. The machine's lock is the host's, so that nobody else measures meanwhile.
# uv brings its own certificates, and has to be sent to the system's.
ENTER = """
set -e
mkdir -p /run/rtgauge "$1/run/rtgauge"
mount -t proc proc "$1/proc"
mount --rbind /sys "$1/sys"
mount --rbind /dev "$1/dev"
mount --bind /run/rtgauge "$1/run/rtgauge"
exec chroot "$1" /usr/bin/env -i HOME=/root LANG=C.UTF-8 SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt \
	PATH=/root/.local/bin:/usr/sbin:/usr/bin:/sbin:/bin sh -c "$2"
"""


class Machine:
    """A root, and what runs in it."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def sh(self, command: str, *statuses: int) -> tuple[int, str]:
        """Status and output of a command, which must end with one of these statuses, or with 0."""
        completed = subprocess.run(
            ["unshare", "--mount", "--propagation", "private", "sh", "-c", ENTER, "sh", self.root, command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert completed.returncode in {0, *statuses}, (
            f"{command}: status {completed.returncode}\n{completed.stdout[-4000:]}"
        )
        return completed.returncode, completed.stdout

    def bring(self, *files: Path) -> str:
        """Copy files into the root's /mnt; their names there, for a shell."""
        for file in files:
            shutil.copy(file, self.root / "mnt")
        return " ".join(f"/mnt/{file.name}" for file in files)

    def measures(self, command: str = MEASURE) -> None:
        """The command ends in a verdict, whichever."""
        status, output = self.sh(command, *VERDICTS)
        assert re.search(VERDICTS[status], output), output

    def leftovers(self) -> list[str]:
        """Files of rtgauge outside what tests brought and what a home or /run keeps."""
        return self.sh("find /etc /usr /var -path '*rtgauge*' -not -path '/var/cache/*'")[1].splitlines()


@pytest.fixture(scope="module", params=SUITES)
def clean(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A minimal root of one release, named after it."""
    root = tmp_path_factory.mktemp("roots") / request.param
    subprocess.run(
        [
            "sh",
            ROOT / "tools" / "root.sh",
            request.param,
            root,
            "--variant=minbase",
            "--include=apt,ca-certificates",
        ],
        check=True,
    )
    for name in ("resolv.conf", "hosts"):
        shutil.copy(f"/etc/{name}", root / "etc" / name)
    Machine(root).sh("apt-get update -qq")
    return root


@pytest.fixture
def machine(clean: Path, tmp_path: Path) -> Machine:
    """A machine that nobody has changed."""
    subprocess.run(["cp", "-a", "--reflink=auto", clean, tmp_path], check=True)
    return Machine(tmp_path / clean.name)


@pytest.fixture(autouse=True)
def without_big_folders(tmp_path: Path) -> object:
    """A root with its libraries has a gigabyte: no test keeps one."""
    yield
    shutil.rmtree(tmp_path)


def package(name: str, suite: str) -> Path:
    """A package in dist/ for a release."""
    (actual,) = DIST.glob(f"{name}_*~{suite}_*.deb")
    return actual


def older(packed: Path, folder: Path) -> Path:
    """The same package as version 0.0.9, with one more file."""
    content = folder / packed.name.removesuffix(".deb")
    subprocess.run(["dpkg-deb", "--raw-extract", packed, content], check=True)
    control = content / "DEBIAN" / "control"
    version = re.findall(r"^Version: (.*)$", control.read_text(), re.MULTILINE)[0]
    control.write_text(control.read_text().replace(version, "0.0.9-1"))
    (content / "usr" / "share" / "doc" / packed.name.split("_")[0] / "only-in-0.0.9").touch()
    out = folder / f"{packed.name.split('_')[0]}_0.0.9.deb"
    subprocess.run(["dpkg-deb", "-Znone", "--build", content, out], check=True, stdout=subprocess.DEVNULL)
    shutil.rmtree(content)
    return out


def test_the_wheel_leads_to_a_verdict_by_two_commands(machine: Machine) -> None:
    (wheel,) = DIST.glob("*.whl")
    brought = machine.bring(wheel)
    machine.sh(f"{INSTALL} pipx")
    assert machine.sh("command -v gcc cc", 1, 127)[0] != 0
    machine.measures(PIPX_RUN.format(wheel=brought))


def test_pipx_and_uv_install_the_wheel(machine: Machine) -> None:
    (wheel,) = DIST.glob("*.whl")
    brought = machine.bring(wheel)
    machine.sh(f"{INSTALL} pipx")
    for install, remove in (
        (f"pipx install {brought}", "pipx uninstall rtgauge"),
        (f"pipx install uv && uv tool install {brought}", "uv tool uninstall rtgauge"),
    ):
        machine.sh(install)
        machine.measures()
        machine.sh(remove)
        assert machine.sh("command -v rtgauge", 1, 127)[0] != 0


def test_packages_install_measure_upgrade_and_purge(machine: Machine, tmp_path: Path) -> None:
    packages = [package(name, machine.root.name) for name in ("rtgauge", "rtgauge-engine")]
    before = machine.leftovers()
    assert not before
    machine.sh(f"{INSTALL} {machine.bring(*(older(packed, tmp_path) for packed in packages))}")
    for packed in (tmp_path / machine.root.name / "mnt").iterdir():
        packed.unlink()
    assert "only-in-0.0.9" in machine.sh("ls /usr/share/doc/rtgauge")[1]

    machine.sh(f"{INSTALL} {machine.bring(*packages)}")
    assert "only-in-0.0.9" not in machine.sh("ls /usr/share/doc/rtgauge /usr/share/doc/rtgauge-engine")[1]
    assert machine.sh("command -v gcc cc", 1, 127)[0] != 0
    machine.measures()
    assert machine.sh("rtgauge --version")[1].startswith("rtgauge ")
    # minbase leaves no manual pages out in Debian; Ubuntu's minimal roots may.
    listed = machine.sh("dpkg -L rtgauge")[1].splitlines()
    for file in (
        "man/man1/rtgauge.1.gz",
        "man/man1/rtgauge-run.1.gz",
        "bash-completion/completions/rtgauge",
        "zsh/vendor-completions/_rtgauge",
        "fish/vendor_completions.d/rtgauge.fish",
    ):
        assert f"/usr/share/{file}" in listed
    assert (
        "rtgauge"
        in machine.sh("bash -c '. /usr/share/bash-completion/completions/rtgauge && complete -p rtgauge'")[1]
    )

    machine.sh("apt-get purge -y -qq rtgauge rtgauge-engine")
    assert not machine.leftovers()


def test_dkms_builds_the_kernel_modules(machine: Machine) -> None:
    suite = machine.root.name
    machine.sh(f"{INSTALL} dkms gcc {HEADERS.get(suite, 'linux-headers-amd64')}")
    kernels = [kernel for kernel in machine.sh("ls /lib/modules")[1].split() if kernel != os.uname().release]
    assert kernels
    machine.sh(f"{INSTALL} {machine.bring(package('rtgauge-dkms', suite))}")
    for kernel in kernels:
        # A chroot's running kernel is the host's, so DKMS may have built nothing by itself.
        machine.sh(f"dkms install rtgauge/0.1.0 -k {kernel} 2>&1", 3)
        assert f"{kernel}, x86_64: installed" in machine.sh("dkms status rtgauge")[1]
        modules = machine.sh(f"find /lib/modules/{kernel}/updates -name 'rtgauge*.ko*'")[1].split()
        assert len(modules) == 4, modules
        for module in modules:
            assert machine.sh(f"modinfo -F vermagic {module}")[1].startswith(kernel)

    machine.sh("apt-get purge -y -qq rtgauge-dkms")
    assert not machine.leftovers()
