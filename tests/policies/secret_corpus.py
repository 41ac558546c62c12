"""Secrets as they stand in texts, all made up, and ordinary text of many kinds.

What is between « and » is the secret: no more and no less of the text is to be masked.
"""

from __future__ import annotations

import random
import sysconfig
from collections.abc import Iterator
from pathlib import Path

_RANDOM = random.Random(20)
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"


def made_up(length: int, letters: str = _LETTERS) -> str:
    """Random characters, with a small and a capital letter and a digit among them."""
    while True:
        made = "".join(_RANDOM.choices(letters, k=length))
        if any(each.isdigit() for each in made) and any(each.isalpha() for each in made):
            return made


def _hex(length: int) -> str:
    return made_up(length, "0123456789abcdef")


X20, X24, X32, X36, X40, X64 = (made_up(length) for length in (20, 24, 32, 36, 40, 64))
CAPITALS = made_up(16, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")
ZERO_WIDTH = "\N{ZERO WIDTH SPACE}"
JOINER = "\N{ZERO WIDTH JOINER}"
WIDE = "".join(chr(ord(each) + 0xFEE0) for each in "password")

FORMS: dict[str, tuple[str, ...]] = {
    "fields": (
        '{"pass": "«hunter2x»"}',
        "pass=«hunter2x»",
        "pass: «Sommer2026»",
        '{"user": "ana", "passwd": "«correct horse»"}',
        "pw=«hunter2x»",
        "smtp_pass = «hunter2x»",
        "mail.pass: «hunter2x»",
        '{"dbPass": "«hunter2x»"}',
        "Passwort: «Sommer2026»",
        "Kennwort: «Sommer2026»",
        "contraseña: «verano2026»",
        "mot de passe: «ete2026xy»",
        "passwords: «hunter2x»",
        "CLIENT_SECRET=«abcdefgh9»",
        '{"apikey": "«abcdefgh12»"}',
        f"APP_KEY=«{X32}»",
        f'{{"signing_key": "«{X24}»"}}',
        f"STRIPE_KEY=«{X32}»",
        f'{{"sessionId": "«{X24}»"}}',
        f'{{"credential": "«{X20}»"}}',
        f"webhook_secret: «{X24}»",
        f"X-Vault-Token: «{X24}»",
        f"PRIVATE-TOKEN: «{X20}»",
        f"AWS_SESSION_TOKEN=«{X64}{X64}»",
    ),
    "pairs": (
        '{"name": "DB_PASSWORD", "value": "«hunter2x»"}',
        '[{"name":"API_TOKEN","value":"«abc123def456»"}]',
        '{"value": "«hunter2x»", "name": "DB_PASSWORD"}',
        '{"key": "client_secret", "value": "«abcdefgh9»", "type": "text"}',
        "- name: DB_PASSWORD\n  value: «hunter2x»",
        'env:\n  - name: API_TOKEN\n    value: "«abc123def456»"',
        "ParameterKey=DbPassword,ParameterValue=«hunter2x»",
        "Name=DB_PASSWORD,Value=«hunter2x»",
        "| password | «hunter2x» |",
        "| **Password** | `«hunter2x»` |",
    ),
    "XML": (
        "<password>«hunter2x»</password>",
        "<db:password>«hunter2x»</db:password>",
        '<password encrypted="false">«hunter2x»</password>',
        "<clientSecret>«abcdefgh9»</clientSecret>",
        "<password><![CDATA[«hunter2x»]]></password>",
        '<add key="DbPassword" value="«hunter2x»" />',
        '<property name="javax.persistence.jdbc.password" value="«hunter2x»"/>',
        "<key>Password</key><string>«hunter2x»</string>",
        f"<server><id>x</id><apiToken>«{X24}»</apiToken></server>",
        '<user name="ana" password="«hunter2x»"/>',
    ),
    "YAML": (
        "password: |\n  «hunter2x»\nuser: ana",
        "db:\n  password: >-\n    «hunter2x»\n  user: ana",
        "secret: |-\n  «one line\n  and another»\nnext: 1",
        'password: "«hunter 2x»"',
        "password: !!str «hunter2x»",
        f"stringData:\n  token: «{X24}»",
        "- password: «hunter2x»",
    ),
    "cookies": (
        f"Cookie: session=«{X24}»; theme=dark",
        f"Cookie: theme=dark; sid=«{X20}»",
        f"Set-Cookie: auth=«{X32}»; Path=/; HttpOnly",
        f'{{"Cookie": "JSESSIONID=«{X32}»"}}',
        f"curl -H 'Cookie: csrftoken=«{X32}»' https://x.example",
        "set-cookie: connect.sid=«s%3AaB3dE5gH7jK9mN1pQ3rS5t»; Path=/",
    ),
    "files": (
        "machine api.example login ana password «hunter2x»",
        "machine api.example\n  login ana\n  password «hunter2x»",
        "default login anonymous password «hunter2x»",
        "db.example:5432:app:ana:«hunter2x»",
        f"//registry.npmjs.org/:_authToken=«{X36}»",
        "//registry.example/:_password=«aHVudGVyMng1»",
        '{"auths": {"docker.example": {"auth": "«YW5hOmh1bnRlcjJ4»"}}}',
        "requirepass «hunter2x»",
        f"ana:«$apr1${made_up(8)}${made_up(22)}»",
        f"root:«$6${made_up(16)}${made_up(86)}»:19000:0:99999:7:::",
        f"aws_secret_access_key = «{X40}»",
        f"PrivateKey = «{made_up(43)}=»",
        f"https://ana:«{X20}»@git.example",
    ),
    "commands": (
        "curl -u ana:«hunter2x» https://x.example",
        "curl --user 'ana:«hunter2x»' https://x.example",
        "curl -sS -u 'ana:«hunter2x»' https://x.example",
        "mysql -u root -p«hunter2x» shop",
        "mysqldump -uroot -p«hunter2x» shop > x.sql",
        "sshpass -p «hunter2x» ssh ana@host",
        "docker login -u ana -p «hunter2x» registry.example",
        "redis-cli -h cache -a «hunter2x» ping",
        "PGPASSWORD=«hunter2x» psql -h db",
        "wget --password=«hunter2x» https://x.example",
        "tool --token «abc123def456ghi7» run",
        "export DB_PASS=«hunter2x»",
        "ALTER USER ana WITH PASSWORD '«hunter2x»';",
        "CREATE USER 'ana'@'%' IDENTIFIED BY '«hunter2x»';",
        "curl -H 'Authorization: Bearer «abcdef1234567890»' https://x.example",
        "curl -H 'Authorization: token «abcdef1234567890»' https://x.example",
        "setx API_KEY «abcdefgh12»",
    ),
    "addresses": (
        f"https://x.example/?token=«{X24}»",
        f"https://x.example/cb?code=«{X32}»&state=1",
        f"https://x.example/?key=«{X32}»",
        f"https://«{X40}»@github.com/acme/shop.git",
        f"https://x-access-token:«{X40}»@github.com/acme/shop.git",
        "https://ana:«hunter2x»@x.example/",
        "amqp://ana:«hunter2x»@mq:5672/",
        f"https://discord.com/api/webhooks/123456789012345678/«{X64}»",
        f"https://s3.example/x?X-Amz-Signature=«{_hex(64)}»",
        f"https://api.telegram.org/bot«123456789:AA{made_up(33)}»/getMe",
        f"https://x.example/?access_token=«{X24}»#top",
    ),
    "services": (
        f"«hvs.{made_up(24)}»",
        f"VAULT «hvs.{made_up(95)}»",
        f"«SG.{made_up(22)}.{made_up(43)}»",
        f"«hf_{made_up(34)}»",
        f"«MTIzNDU2Nzg5MDEyMzQ1Njc4.{made_up(6)}.{made_up(27)}»",
        f"«123456789:AA{made_up(33)}»",
        f"«xoxb-123456789012-123456789012-{X24}»",
        f"«glsa_{X32}_{_hex(8)}»",
        f"«dop_v1_{_hex(64)}»",
        f"«shpat_{_hex(32)}»",
        f"«npm_{X36}»",
        f"«PMAK-{_hex(24)}-{_hex(34)}»",
        f"«lin_api_{X40}»",
        f"«ntn_12345678901{made_up(35)}»",
        f"«gsk_{made_up(52)}»",
        f"«figd_{X40}»",
        f"«AKIA{CAPITALS}»",
        f"«pul-{_hex(40)}»",
        f"«dckr_pat_{made_up(27)}»",
        f"«sntryu_{_hex(64)}»",
        f"«rubygems_{_hex(48)}»",
        f"«SK{_hex(32)}»",
        f"«dapi{_hex(32)}»",
        f"«sk-ant-api03-{made_up(93)}AA»",
        f"Found «hf_{made_up(34)}», and more.",
        f"(«dop_v1_{_hex(64)}»)",
    ),
    "prose": (
        "My password is «hunter2x».",
        "the password for the database is: «hunter2x»",
        "**Password:** «hunter2x»",
        "Username: ana / Password: «hunter2x»",
        'The password is "«hunter2x»"',
        "Das Passwort ist «Sommer2026»",
        "user ana, password «hunter2x»",
    ),
    "disguised": (
        f"pass{ZERO_WIDTH}word=«hunter2x»",
        f"password=«hunt{ZERO_WIDTH}er2x»",
        f"«ghp_{made_up(18)}{JOINER}{made_up(18)}»",
        f"«g\N{SOFT HYPHEN}hp_{X36}»",
        f"{WIDE}=«hunter2x»",
        r'{"\u0070assword": "«hunter2x»"}',
        r'{"password": "«\u0068unter2x»"}',
        r'{"log": "{\"pass\": \"«hunter2x»\"}"}',
        r'{"log": "<password>«hunter2x»<\/password>"}',
        "&quot;password&quot;: &quot;«hunter2x»&quot;",
        "&lt;password&gt;«hunter2x»&lt;/password&gt;",
        "q=password%3D«hunter2x»%26x%3D1",
        "password&#61;«hunter2x»",
        f"token%3A%20«{X24}»",
        rf'{{"out": "first\n«ghp_{X36}»\nlast"}}',
        r"\x70assword=«hunter2x»",
    ),
}


def ordinary() -> Iterator[tuple[str, str]]:
    """Ordinary texts, by kind: prose and code of what is installed here, and lists of ids, hashes and dates."""
    packages = Path(sysconfig.get_path("purelib"))
    standard = Path(sysconfig.get_path("stdlib"))
    here = Path(__file__).parents[2]
    yield "documentation of packages", _joined(sorted(packages.glob("*.dist-info/METADATA")), 400_000)
    yield "our own documentation", _joined(sorted(here.glob("docs/*.md")), 200_000)
    yield "code", _joined(sorted(standard.glob("*.py")), 400_000)
    yield "logs", "\n".join(_logs())
    yield "ids and hashes", "\n".join(_ids())
    yield "a calendar", "\n".join(_calendar())


def _joined(paths: list[Path], most: int) -> str:
    return "\n".join(path.read_text("utf-8", "replace")[:20_000] for path in paths)[:most]


def _logs() -> Iterator[str]:
    for number in range(500):
        yield (
            f"2026-11-22T08:15:{number % 60:02}.123Z INFO request id=req_{_hex(16)} method=GET path=/v1/users/{number} "
            f"status=200 duration_ms={number} trace_id={_hex(32)} span_id={_hex(16)} user=ana@corp.example"
        )


def _ids() -> Iterator[str]:
    for _ in range(300):
        yield f"commit {_hex(40)}"
        yield f"{_hex(8)}-{_hex(4)}-4{_hex(3)}-a{_hex(3)}-{_hex(12)}"
        yield f"sha256:{_hex(64)} etag={_hex(32)} order_{made_up(14)} 01{made_up(24, '0123456789ABCDEFGHJKMNPQ')}"
        yield f"https://x.example/items/{made_up(11)}?page=2&cursor={made_up(8)}"


def _calendar() -> Iterator[str]:
    for number in range(400):
        yield (
            f'{{"id": "evt_{number}", "title": "Meeting {number} with the team", "start": "2026-11-22T09:00:00+01:00", '
            f'"calendar_id": "primary", "attendees": ["ana@corp.example", "bo@corp.example"], "nextPageToken": '
            f'"CiAKGjBpNDd2Nmp2Zml2cXRwYjBpOXA{number}", "sync_key": null, "location": "Room {number}"}}'
        )
