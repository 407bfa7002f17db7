"""The server's certificate, read in a handshake of its own.

libpq compares only `host` with the certificate, never `hostaddr`, and it falls back to the common
name; a server must show both as subject alternative names. A handshake of its own also tells a
TLS problem from a wrong password.
"""

from __future__ import annotations

import ipaddress
import socket
import ssl
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from hooks.core.deadline import Deadline
from hooks.core.errors import EffectError, Misconfigured, Refused, Unavailable
from hooks.effects.ports import CertificateNames, Endpoint
from hooks.effects.postgres.errors import SYSTEM

_SSL_REQUEST = struct.pack("!ii", 8, 80877103)

_UNTRUSTED = "the server's certificate is not signed by the configured CA: check POSTGRES_CA_FILE"

_NOBODY = "nobody listens there, or the network does not lead there: check spec.endpoint"

# OpenSSL's verification results X509_V_ERR_CERT_NOT_YET_VALID and _HAS_EXPIRED.
_DISTRUST = {
    9: "the server's certificate is not valid yet: check the clocks",
    10: "the server's certificate has expired: renew it",
}


def read(endpoint: Endpoint, deadline: Deadline, *, ca_file: Path | None) -> CertificateNames:
    """Shake hands and return the names in the certificate.

    Below verify-ca nothing is verified and the names stay unknown, as empty sets.

    Raises:
        EffectError: Refused, Unavailable, or Misconfigured without a usable CA file.
    """
    verified = endpoint.ssl_mode in {"verify-ca", "verify-full"}
    context = _context(ca_file if verified else None, verified=verified)
    spare = deadline.left() - deadline.timeout(SYSTEM)

    def left() -> float:
        return max(0.001, deadline.left() - spare)

    try:
        with socket.create_connection((endpoint.hostaddr, endpoint.port), left()) as plain:
            _ask_for_tls(plain, left())
            plain.settimeout(left())
            with context.wrap_socket(plain, server_hostname=endpoint.host) as encrypted:
                shown = encrypted.getpeercert() or {}
    except (OSError, ValueError) as error:
        raise _explain(error) from error
    return _names(shown, endpoint)


def _context(ca_file: Path | None, *, verified: bool) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # The names are compared here, one by one; server_hostname is only for SNI.
    context.check_hostname = False
    if not verified:
        context.verify_mode = ssl.CERT_NONE
        return context
    if ca_file is None:
        raise Misconfigured(SYSTEM, "verified TLS needs a CA file in the controller's settings")
    try:
        context.load_verify_locations(ca_file)
    except OSError as error:  # ssl.SSLError is one, for a file without certificates
        raise Misconfigured(SYSTEM, "the controller's CA file cannot be read") from error
    return context


def _ask_for_tls(plain: socket.socket, seconds: float) -> None:
    plain.settimeout(seconds)
    plain.sendall(_SSL_REQUEST)
    answer = plain.recv(1)
    if answer == b"N":
        raise Refused(SYSTEM, "the server does not offer TLS: turn ssl on there")
    if answer != b"S":
        raise Unavailable(SYSTEM, "no PostgreSQL server that is ready answers there")


def _explain(error: OSError | ValueError) -> EffectError:
    kind: type[EffectError]
    match error:
        case ssl.SSLCertVerificationError():
            kind, text = Refused, _DISTRUST.get(error.verify_code, _UNTRUSTED)
        case TimeoutError():
            kind, text = Unavailable, "no answer in time while connecting"
        case ssl.SSLEOFError() | ssl.SSLZeroReturnError():
            kind, text = Unavailable, "the server ended the TLS handshake"
        case ssl.SSLError():
            kind, text = Refused, "the TLS handshake failed"
        case OSError():
            kind, text = Unavailable, _NOBODY
        case _:
            kind, text = Misconfigured, "the host is not a name that TLS can ask for"
    return kind(SYSTEM, text)


def _names(shown: Mapping[str, object], endpoint: Endpoint) -> CertificateNames:
    # Typed by typeshed for every field of a certificate at once.
    alternatives = cast("tuple[tuple[str, str], ...]", shown.get("subjectAltName", ()))
    dns = {value for kind, value in alternatives if kind == "DNS"}
    ips = {_address(value) for kind, value in alternatives if kind == "IP Address"}
    return CertificateNames(
        dns=frozenset(dns),
        ips=frozenset(ip for ip in ips if ip),
        covers_host=any(_matches(name, endpoint.host) for name in dns),
        covers_hostaddr=(address := _address(endpoint.hostaddr)) is not None and address in ips,
    )


def _address(text: str) -> str | None:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return None


def _matches(pattern: str, host: str) -> bool:
    """A wildcard stands for the whole left-most label, and for nothing else."""
    pattern, host = pattern.lower(), host.lower()
    if not pattern.startswith("*."):
        return pattern == host
    label, dot, rest = host.partition(".")
    return bool(label and dot) and rest == pattern[2:]
