"""What the tests of the whole product share: a running product, and people who visit it."""
