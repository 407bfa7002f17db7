"""A certificate authority for one run, and certificates that are right or wrong on purpose.

The authority's key never leaves memory, so nothing it signed outlives the process. Keys of the
certificates are files, readable by their owner only.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

if TYPE_CHECKING:
    from collections.abc import Sequence

_FIRST_DAY = datetime(2000, 1, 1, tzinfo=UTC)
_LAST_DAY = datetime(2038, 1, 1, tzinfo=UTC)
_LONG_AGO = datetime(2001, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    """A certificate chain and its key, both PEM."""

    cert: Path
    key: Path


class Authority:
    """A certificate authority whose certificate is `ca.pem` in the given directory."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.ca_file = directory / "ca.pem"
        self._ca = trustme.CA()
        self.ca_file.write_bytes(self._ca.cert_pem.bytes())

    def issue(
        self,
        name: str,
        *,
        dns: Sequence[str] = (),
        ips: Sequence[str] = (),
        common_name: str | None = None,
        expired: bool = False,
    ) -> CertificateFiles:
        """Issue a certificate for exactly these names and write it as `<name>.pem` and `.key`.

        With neither `dns` nor `ips` it has no subjectAltName extension at all, as certificates
        of old servers do.

        Raises:
            ValueError: There is no name of any kind.
        """
        last_day = _LONG_AGO if expired else _LAST_DAY
        if dns or ips:
            leaf = self._ca.issue_cert(
                *dns, *ips, common_name=common_name, not_before=_FIRST_DAY, not_after=last_day
            )
            chain = b"".join(pem.bytes() for pem in leaf.cert_chain_pems)
            key = leaf.private_key_pem.bytes()
        elif common_name:
            chain, key = self._without_alternative_names(common_name, last_day)
        else:
            raise ValueError("a certificate needs a DNS name, an IP address or a common name")
        files = CertificateFiles(self.directory / f"{name}.pem", self.directory / f"{name}.key")
        files.cert.write_bytes(chain)
        files.key.touch(mode=0o600)
        files.key.write_bytes(key)
        return files

    def _without_alternative_names(
        self, common_name: str, last_day: datetime
    ) -> tuple[bytes, bytes]:
        """Sign what trustme does not make: it always adds subjectAltName, empty if need be."""
        ca = x509.load_pem_x509_certificate(self._ca.cert_pem.bytes())
        ca_key = serialization.load_pem_private_key(self._ca.private_key_pem.bytes(), None)
        if not isinstance(ca_key, ec.EllipticCurvePrivateKey):
            raise TypeError("trustme's authority is expected to have an elliptic curve key")
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)]))
            .issuer_name(ca.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(_FIRST_DAY)
            .not_valid_after(last_day)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()),
                critical=False,
            )
            .sign(ca_key, hashes.SHA256())
        )
        return certificate.public_bytes(serialization.Encoding.PEM), key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
