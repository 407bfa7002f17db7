"""The bridge that the pods are on, and the fence around them.

Pods reach nothing outside the bridge. Of this machine they reach the API server, the name server
and the ports of 127.0.0.1 that `expose` names. The fence is needed because any program here may
listen on all addresses, the bridge's included.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from tests.e2e.node.places import ADDRESS, API_PORT, BRIDGE, DNS_PORT
from tests.e2e.node.programs import Failed, run

# A fixed address: a bridge without one takes that of its first pod, and changes with it.
_MAC = "02:00:0a:db:58:01"
_FENCE = "database-hooks-node"
# Those of kube-proxy too: it leaves them when it ends.
_TABLES = (f"inet {_FENCE}", "ip kube-proxy", "ip6 kube-proxy")

_RULES = f"""
table inet {_FENCE} {{
  set exposed {{ type inet_service; }}
  chain exposing {{ type nat hook prerouting priority -110;
    iifname "{BRIDGE}" ip daddr {ADDRESS} tcp dport @exposed dnat ip to 127.0.0.1
  }}
  chain exposing_here {{ type nat hook output priority -110;
    ip daddr {ADDRESS} tcp dport @exposed dnat ip to 127.0.0.1
  }}
  chain forward {{ type filter hook forward priority -10; policy accept;
    iifname "{BRIDGE}" oifname != "{BRIDGE}" drop
    iifname != "{BRIDGE}" oifname "{BRIDGE}" drop
  }}
  chain input {{ type filter hook input priority -10; policy accept;
    iifname != "{BRIDGE}" accept
    ct state established,related accept
    ct status dnat accept
    meta l4proto {{ icmp, ipv6-icmp }} accept
    ip daddr {ADDRESS} tcp dport {{ {API_PORT}, {DNS_PORT} }} accept
    ip daddr {ADDRESS} udp dport {DNS_PORT} accept
    drop
  }}
}}
"""


def up() -> None:
    """Make the bridge and the fence."""
    run("ip", "link", "add", BRIDGE, "address", _MAC, "type", "bridge")
    run("ip", "address", "add", f"{ADDRESS}/24", "dev", BRIDGE)
    run("ip", "link", "set", BRIDGE, "up")
    set_sysctl("net.ipv4.ip_forward", "1")
    # From a pod by a Service to a pod on the same bridge: the answer must pass kube-proxy's rules.
    set_sysctl("net.bridge.bridge-nf-call-iptables", "1")
    set_sysctl(f"net.ipv4.conf.{BRIDGE}.route_localnet", "1")
    run("nft", "-f", "-", stdin=_RULES)


def expose(port: int) -> None:
    """Make a port of 127.0.0.1 one of the bridge's address too, for pods and for us."""
    run("nft", "add", "element", "inet", _FENCE, "exposed", f"{{ {port} }}")


def down() -> None:
    """Remove the bridge, what is plugged into it, and the fence. Twice is harmless."""
    for line in run("ip", "-o", "link", "show").splitlines():
        name = line.split(": ")[1].partition("@")[0]
        if f"master {BRIDGE} " in line or name == BRIDGE:
            with suppress(Failed):  # it went with the network namespace of its pod
                run("ip", "link", "delete", name)
    for table in tables():
        if table in _TABLES:
            run("nft", "delete", "table", *table.split())


def tables() -> list[str]:
    """Return the nftables tables of the machine, as `family name`."""
    return [line.removeprefix("table ") for line in run("nft", "list", "tables").splitlines()]


def sysctl(name: str) -> str | None:
    """Return a kernel parameter; None when this kernel has it not."""
    path = _sysctl(name)
    return path.read_text().strip() if path.exists() else None


def set_sysctl(name: str, value: str) -> None:
    """Set a kernel parameter."""
    _sysctl(name).write_text(value)


def _sysctl(name: str) -> Path:
    return Path("/proc/sys", *name.split("."))
