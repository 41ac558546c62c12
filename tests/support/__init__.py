"""What the tests of the whole house share: a running house, and people who visit it."""
