"""`python -m adapters.teams.app_package`: writes the package that is uploaded to Teams."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from dotenv import dotenv_values

from adapters.teams.app_package.facts import PackageError, facts_of
from adapters.teams.app_package.package import hearing_everything, manifest_of, package_of

PACKAGE = Path("dist") / "countersign-teams.zip"


def main() -> int:
    """The command. Exits with 2 when something is missing or wrong, having written nothing."""
    parser = argparse.ArgumentParser(prog="python -m adapters.teams.app_package", description=__doc__)
    parser.add_argument("--with-rsc", action="store_true", help="ask for what makes mentions unnecessary in threads")
    parser.add_argument("--version", help="of the Teams app, like 1.0.1; when not given: the project's")
    parser.add_argument("--to", type=Path, default=PACKAGE, help=f"the file to write; when not given: {PACKAGE}")
    asked = parser.parse_args()
    try:
        facts = facts_of(_variables(), asked.version)
    except PackageError as error:
        sys.stderr.writelines(f"teams-package: {problem}\n" for problem in error.problems)
        return 2
    manifest = manifest_of(facts)
    asked.to.parent.mkdir(parents=True, exist_ok=True)
    asked.to.write_bytes(package_of(hearing_everything(manifest) if asked.with_rsc else manifest))
    sys.stdout.write(f"{asked.to}: {facts.name} {facts.version} for the bot {facts.app_id}\n")
    return 0


def _variables() -> dict[str, str]:
    """`.env` and the environment, which wins, as for the server itself."""
    kept = {name: value for name, value in dotenv_values(".env").items() if value is not None}
    return {**kept, **os.environ}


if __name__ == "__main__":
    sys.exit(main())
