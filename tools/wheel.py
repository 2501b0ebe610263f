# SPDX-License-Identifier: MIT
"""Makes the wheel and the source distribution in a folder: python tools/wheel.py [dist].

The wheel holds the static engines of all architectures and no compiled Python, so that one wheel serves every
Linux. The same commit gives the same bytes (SOURCE_DATE_EPOCH is the commit's time unless it is set).
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENGINES = ("aarch64", "armhf", "loongarch64", "riscv64", "x86_64")
"""As rtgauge.target.engine_path names them."""
PLATFORMS = [
    f"{libc}_{machine}"
    for libc in ("manylinux_2_17", "musllinux_1_1")
    for machine in ("aarch64", "armv7l", "riscv64", "x86_64")
]
"""pip knows these on glibc since 2.17 and on musl; the engines are static, so they need neither.

Loongarch64 is left out: it is only a target, and the wheel's name would be as long as a file's name may be.
"""


def run(*command: str, folder: Path = ROOT) -> str:
    """Standard output of a command; ends the program if it fails."""
    done = subprocess.run(command, cwd=folder, text=True, stdout=subprocess.PIPE, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed with status {done.returncode}")
    return done.stdout


def tag(wheel: Path, dist: Path) -> None:
    """Write `wheel`, which was built for this machine's Python, as one for all into `dist`."""
    with tempfile.TemporaryDirectory() as scratch:
        run(sys.executable, "-m", "wheel", "unpack", "--dest", scratch, str(wheel))
        (content,) = Path(scratch).iterdir()
        programs = content / "rtgauge" / "bin"
        for program in programs.glob("rtgauge-engine-*"):
            if program.name.removeprefix("rtgauge-engine-") not in ENGINES:
                program.unlink()
        own = {"armv7l": "armhf", "armv8l": "armhf"}.get(platform.machine(), platform.machine())
        (programs / "rtgauge-engine").rename(programs / f"rtgauge-engine-{own}")
        for architecture in ENGINES:
            if architecture != own:
                built = ROOT / f"build-{architecture}" / "engine" / "rtgauge-engine"
                if not built.is_file():
                    sys.exit(f"no engine for {architecture}: make cross")
                shutil.copy(built, programs / f"rtgauge-engine-{architecture}")
        # The bytes must not depend on the umask of who cloned and builds.
        for path in content.rglob("*"):
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
        (about,) = content.glob("*.dist-info/WHEEL")
        kept = [line for line in about.read_text().splitlines() if line and not line.startswith("Tag:")]
        about.write_text("\n".join([*kept, *(f"Tag: py3-none-{name}" for name in PLATFORMS)]) + "\n")
        run(sys.executable, "-m", "wheel", "pack", "--dest-dir", str(dist), str(content))


def main() -> None:
    """Build both."""
    dist = Path(sys.argv[1] if len(sys.argv) > 1 else "dist").absolute()
    dist.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("SOURCE_DATE_EPOCH", run("git", "log", "-1", "--format=%ct").strip())
    with tempfile.TemporaryDirectory() as scratch:
        for kind, place in (("--wheel", scratch), ("--sdist", str(dist))):
            run(sys.executable, "-m", "build", "--quiet", "--no-isolation", kind, "--outdir", place, ".")
        tag(next(Path(scratch).glob("*.whl")), dist)


if __name__ == "__main__":
    main()
