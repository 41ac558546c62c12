"""The rules of the policy, for operators: how often each decided and what came of it, what another file would do, and
which rules could be looser or stricter."""
