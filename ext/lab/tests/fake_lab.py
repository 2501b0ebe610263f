# SPDX-License-Identifier: MIT
"""For tests of the lab: one without a guest, whose image holds nothing and whose QEMU is a script that says
on the console what it is told to.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rtgauge.user_cache import private_folder
from rtgauge_ext.lab import image, paths
from rtgauge_ext.lab.guest import built_in

if TYPE_CHECKING:
    import pytest

# `error:...`: it does not start. `FAKE_PORT`: what listens there answers for the guest, as QEMU's own
# forwarding does.
FAKE = """#!{python}
import os, re, signal, socket, sys, threading, time
words = dict(zip(sys.argv[1:], sys.argv[2:]))
said = os.environ["FAKE_SAYS"]
if said.startswith("error:"):
    sys.exit(said.removeprefix("error:"))
(console,) = (word.partition("path=")[2] for word in sys.argv if word.startswith("file,id=console"))
if os.fork():
    time.sleep(0.3)
    os._exit(0)
os.setsid()
for descriptor in (0, 1, 2):
    os.close(descriptor)
with open(words["-pidfile"], "w") as file:
    file.write(str(os.getpid()))

def copy(one, other):
    try:
        while piece := one.recv(1 << 16):
            other.sendall(piece)
        other.shutdown(socket.SHUT_WR)
    except OSError:
        pass

def answer(listener, port):
    while True:
        here, _ = listener.accept()
        there = socket.create_connection(("127.0.0.1", port))
        for pair in ((here, there), (there, here)):
            threading.Thread(target=copy, args=pair, daemon=True).start()

if "FAKE_PORT" in os.environ:
    listener = socket.create_server(("127.0.0.1", int(re.search("127.0.0.1:([0-9]+)-", words["-netdev"])[1])))
    threading.Thread(target=answer, args=(listener, int(os.environ["FAKE_PORT"])), daemon=True).start()
with open(console, "w") as file:
    file.write(said + "\\n")
time.sleep(0.1 if "ends" in said else 30 if "FAKE_PORT" not in os.environ else 300)
"""


def fake_lab(folder: Path, monkeypatch: pytest.MonkeyPatch, key: Path | None = None) -> dict[str, str | None]:
    """A lab in `folder` with a built guest `debian`, with a key of its own or with `key`; gives the
    environment of commands.
    """
    monkeypatch.setenv("XDG_DATA_HOME", str(folder / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    if key is not None:
        for suffix in ("", ".pub"):
            shutil.copy(f"{key}{suffix}", private_folder(paths.home()) / f"key{suffix}")
    place = image._place(built_in()["debian"])
    place.mkdir(parents=True)
    (place / "about.json").write_text('{"release": "6.12-fake"}')
    programs = folder / "bin"
    programs.mkdir()
    (programs / "qemu-system-x86_64").write_text(FAKE.format(python=sys.executable))
    (programs / "qemu-system-x86_64").chmod(0o755)
    # no trial whether KVM boots it
    requested = (
        f"{os.uname().release} {Path('/proc/sys/kernel/random/boot_id').read_text().strip()} 6.12-fake"
    )
    (paths.cache() / "kvm.json").write_text(json.dumps({requested: False}))
    return {"PATH": f"{programs}:{os.environ['PATH']}", "FAKE_SAYS": ""}


def stock_kernel() -> Path:
    """The folder with Debian's stock kernel and its modules, of which the guest debian was built."""
    actual = [folder for folder in (paths.cache() / "kernels").glob("linux-image-amd64-*") if folder.is_dir()]
    return max(actual, key=lambda folder: folder.stat().st_mtime_ns)
