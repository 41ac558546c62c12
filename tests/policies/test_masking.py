"""What is masked, and what is left alone."""

from __future__ import annotations

import json

import pytest

from policies.masking import Masker
from policies.secret_shapes import EMAILS, GUIDS, TOKENS, SecretPattern
from tests.support.cpu import at_most_cpu

LONG = "aB3dE5gH7jK9mN1pQ3rS5tU7vW9xY1zA3bC5dE7f"  # 40 characters
KEY_LINES = "MIICXAIBAAKBgQC7vJ3kQ0e2\n4Zr9sWq1mT8yUa5nLd0Xc6Hb\nP2vE7gKt3RzYo1NfJi4="
KEY = f"-----BEGIN RSA PRIVATE KEY-----\n{KEY_LINES}\n-----END RSA PRIVATE KEY-----"
OPEN_KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA\nBG5vbmUAAAAEbm9uZQAAAA"
JWT = f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.{LONG}"
SHAPES = [
    ("aws key", "AKIA" + "IOSFODNN7EXAMPL3"),
    ("aws key", "ASIA" + "IOSFODNN7EXAMPL3"),
    ("github token", "ghp_" + LONG),
    ("github token", "ghs_" + LONG),
    ("github token", "github_pat_" + LONG + "_" + LONG),
    ("gitlab token", "glpat-" + LONG[:20]),
    ("slack token", "xoxb-1234567890-" + LONG),
    ("slack token", "xoxe.xoxp-1-" + LONG),
    ("slack token", "xapp-1-A012345-67890-" + LONG),
    ("google key", "AIza" + LONG[:35]),
    ("google token", "ya29." + LONG),
    ("google token", "1//0" + LONG),
    ("google secret", "GOCSPX-" + LONG[:28]),
    ("azure secret", "abc8Q~" + LONG[:34]),
    ("azure token", LONG + LONG[:36] + "AZDO" + "abcd"),
    ("api key", "sk-" + LONG),
    ("api key", "sk-proj-" + LONG),
    ("api key", "sk-ant-api03-" + LONG),
    ("stripe key", "sk_live_" + LONG[:24]),
    ("stripe key", "rk_test_" + LONG[:24]),
    ("stripe secret", "whsec_" + LONG[:32]),
    ("npm token", "npm_" + LONG[:36]),
    ("pypi token", "pypi-AgEIcHlwaS5vcmc" + LONG),
    ("jwt", JWT),
    ("jwt", f"eyJhbGciOiJSU0EtT0FFUCJ9.{LONG}.{LONG}.{LONG}.{LONG}"),
    ("private key", KEY),
    ("private key", KEY.replace("RSA ", "")),
    ("private key", OPEN_KEY),
]
SURROUNDINGS = ["{}", "a {} b", "({})", "x={};", "<{}>", "key: {}\nnext", "{} {}", '{{"note": "{}"}}', "a,{},b", "`{}`"]


@pytest.mark.parametrize("surrounding", SURROUNDINGS)
@pytest.mark.parametrize(("kind", "secret"), SHAPES, ids=[s[0] + s[1][:8] for s in SHAPES])
def test_a_secret_that_gives_itself_away_is_masked_wherever_it_stands(kind: str, secret: str, surrounding: str) -> None:
    masked = Masker().mask(surrounding.replace("{}", secret))
    assert masked == surrounding.replace("{}", f"[secret: {kind}]")


@pytest.mark.parametrize(("kind", "secret"), SHAPES, ids=[s[0] + s[1][:8] for s in SHAPES])
def test_a_secret_in_json_is_masked_and_json_stays_json(kind: str, secret: str) -> None:
    for depth in (1, 2, 3):
        text = f"first line\n{secret}\nlast"
        for _ in range(depth):
            text = json.dumps({"out": text})
        masked = Masker().mask(text)
        for _ in range(depth):
            masked = json.loads(masked)["out"]
        assert masked == f"first line\n[secret: {kind}]\nlast"


FIELDS = [
    ("password=hunter2", "password=[secret: password]"),
    ("PASSWORD = hunter2\nuser=ana", "PASSWORD = [secret: password]\nuser=ana"),
    ("DB_PASSWORD=hunter2 make run", "DB_PASSWORD=[secret: password] make run"),
    ("DB_PASS=hunter2", "DB_PASS=[secret: password]"),
    ("spring.datasource.password=hunter2", "spring.datasource.password=[secret: password]"),
    ("password: hunter2", "password: [secret: password]"),
    ("password: correcthorse", "password: [secret: password]"),
    ("db:\n  - password: correcthorse # ours\n", "db:\n  - password: [secret: password] # ours\n"),
    ("password: 'correct horse'", "password: '[secret: password]'"),
    ("password: 12345", "password: [secret: password]"),
    ("Your new password: x7Gh2k9", "Your new password: [secret: password]"),
    ('{"password": "hunter2"}', '{"password": "[secret: password]"}'),
    ('{"password": "a\\"b\\\\", "c": 1}', '{"password": "[secret: password]", "c": 1}'),
    ('{"password" : 123456}', '{"password" : "[secret: password]"}'),
    ('{"adminPassword":"hunter2"}', '{"adminPassword":"[secret: password]"}'),
    ('{"password": ",}]:"}', '{"password": "[secret: password]"}'),
    ("{'password': 'hunter2'}", "{'password': '[secret: password]'}"),
    ('password="hunter2" user="ana"', 'password="[secret: password]" user="ana"'),
    ("'password' => 'hunter2'", "'password' => '[secret: password]'"),
    ('password := "hunter2"', 'password := "[secret: password]"'),
    ('cfg["password"] = "hunter2"', 'cfg["password"] = "[secret: password]"'),
    ('{"password": "my_secret_key"}', '{"password": "[secret: password]"}'),
    ('{"password": "[hunter2"}', '{"password": "[secret: password]"}'),
    ('{"password": "<hunter2"}', '{"password": "[secret: password]"}'),
    ('{"password": "{hunter2"}', '{"password": "[secret: password]"}'),
    ("passphrase=hunter2", "passphrase=[secret: password]"),
    ("--password hunter2 --user ana", "--password [secret: password] --user ana"),
    ("--db-password='hun ter'", "--db-password='[secret: password]'"),
    ("tool --client-secret abc123defg", "tool --client-secret [secret: secret]"),
    ("client_secret=abcdefgh", "client_secret=[secret: secret]"),
    ("code=abc&code_verifier=dBjftJeZ4CVP-mB92K27uhbUJU1p", "code=abc&code_verifier=[secret: secret]"),
    ('{"codeVerifier": "dBjftJeZ4CVP-mB92K27uhbUJU1p"}', '{"codeVerifier": "[secret: secret]"}'),
    ("api_key=abcdefgh1", "api_key=[secret: key]"),
    ("apiKey: abcdefgh1", "apiKey: [secret: key]"),
    ("curl -H 'X-Api-Key: abcdefgh1'", "curl -H 'X-Api-Key: [secret: key]'"),
    (f"aws_secret_access_key = {LONG}", "aws_secret_access_key = [secret: key]"),
    (f'{{"SecretAccessKey": "{LONG}"}}', '{"SecretAccessKey": "[secret: key]"}'),
    ("access_token=abcdefgh1234&x=1", "access_token=[secret: token]&x=1"),
    ("https://x.example/?token=abcdefgh1234#top", "https://x.example/?token=[secret: token]#top"),
    ('{"refresh_token": "abcdefghijklmnop"}', '{"refresh_token": "[secret: token]"}'),
    ("HF_TOKEN=abcdefghijklmnop", "HF_TOKEN=[secret: token]"),
    ("token\\u003dabcdefgh1234\\u0026x", "token\\u003d[secret: token]\\u0026x"),
    ("postgres://app:hunter2@db/x", "postgres://app:[secret: password]@db/x"),
    ("mongodb+srv://app:p@ss:w@db.example/x", "mongodb+srv://app:[secret: password]@db.example/x"),
    ("redis://:hunter2@cache:6379", "redis://:[secret: password]@cache:6379"),
    (
        "Server=tcp:x;User Id=sa;Password=My5ecret!;Encrypt=true",
        "Server=tcp:x;User Id=sa;Password=[secret: password];Encrypt=true",
    ),
    (
        "DefaultEndpointsProtocol=https;AccountKey=abcd1234/x+y==;EndpointSuffix=core",
        "DefaultEndpointsProtocol=https;AccountKey=[secret: key];EndpointSuffix=core",
    ),
    (
        "Endpoint=sb://x/;SharedAccessKeyName=Root;SharedAccessKey=abcd1234=",
        "Endpoint=sb://x/;SharedAccessKeyName=Root;SharedAccessKey=[secret: key]",
    ),
    ("Authorization: Bearer abcdefgh", "Authorization: Bearer [secret: authorization]"),
    ('{"Authorization": "Basic dXNlcjpwYXNz"}', '{"Authorization": "Basic [secret: authorization]"}'),
    (f"sent bearer {LONG} along", "sent bearer [secret: bearer token] along"),
    ("https://hooks.slack.com/services/T0/B0/" + LONG, "https://hooks.slack.com/services/[secret: slack webhook]"),
    (f"https://x.blob/y?sv=1&sig={LONG}%3D&se=2", "https://x.blob/y?sv=1&sig=[secret: azure signature]&se=2"),
    ('{"log": "password=hunter2\\nnext"}', '{"log": "password=[secret: password]\\nnext"}'),
    ('{"log": "{\\"password\\": \\"hunter2\\"}"}', '{"log": "{\\"password\\": \\"[secret: password]\\"}"}'),
    ('{"log": "{\\"password\\": 123456}"}', '{"log": "{\\"password\\": \\"[secret: password]\\"}"}'),
    ('{"log": "cut off {\\"password\\": \\"hunt"}', '{"log": "cut off {\\"password\\": \\"[secret: password]"}'),
    ('{"log": "password: \'hunter", "x": "it\'s"}', '{"log": "password: \'[secret: password]", "x": "it\'s"}'),
    ('cut off {"password": "hunt', 'cut off {"password": "[secret: password]'),
    ("password=" + "x1" * 400 + " next", "password=[secret: password] next"),
]


@pytest.mark.parametrize(("text", "masked"), FIELDS, ids=[f[0][:50] for f in FIELDS])
def test_the_value_of_a_field_that_is_called_like_a_secret_is_masked_and_its_name_stays(text: str, masked: str) -> None:
    assert Masker().mask(text) == masked


HARMLESS = """
Please send the weekly report to everybody by Friday.
Your password must be at least 8 characters long.
Password: required
Password: incorrect.
password=None
password = None
password: str
password=
password = getpass()
password = os.environ["DB_PASSWORD"]
password: ${DB_PASSWORD}
PASSWORD=$DB_PASSWORD
password={{ vault.db }}
password=<your password>
{"password": "<your password>", "pwd": "${DB_PASSWORD}", "secret": "[REDACTED]", "passphrase": "{{ vault }}"}
password=********
password: self.password
api_key=settings.api_key
api_key=api_key_from_env
{"password": null, "token": true, "secret": ""}
{"properties": {"password": {"type": "string"}}}
{"nextPageToken": "CiAKGjBpNDd2Nmp2Zml2cXRwYjBpOXA"}
{"page_token": "CiAKGjBpNDd2Nmp2Zml2cXRwYjBpOXA"}
{"max_tokens": 4096, "total_tokens": 12345678}
{"message": "enter password:", "name": "somebody else"}
max_tokens=4096
token: 5
the access token expires in one hour
reset your password: https://portal.example/reset?id=12345678
https://portal.example/reset-password?user=ana
use --password to log in
PWD=/home/ana/project1
The secret: patience
the bearer of this letter
bearer token-based-authentication-is-used-here
a task-force and a sk-circle-loader-animation-for-the-page
sk-learn-classifier-with-many-words-in-its-name
https://example.com:8443/path/to@somewhere
mailto:ana@corp.example
git@github.com:owner/repository.git
2026-11-21T08:15:30.123456Z
commit 3f786850e387550fdab836ed7e6dc881de23001b
sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0bb0d0d1a2b3c4d5e6f708
123e4567-e89b-12d3-a456-426614174000
data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4
ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQC7vbqajDhA ana@laptop
-----BEGIN CERTIFICATE-----
-----BEGIN PUBLIC KEY-----
the header -----BEGIN PRIVATE KEY----- begins such a file
AKIAshort and ghp_short and xoxb- and eyJhbGciOiJub25lIn0
ASIA is a continent, AKIAI is not
glpat is a prefix, npm_config_registry=https://registry.example/
npm_package_version=1.2.3
sig=short
version = "1.2.3-rc.4+build.20261121"
if password == confirm_password:
accesskey="s"
Ана написала пароль на доске
"""


@pytest.mark.parametrize("line", [line for line in HARMLESS.splitlines() if line])
def test_what_only_looks_like_a_secret_stays(line: str) -> None:
    assert Masker().mask(line) == line


def test_all_of_it_together_stays_too() -> None:
    assert Masker().mask(HARMLESS) == HARMLESS


VALUE = 'p"q\\s t/ü1'


def test_values_of_this_process_are_masked_in_every_spelling() -> None:
    masker = Masker(values=[VALUE])
    for written in (VALUE, json.dumps({"a": VALUE}), json.dumps({"a": VALUE}, ensure_ascii=False)):
        assert VALUE not in masker.mask(written)
        assert "[secret: known value]" in masker.mask(written)
    assert json.loads(masker.mask(json.dumps({"a": VALUE}))) == {"a": "[secret: known value]"}
    assert masker.mask("https://x/?p=p%22q%5Cs%20t%2F%C3%BC1") == "https://x/?p=[secret: known value]"


@pytest.mark.parametrize(
    "written",
    [
        "\x1b[32m{}\x1b[0m",
        "abc\x1b[1;31m{}",
        "\x1b(B\x1b[m{}",
        "abc\x1b\x1b[1m{}",
        "\x9b32m{}",
        r"\u001b[32m{}\u001b[0m",
        r"'\x1b[32m{}\x1b[0m'",
        r"echo -e '\033[32m{}'",
        r"\e[32m{}",
        "^[[32m{}",
        r"'\U000e0001{}'",
        r"\a{}",
        "%u000a{}",
    ],
)
@pytest.mark.parametrize("token", ["AKIAQ4ZTR7MKPWN2LX5V", "sk-proj-aB3dE5gH7jK9mN1pQ3rS5tU7vW9xY1zA3bC5dE7f"])
def test_a_token_that_is_coloured_for_a_terminal_or_stands_behind_an_escape_is_masked(written: str, token: str) -> None:
    assert token not in Masker().mask(written.format(token))
    assert token not in str(Masker().for_card(written.format(token)).value)


def test_a_token_is_found_where_a_part_of_it_is_coloured() -> None:
    assert Masker().mask("found AKIA\x1b[01;31mQ4ZTR7MK\x1b[0mPWN2LX5V here") == "found [secret: aws key] here"


def test_a_token_in_utf_16_that_was_taken_for_utf_8_is_masked() -> None:
    read = "key AKIAQ4ZTR7MKPWN2LX5V".encode("utf-16-le").decode()
    for masked in (Masker().mask(read), json.loads(Masker().mask(json.dumps(read)))):
        assert masked == "k\0e\0y\0 \0[secret: aws key]\0"


def test_a_value_behind_an_escape_leaves_no_half_escape() -> None:
    text = json.dumps({"a": "x\nopqrstu"})
    assert json.loads(Masker(values=["nopqrstu"]).mask(text)) == {"a": "x[secret: known value]"}


def test_a_short_value_is_too_common_to_be_masked() -> None:
    assert Masker(values=["secret", "        "]).mask("a secret        thing") == "a secret        thing"


def test_a_known_number_behind_a_quoted_name_stays_json() -> None:
    assert Masker(values=["12345678"]).mask('{"id": 12345678}') == '{"id": "[secret: known value]"}'


def test_guids_and_addresses_are_masked_where_the_operator_wants_it() -> None:
    text = "ana@corp.example has 123e4567-e89b-12d3-a456-426614174000"
    masked = Masker(patterns=(*TOKENS, GUIDS, EMAILS)).mask(text)
    assert masked == "[secret: e-mail address] has [secret: guid]"


def test_patterns_of_the_operator_are_masked_too() -> None:
    badge = SecretPattern("badge number", r"badge ([A-Z]{2}-[0-9]{4})")
    assert Masker(patterns=(badge,)).mask("his badge AB-1234.") == "his badge [secret: badge number]."


@pytest.mark.parametrize(
    ("kind", "regex", "says"),
    [
        ("x", "(", r"missing \)"),
        ("x", "a*", "fits the empty text"),
        ("X!", "a", "lower-case words"),
        ("", "a", "lower-case words"),
        ("x", "(?<=a)b", "invalid"),
    ],
)
def test_a_pattern_that_makes_no_sense_is_refused(kind: str, regex: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        SecretPattern(kind, regex)


@pytest.mark.parametrize(
    "text",
    ["Cookie: " + "a" * 50_000, f"-----BEGIN PRIVATE KEY-----\n{'MII' + chr(92) * 50_000}\n-----END PRIVATE KEY-----"],
    ids=["a cookie without a value", "a key of backslashes"],
)
def test_rule_13_looking_is_linear(text: str) -> None:
    masker = Masker()
    masker.mask("Cookie: a=b")  # the rules are read at the first use
    with at_most_cpu(0.3):  # half a minute before, now 6 ms
        masker.mask(text)


def test_of_a_cookie_that_is_set_the_first_value_is_masked_whatever_stands_before_it() -> None:
    assert LONG not in Masker().mask(f"Set-Cookie: Secure; sid={LONG}; Path=/")


@pytest.mark.parametrize("before", ["", "x"])
def test_a_long_value_is_masked_to_its_end_wherever_its_escapes_stand(before: str) -> None:
    r"""Rule 7: the first look at a value may end within an escape (`\-`), and the rest of it is a secret too."""
    value = before + r"\-" * 200
    assert Masker().mask(f"password={value} and more") == "password=[secret: password] and more"
