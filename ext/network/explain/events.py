# SPDX-License-Identifier: MIT
"""The kernel's events that show where a packet is."""

from __future__ import annotations

SENT, HANDED = (
    "net_dev_start_xmit",
    frozenset({"netif_rx", "napi_gro_receive_entry", "netif_receive_skb_entry"}),
)
"""The driver gets a packet to send; the driver gives a received packet to the kernel, before RPS."""
NET_EVENTS = (
    "net/net_dev_queue,net/net_dev_start_xmit,net/net_dev_xmit,net/netif_rx,net/napi_gro_receive_entry,"
    "net/netif_receive_skb_entry,net/netif_receive_skb"
)
"""For the engine's option --explain-events, in addition to `default`."""
