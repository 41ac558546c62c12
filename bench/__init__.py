"""How fast the product is, beside a bare agent measured in the same run. `python -m bench` prints the table."""
