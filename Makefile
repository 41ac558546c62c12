# Countersign. Needs only Python 3.11 or newer: what else is missing is brought into this folder (.uv, .venv).
.DEFAULT_GOAL := help
.PHONY: help run test test-fast test-postgres test-long test-servers coverage lint translations pictures bench eval teams-package

# uv from PATH, else our own. Its absence from both is what makes the rule for .uv/bin/uv run.
UV := $(or $(shell command -v uv 2>/dev/null),.uv/bin/uv)
IN_VENV := .venv/bin/python
BRING_OUR_OWN_UV := $(if $(filter .uv/bin/uv,$(UV)),.uv/bin/uv)

# The first Python that is new enough. Looked for only when something has to be installed.
PYTHON = $(shell for name in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	found=$$(command -v $$name) && "$$found" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && \
	echo "$$found" && break; done)

# Never another Python than the machine's, unless it has none that will do. An existing .venv keeps its own.
SYNC = $(if $(PYTHON),UV_PYTHON_DOWNLOADS=never) $(UV) sync --frozen --compile-bytecode $(if $(wildcard $(IN_VENV)),,$(addprefix --python ,$(PYTHON)))

# Trust what the machine trusts, where it has a list (a company's proxy may sign with its own authority).
export UV_SYSTEM_CERTS ?= $(if $(wildcard /etc/ssl/certs/*.pem /etc/ssl/certs/*.crt /etc/pki/tls/certs/*),true,false)

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: .venv/.for-running ## Start everything at http://127.0.0.1:3978 (settings: .env.example)
	@exec $(IN_VENV) app.py

# Every process that a test starts would read our sources anew, and each worker the tests.
unexport PYTHONDONTWRITEBYTECODE

# Neighbouring tests share what was started for them, and who has finished takes over from who has not.
IN_PARALLEL := -n auto --dist worksteal
test: .venv/.for-working ## Run all tests, with a few of the random kills and examples
	$(IN_VENV) -m pytest $(IN_PARALLEL)

# The rules and the platforms: what needs neither the whole product nor a browser, and hardly any other process. Without
# what is searched with many examples (Hypothesis) or dies at every step, what is measured, and the tests of the stand-ins
# for Slack and Teams.
FAST := tests/policies tests/graph tests/bot tests/models tests/rendering tests/slack tests/teams
NOT_FAST := $(foreach each,slack/product slack/local teams/product teams/local,--ignore=tests/$(each)) \
	--ignore-glob=*/test_fake_*.py --ignore-glob=*/test_slack_people.py --ignore-glob=*/test_teams_people.py \
	--ignore-glob=*/test_turn_crashes.py
test-fast: .venv/.for-working ## Run the tests that need neither the whole product nor a browser: the inner loop
	$(IN_VENV) -m pytest $(IN_PARALLEL) -m "not hypothesis and not imports and not timed and not waits" $(FAST) $(NOT_FAST)

# What keeps records; the rest would run a second time for nothing (tests/test_postgres_paths.py keeps the list true).
ON_POSTGRES := tests/accounts tests/api tests/audit/test_commands_on_postgresql.py tests/bot tests/both \
	tests/browser tests/deploy/test_queries.py tests/doctor/test_beside_a_bot.py tests/doctor/test_on_postgresql.py tests/gateway tests/graph tests/identity tests/kills \
	tests/oauth/test_whole_way.py tests/product tests/slack/product tests/slack/test_installing.py \
	tests/servers/test_documents_stores.py tests/slack/test_platform.py tests/slack/test_uninstalling.py tests/teams/product tests/test_adding_a_platform.py \
	tests/telemetry tests/tool_servers/test_account_changes.py tests/web/test_sign_in_at_an_issuer.py
test-postgres: .venv/.for-working ## Run the tests that keep records, with PostgreSQL (one comes with the tests)
	$(IN_VENV) -m pytest $(IN_PARALLEL) --postgres $(ON_POSTGRES)

# Another seed each time; the one that is printed repeats a failure: make test-long SEED=… ROUNDS=1. A round of kills
# takes some minutes.
SEED ?= $(shell date +%s)
ROUNDS ?= 10
test-long: .venv/.for-working ## Run all tests, with many random kills and examples (SEED=…, ROUNDS=… of kills)
	$(IN_VENV) -m pytest $(IN_PARALLEL) --long --seed $(SEED) --rounds $(ROUNDS) --timeout 1800 --hypothesis-seed $(SEED)

# They need another major version of mcp than we do, so they have an environment of their own.
test-servers: | $(BRING_OUR_OWN_UV) ## Bring the tool servers of PyPI that some tests try (else they are skipped)
	$(if $(PYTHON),UV_PYTHON_DOWNLOADS=never) $(UV) sync --frozen --project tests/pypi $(addprefix --python ,$(PYTHON))

# Without the tests in a browser and those that kill the process: what they reach is reached by others too.
coverage: .venv/.for-working ## Run the tests that stay in one process, and fail below 97 % of the core's branches
	$(IN_VENV) -m pytest $(IN_PARALLEL) -m "not browser and not kills and not timed" --cov --cov-report=term

translations: .venv/.for-working ## Write the sentences of the code into the translation catalogues
	$(IN_VENV) -m translations.extraction

pictures: .venv/.for-working ## Take the pictures in the documentation again (needs chromium and the npm test packages)
	$(IN_VENV) -m tests.browser.pictures
	$(IN_VENV) -m tests.slack.local.pictures
	$(IN_VENV) -m tests.teams.local.pictures

lint: .venv/.for-working ## Check style, types and import rules
	$(IN_VENV) -m ruff check .
	$(IN_VENV) -m ruff format --check .
	$(IN_VENV) -m mypy
	$(IN_VENV) -m mypy app.py
	.venv/bin/lint-imports --no-logo

bench: .venv/.for-working ## Measure speed, beside a bare agent (WRITE=docs/performance.md writes it there)
	$(IN_VENV) -m bench $(if $(WRITE),--write $(WRITE))

# A model: LLM_MODEL and its key, of the environment or .env; without, the demo model (docs/evals.md).
eval: .venv/.for-running ## Try how well a model works: RECORD=… or REPLAY=… a file, COMPARE=old.json (or "old.json new.json")
	@$(IN_VENV) -m evals $(if $(RECORD),--record $(RECORD)) $(if $(REPLAY),--replay $(REPLAY)) $(if $(COMPARE),--compare $(COMPARE)) $(if $(OUT),--out $(OUT)) $(if $(WRITE),--write $(WRITE))

teams-package: .venv/.for-running ## Write the app for Teams to dist/ (RSC=1: replies in threads need no mention)
	@$(IN_VENV) -m adapters.teams.app_package $(if $(RSC),--with-rsc) $(if $(VERSION),--version $(VERSION))

# The stamps say when .venv was last brought up to date, so that `make run` starts at once.
.venv/.for-running: uv.lock pyproject.toml | $(BRING_OUR_OWN_UV)
	$(SYNC) --no-dev --inexact
	@$(IN_VENV) -m policies.secret_rules
	@touch $@

.venv/.for-working: uv.lock pyproject.toml | $(BRING_OUR_OWN_UV)
	$(SYNC)
	@$(IN_VENV) -m policies.secret_rules
	@touch .venv/.for-running $@

# A virtual environment where Python can make one, else plain pip into a folder; uv itself is one self-contained file.
.uv/bin/uv:
	@test -n "$(PYTHON)" || { echo "Countersign needs Python 3.11 or newer, and there is none on PATH." >&2; exit 1; }
	@echo "Bringing uv into this folder…"; rm -rf .uv
	@{ $(PYTHON) -m venv .uv && .uv/bin/python -m pip install --quiet --disable-pip-version-check 'uv>=0.9'; } \
		|| { rm -rf .uv; $(PYTHON) -m pip install --quiet --disable-pip-version-check --target .uv 'uv>=0.9'; } \
		|| { rm -rf .uv; echo "Could not install uv: $(PYTHON) needs venv or pip (Debian: apt-get install python3-venv)" \
			"and a package index." >&2; exit 1; }
