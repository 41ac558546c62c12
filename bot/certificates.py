"""Whether a connection failed since the other side's certificate was not trusted: libraries wrap that several times."""

from __future__ import annotations

import ssl


def untrusted_certificate(error: BaseException) -> str:
    """Why a certificate was not taken, in OpenSSL's words (`self-signed certificate`); empty: that was not what failed.

    Args:
        error: what a client raised, with what it was raised from.
    """
    seen, left = set[int](), [error]
    while left:
        each = left.pop()
        if isinstance(each, ssl.SSLCertVerificationError) and (why := getattr(each, "verify_message", "")):
            return str(why)  # aiohttp's own of that type has none, and is raised from one that has
        seen.add(id(each))
        left += [one for one in (each.__cause__, each.__context__) if one is not None and id(one) not in seen]
    return ""
