"""Which Router is trusted, and what we show it: one TLS context per kind of trust.

Certificates come as bytes, since they are read from Secrets. OpenSSL takes ours from a file only;
it gets one that lives in memory and has no name.
"""

from __future__ import annotations

import os
import ssl
from dataclasses import dataclass, field
from pathlib import Path

from hooks.effects.ports.druid import Router, Untrusted

SYSTEM = "Druid"

_NO_CA = "the CA holds no certificate in PEM form"


@dataclass(frozen=True, slots=True)
class Trust:
    """What a TLS connection is judged by; Routers with the same share connections.

    Attributes:
        ca_pem: None: what the system trusts.
        client_pem: our chain and its key.
    """

    ca_pem: bytes | None = field(default=None, repr=False)
    client_pem: tuple[bytes, bytes] | None = field(default=None, repr=False)
    verify: bool = True

    @classmethod
    def of(cls, router: Router, ca_file: Path | None) -> Trust | None:
        """Return how a Router is trusted, None without TLS.

        The file is read anew each time, since it may be replaced.
        """
        if not router.url.startswith("https:"):
            return None
        ca_pem = router.ca_pem
        if ca_pem is None and ca_file and router.verify:
            try:
                ca_pem = ca_file.read_bytes()
            except OSError as error:
                raise Untrusted(SYSTEM, "the CA file of the hooks cannot be read") from error
        return cls(ca_pem, router.client_pem, router.verify)

    def context(self) -> ssl.SSLContext:
        """Make the TLS context.

        Raises:
            Untrusted: a certificate or key cannot be used.
        """
        context = self._verifying() if self.verify else _believing()
        if self.client_pem:
            chain, key = self.client_pem
            try:
                _show(context, chain, key)
            except (OSError, ValueError):
                # The cause may quote the key.
                text = "the client certificate or its key cannot be used"
                raise Untrusted(SYSTEM, text) from None
        return context

    def _verifying(self) -> ssl.SSLContext:
        if self.ca_pem is None:
            return ssl.create_default_context()
        if not self.ca_pem:
            # An empty one would make it the system's.
            raise Untrusted(SYSTEM, _NO_CA)
        try:
            return ssl.create_default_context(cadata=self.ca_pem.decode("ascii"))
        except (OSError, ValueError) as error:
            raise Untrusted(SYSTEM, _NO_CA) from error


def _believing() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _show(context: ssl.SSLContext, chain: bytes, key: bytes) -> None:
    descriptor = os.memfd_create("client.pem")
    try:
        with os.fdopen(descriptor, "wb", closefd=False) as file:
            file.write(chain.rstrip(b"\n") + b"\n" + key)
        # Without a password OpenSSL would ask for one on the terminal.
        context.load_cert_chain(f"/proc/self/fd/{descriptor}", password="")
    finally:
        os.close(descriptor)
