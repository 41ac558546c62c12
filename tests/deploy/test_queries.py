"""The queries that docs/deployment.md gives to operators can be asked."""

from __future__ import annotations

import re

import psycopg
import pytest

from tests.deploy.image import ROOT
from tests.support import postgres_cluster

pytestmark = pytest.mark.postgres


def test_each_query_of_the_documentation_has_an_answer() -> None:
    (block,) = re.findall(
        r"^```sql\n(.*?)^```", (ROOT / "docs" / "deployment.md").read_text(), re.MULTILINE | re.DOTALL
    )
    queries = [each for each in re.sub("--.*", "", block).split(";") if each.strip()]
    with psycopg.connect(postgres_cluster.emptied_database()) as connection:
        answers = [connection.execute(each).fetchall() for each in queries]
    assert len(answers) == 5
    assert all(answers)
