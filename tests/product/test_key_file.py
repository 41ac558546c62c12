"""A key file that is damaged stops the start, rather than costing everybody their accounts or breaking later; so does a
folder of records that cannot be written."""

from __future__ import annotations

import pytest

from app import ConfigurationError
from bot.crypto import KEY_FILE
from tests.support.product import ProductFolder, product_here


@pytest.mark.sqlite  # with PostgreSQL the key has to be given
async def test_a_damaged_key_file_stops_the_start_with_a_sentence(home: ProductFolder) -> None:
    data = home.folder / "data"
    data.mkdir(exist_ok=True)
    (data / KEY_FILE).write_text("half a k")
    with pytest.raises(ConfigurationError, match="not an encryption key") as caught:
        async with product_here(home):
            pass
    assert "half a k" not in str(caught.value)


@pytest.mark.sqlite  # with PostgreSQL there is none
async def test_a_folder_that_cannot_be_written_stops_the_start_with_a_sentence(home: ProductFolder) -> None:
    home.variables["DATABASE_URL"] = "sqlite:////sys/countersign/countersign.db"  # nor can root
    with pytest.raises(ConfigurationError, match=r"^/sys/countersign: .*\. What mends it says: app\.py doctor$"):
        async with product_here(home):
            pass
