# SPDX-License-Identifier: MIT
"""The load `copy`, which copies a file again and again, with scp over the loopback, or with dd if there is no
SSH server (Brown & Martin 2010, sec. 3.8).
"""

from __future__ import annotations

import re
from typing import Any, ClassVar

from rtgauge.load.load import Load, LoadContext, PartSpec
from rtgauge.load.network import free_port

MIB = 32
SSHD = "/usr/sbin/sshd"

# At its end, the load removes the folder, the keys first. The next load removes the remains of a killed load.
# The server accepts only a key made for it, and listens only on 127.0.0.1.
PREPARE = """
set -eu
for old in "${TMPDIR:-/tmp}"/rtgauge-copy.*; do
  of=${old##*/rtgauge-copy.}
  [ ! -O "$old" ] || [ -d "/proc/${of%%.*}" ] || rm -rf "$old"
done
folder=$(mktemp -d "${TMPDIR:-/tmp}/rtgauge-copy.$$.XXXXXX")
server=
trap 'kill $server 2>/dev/null || :; rm -f "$folder/key" "$folder/host"; rm -rf "$folder"' EXIT
trap 'exit 143' TERM INT HUP
dd if=/dev/urandom of="$folder/file" bs=1M count="$1" 2>/dev/null
"""
SCP = """
ssh-keygen -q -t ed25519 -N '' -f "$folder/host"
ssh-keygen -q -t ed25519 -N '' -f "$folder/key"
cp "$folder/key.pub" "$folder/allowed"
mkdir -p /run/sshd 2>/dev/null || :
"$3" -D -e -f /dev/null -p "$2" -h "$folder/host" -o ListenAddress=127.0.0.1 \\
  -o UsePAM=no -o StrictModes=no -o PidFile=none \\
  -o AuthorizedKeysFile="$folder/allowed" -o PasswordAuthentication=no \\
  -o "Subsystem=sftp internal-sftp" 2>"$folder/log" &
server=$!
printf '[127.0.0.1]:%s %s\\n' "$2" "$(cut -d' ' -f1,2 "$folder/host.pub")" >"$folder/known"
copy() {
  scp -q -F /dev/null -P "$1" -i "$folder/key" -o BatchMode=yes \\
    -o IdentitiesOnly=yes -o UserKnownHostsFile="$folder/known" \\
    -o ConnectionAttempts=20 "$folder/file" "127.0.0.1:$folder/copy" || { tail -n 3 "$folder/log"; exit 1; }
}
while :; do copy "$2"; echo copied; done
"""
DD = """
while :; do dd if="$folder/file" of="$folder/copy" bs=1M 2>/dev/null; echo copied; done
"""


def copies(log: str) -> dict[str, Any]:
    """Return `copies`, the number of complete copies in the log, and `bytes`, their total size."""
    count = len(re.findall(r"^copied$", log, re.MULTILINE))
    return {"copies": count, "bytes": count * MIB << 20}


class Copy(Load):
    """Copies one file of 32 MiB again and again."""

    name = "copy"
    programs: ClassVar[tuple[str, ...]] = ("dd", "mktemp")
    packages: ClassVar[dict[str, str]] = {"dd": "coreutils", "mktemp": "coreutils"}

    def parts(self, context: LoadContext) -> list[PartSpec]:
        """Return one shell that copies. `wanted` says with which program."""
        target = context.target
        server = target.which("sshd") or target.which(SSHD)
        over_ssh = server is not None and all(target.which(program) for program in ("scp", "ssh-keygen"))
        requested_rates: dict[str, Any] = {
            "bytes": MIB << 20,
            "by": "scp over the loopback" if over_ssh else "dd",
        }
        begin = ["timeout", str(context.bound_s), "sh", "-c"]
        if over_ssh:
            words = [*begin, PREPARE + SCP, "sh", str(MIB), str(free_port(context)), str(server)]
            return [PartSpec("scp", words, requested_rates, ready=("scp", 1), lasting=False, reached=copies)]
        note = (
            "load copy: dd copies the file instead of scp, because sshd, scp or ssh-keygen is not installed; "
            "so it loads neither the network nor the encryption"
        )
        return [
            PartSpec(
                "dd",
                [*begin, PREPARE + DD, "sh", str(MIB)],
                requested_rates,
                ready=("dd", 1),
                lasting=False,
                reached=copies,
                notes=(note,),
            )
        ]
