# SPDX-License-Identifier: MIT
"""What people type at first leads to this extension."""

from __future__ import annotations

from tests.support.command_line import leads_on

test_a_wrong_guess_leads_on = leads_on({"lat_ctx": "probe switch", "garre2014-micro": "run garre2014-micro"})
