"""What stands where a secret would, and is none: words, references to elsewhere, masks."""

from __future__ import annotations

from policies.patterns import compiled

_WORDS = """
    none null nil true false yes no ok on off empty string str text bytes int any object undefined optional required
    missing invalid incorrect correct wrong expired expires changed reset unknown unset set hidden redacted masked
    protected encrypted hashed enabled disabled updated failed weak strong length min max the a an is was must should
    input prompt example placeholder unchanged n/a not and or to of for in
"""
_HARMLESS = frozenset(_WORDS.encode().split())
_TEMPLATE = compiled(
    r"\$\{.*\}|\$\(.*\)?|\$[A-Z_][A-Z0-9_]*|%[A-Za-z_]+%|\{+[^{}]*\}+|<[A-Za-z][^<>]*>|\.*|…|[*•xX#]+|https?://.*"
    r"|\[[A-Za-z][A-Za-z0-9 :_-]*\]"
)
_BEGINS_TEMPLATE = frozenset(byte for begins in ("$%{<.*xX#hH[", "…", "•") for byte in begins.encode())
"""How a template can begin: looked at first, since most values are none."""
_NAME_OF_ONE = "[A-Za-z_]*(?:passw|secret|token|key|pwd)[A-Za-z_]*"
_REFERENCE = compiled(
    r"(?:self|this|os|process|env|config|settings|options|args|props|data|request|req|secrets|var|local)\.[\w.\[\]]*"
    rf"|[\w.]+\.{_NAME_OF_ONE}|[A-Za-z]*_{_NAME_OF_ONE}|(?:passw|secret|token|key|pwd)[A-Za-z]*_[A-Za-z_]*"
)


def is_placeholder(value: bytes) -> bool:
    """Whether a value (UTF-8) is no secret although it stands where one would."""
    bare = _bare(value)
    if bare.lower() in _HARMLESS or not bare:
        return True
    return bare[0] in _BEGINS_TEMPLATE and _TEMPLATE.fullmatch(bare) is not None


def is_reference(value: bytes) -> bool:
    """Whether a value without quotes is, in code, the name of where the secret is (`settings.api_key`)."""
    return (b"." in value or b"_" in value) and _REFERENCE.fullmatch(_bare(value)) is not None


def _bare(value: bytes) -> bytes:
    return value.strip().rstrip(b".:!?")
