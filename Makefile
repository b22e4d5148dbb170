# The only task runner of the repository: `make help` lists the targets.
#
# Every target installs what it needs below `.venv` and `target`. Targets that need real servers
# get their own through tests/services/run, which ends them however the target ends.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

# Both make one build serve all: one profile and one target folder for cargo and maturin.
PROFILE := ci
export CARGO_TARGET_DIR := $(CURDIR)/target
export PATH := $(CURDIR)/target/tools/bin:$(PATH)
# Python files that are imported here are test tools; their caches would litter the tree.
export PYTHONDONTWRITEBYTECODE := 1

LOCKED := $(if $(CI),--locked)
CARGO_FLAGS := --profile $(PROFILE) $(LOCKED)
VENV := $(CURDIR)/.venv/bin
LOGS := $(CURDIR)/target/test-logs
WITH_SERVERS := tests/services/run all

# Bindings that are modules of a host are left out of `cargo test`: they have no main, and link only
# inside their host, whose own test tool tests them.
RUST_TESTED := --workspace --exclude fencelock-python --exclude fencelock-node
RUST_EXAMPLES := flash_sale order_code

.PHONY: help demo test test-core test-python test-examples python fleets node test-node lint \
	lint-rust lint-python lint-node deny bench chaos dist clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## the flash sale on an embedded backend: every unit of stock is sold once
	cargo run $(CARGO_FLAGS) -p flash_sale --

# One step a line, in the order in which they run. Each is a target that also works alone, and
# then builds the wheel it needs; here that is a step of its own, done once.
test: export PYTHON_IS_BUILT := 1
test: export NODE_IS_BUILT := 1
test: export TEST_STEPS := \
	lint-rust \
	test-core \
	python \
	lint-python \
	test-python \
	node \
	lint-node \
	test-node \
	test-examples
test: ## everything, with real servers; the last line is the total
	@rm -rf $(LOGS) && mkdir -p $(LOGS)
	@$(WITH_SERVERS) tests/steps $(LOGS) $$TEST_STEPS || true
	@tests/summary $(LOGS)

test-core: ## the Rust tests and doc tests, with real servers
	$(WITH_SERVERS) cargo test $(CARGO_FLAGS) $(RUST_TESTED) --no-fail-fast

test-python: $(if $(PYTHON_IS_BUILT),,python) fleets ## the Python tests, with real servers
	@mkdir -p $(LOGS)
	cd bindings/python && ../../$(WITH_SERVERS) $(VENV)/python -m pytest \
		--junitxml=$(LOGS)/test-python.xml

# One run for people to read, and the same as a file for tests/summary.
NODE_TEST = node --test --test-reporter=spec --test-reporter-destination=stdout \
	--test-reporter=junit --test-reporter-destination=$(LOGS)/$(1).xml

test-node: $(if $(NODE_IS_BUILT),,node) ## the Node tests, with real servers
	@mkdir -p $(LOGS)
	$(WITH_SERVERS) $(call NODE_TEST,test-node) bindings/node/tests/*.test.mjs

test-examples: $(if $(PYTHON_IS_BUILT),,python) $(if $(NODE_IS_BUILT),,node) ## the examples over each backend, and their own tests
	@mkdir -p $(LOGS)
	cargo build $(CARGO_FLAGS) $(addprefix -p ,$(RUST_EXAMPLES))
	$(WITH_SERVERS) examples/on-each-backend \
		$(addprefix $(CARGO_TARGET_DIR)/$(PROFILE)/,$(RUST_EXAMPLES))
	$(WITH_SERVERS) $(VENV)/python -m pytest examples --junitxml=$(LOGS)/test-examples.xml
	$(WITH_SERVERS) $(call NODE_TEST,test-examples-node) examples/*_node/*.test.mjs

# The stamp is newer than the pins exactly when the environment has them.
.venv/.ready: tests/requirements.txt
	python3 -m venv .venv
	$(VENV)/pip install --quiet --disable-pip-version-check -r tests/requirements.txt
	@touch $@

python: .venv/.ready ## build the Python wheel and install it in .venv
	@rm -rf target/wheels
	$(VENV)/maturin build --manifest-path bindings/python/Cargo.toml --profile $(PROFILE) $(LOCKED) \
		--interpreter $(VENV)/python --compatibility linux --out target/wheels
	$(VENV)/pip install --quiet --disable-pip-version-check --no-index --no-deps --force-reinstall \
		target/wheels/fencelock-*.whl

FLEETS := target/fleets/classpath
fleets: $(FLEETS) ## build the locks of others in Java that the Python tests run beside ours
$(FLEETS): $(wildcard tests/fleets/java/pom.xml tests/fleets/java/src/main/java/*)
	mvn -q -B -Dstyle.color=never -f tests/fleets/java/pom.xml package
	@touch $@

# npm writes this file when it has installed what the lock file says.
NODE_MODULES := bindings/node/node_modules/.package-lock.json

$(NODE_MODULES): bindings/node/package.json bindings/node/package-lock.json
	cd bindings/node && npm ci --no-audit --no-fund
	@touch $@

node: $(NODE_MODULES) ## build the Node binding: bindings/node is ready to require
	cargo build $(CARGO_FLAGS) -p fencelock-node
	node bindings/node/packages.mjs place $(CARGO_TARGET_DIR)/$(PROFILE)

lint: lint-rust lint-python lint-node ## format, clippy, licences and sources, ruff, mypy, biome

lint-rust:
	cargo fmt --all --check
	cargo clippy $(CARGO_FLAGS) --workspace --all-targets -- -D warnings
	@if command -v cargo-deny >/dev/null; then \
		cargo deny check bans licenses sources; \
	else echo "cargo-deny is not installed (make deny): licences and sources not checked"; fi

lint-python: .venv/.ready
	$(VENV)/ruff check .
	$(VENV)/ruff format --check .
	$(VENV)/mypy --strict tests/summary tests/services/servers.py
	MYPYPATH=bindings/python/python $(VENV)/mypy --strict tests/bench/peers.py
	MYPYPATH=tests/fleets $(VENV)/mypy --strict --disable-error-code=import-untyped tests/fleets
	MYPYPATH=bindings/python/python $(VENV)/mypy --strict examples/flash_sale_python
	MYPYPATH=bindings/python/python $(VENV)/mypy --strict examples/order_code_python
	cd bindings/python && $(VENV)/mypy

lint-node: $(NODE_MODULES)
	bindings/node/node_modules/.bin/biome check --error-on-warnings

deny: ## install cargo-deny below target/tools, for `make lint`
	cargo install --locked --root target/tools cargo-deny@0.20.2

bench: ## measure against targets and peers, as ratios in one run; see target/bench/report.md
	tests/bench/run
	@if command -v node >/dev/null; then tests/bench/run-node; fi

chaos: ## faults at random moments against real servers
	$(WITH_SERVERS) tests/chaos/run

dist: .venv/.ready $(NODE_MODULES) ## the packages to publish, below target/dist
	$(VENV)/maturin build --manifest-path bindings/python/Cargo.toml --release --locked \
		--interpreter $(VENV)/python --out target/dist
	cargo build --release --locked -p fencelock-node
	node bindings/node/packages.mjs place $(CARGO_TARGET_DIR)/release
	node bindings/node/packages.mjs pack target/dist

clean: ## end our servers and remove everything that was built
	tests/services/down
	rm -rf target .venv bindings/node/node_modules bindings/node/*.node
