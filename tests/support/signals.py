# SPDX-License-Identifier: MIT
"""Signal dispositions that tests inherit: `nohup make test &` hands on SIGHUP and SIGINT ignored, and
programs keep an ignored signal ignored.
"""

from __future__ import annotations

import signal

INHERITED = (
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGCHLD,
)


def give_children_defaults() -> None:
    """Make programs that this process starts begin with default dispositions and no blocked signal; the
    process itself ignores what it ignored before.
    """
    for number in INHERITED:
        if signal.getsignal(number) == signal.SIG_IGN:
            # exec resets a handler to the default, but not an ignored signal
            signal.signal(number, (lambda *_: None) if number != signal.SIGCHLD else signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
