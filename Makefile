# The commands of this project. `make run` needs nothing but Rust; `make test` also Go, kubectl, openssl, curl, Terraform and
# python3 with venv; what else they use they build or install themselves, once, under the user's cache.

CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)
export CARGO_TARGET_DIR ?= $(CACHE)/karpenter-rust/target
TOOLS := $(CACHE)/karpenter-rust/tools
export PATH := $(TOOLS)/bin:$(PATH)

CONTROL_PLANE := tools/control-plane
GO := $(shell command -v go)
UPSTREAM_BENCH := $(CACHE)/karpenter-rust/upstream-bench
NEXTEST := cargo nextest run --cargo-quiet
# One set of features for everything that is checked, so that no crate is compiled twice. Whoever works on a crate builds
# that crate, and waits for the AWS SDK only in the two that depend on it.
WHOLE := --workspace --features cli/aws
PROFILE ?= release
SEEDS ?= 10000
IMAGE ?= localhost/karpenter
BOOK := $(CACHE)/karpenter-rust/book
# Where cargo-deny looks for advisories.
ADVISORIES := https://github.com/RustSec/advisory-db
OUT ?= $(CACHE)/karpenter-rust/conformance

.DEFAULT_GOAL := help
.PHONY: help run test check e2e conformance bench bench-instructions storm build build-aws image docs generate manifests audit tools control-plane mdbook helm boto3 moto cfn-lint upstream-bench

help: ## List the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 20

run: ## Play the inflate story in the playground: embedded API server, simulated cloud, the real controllers
	@echo "building karpenter (the first time takes a few minutes)" >&2
	@cargo build --quiet --package cli
	@$(CARGO_TARGET_DIR)/debug/karpenter playground --scenario inflate

# What has to pass is the same every time; `make storm` looks for what nobody has seen yet.
test: export PROPTEST_RNG_SEED ?= 114
test: tools control-plane helm boto3 moto cfn-lint check docs ## All checks and all tests, the real control plane included
	cargo test --quiet $(WHOLE) --doc
	$(NEXTEST) $(WHOLE)

check: ## Format, lints, generated files, documentation links, and that the program builds without the AWS SDK
	cargo fmt --all --check
	cargo clippy --quiet $(WHOLE) --all-targets -- --deny warnings
	cargo clippy --quiet --package cli --bins -- --deny warnings
	cargo xtask generate --check
	cargo xtask tidy

e2e: tools control-plane ## The binary against a real kube-apiserver, controller manager and scheduler
	$(NEXTEST) --package cli --test 'e2e*'

conformance: build ## Upstream's own end-to-end suite against our binary on a real control plane (needs Python; results in OUT)
	tools/regression/run --shards --out $(OUT) $(CARGO_TARGET_DIR)/release/karpenter controller --cloud-provider sim

storm: tools ## SEEDS (default 10000) small storms of each kind in the simulated world, and as many random questions to the solver
	PROPTEST_CASES=$(SEEDS) $(NEXTEST) --package scheduler properties
	STORM_SEEDS=$(SEEDS) $(NEXTEST) --cargo-profile storm --package world --test storm --no-capture

bench: upstream-bench ## Measure the solver and a pass of disruption, beside upstream's where Go is present, and the simulation
	cargo bench --package scheduler --bench compare -- \
		$(if $(GO),--upstream $(UPSTREAM_BENCH)) $(if $(UPSTREAM_LARGE),--upstream-large)
	cargo bench --package scheduler --bench solve
	cargo bench --package disruption --bench pass -- $(if $(GO),--upstream $(UPSTREAM_BENCH))
	cargo bench --package world

bench-instructions: ## Count the solver's instructions and compare them with the baseline (needs valgrind; UPDATE=1 rewrites it)
	cargo bench --package scheduler --bench instructions -- $(if $(UPDATE),--update)

build: ## Release binary without the AWS provider; the last line is its path
	cargo build --release --package cli
	@echo $(CARGO_TARGET_DIR)/release/karpenter

build-aws: ## Binary with the AWS provider, aws-fake beside it; the last line is karpenter's path (PROFILE=ci is quicker to build)
	cargo build --profile $(PROFILE) --package cli --package aws-fake --features cli/aws --target-dir $(CARGO_TARGET_DIR)/aws
	@echo $(CARGO_TARGET_DIR)/aws/$(PROFILE)/karpenter

image: ## Image of the controller as IMAGE, by buildah, podman or docker (OPTIONS are those of deploy/image/build)
	deploy/image/build $(OPTIONS) $(IMAGE)

docs: mdbook ## Build the book; the last line is its first page
	@mdbook build docs --dest-dir $(BOOK)
	@echo $(BOOK)/index.html

generate: ## Rewrite what is generated from code: CRDs and reference pages
	cargo xtask generate

manifests: helm ## Render the chart to deploy/manifests/karpenter.yaml
	deploy/manifests/render >deploy/manifests/karpenter.yaml

audit: ## Licences, bans and sources of all dependencies, and advisories where their database can be reached
	@cargo deny --version >/dev/null 2>&1 || { \
		echo "installing cargo-deny, once" >&2; cargo install --locked --quiet --root $(TOOLS) cargo-deny; }
	cargo deny check licenses bans sources
	@if git ls-remote --quiet $(ADVISORIES) HEAD >/dev/null 2>&1; then cargo deny check advisories; \
		else echo "advisories were not checked: $(ADVISORIES) cannot be reached" >&2; fi

tools:
	@cargo nextest --version >/dev/null 2>&1 || { \
		echo "installing cargo-nextest, once" >&2; \
		cargo install --locked --quiet --debug --no-default-features --features default-no-update --root $(TOOLS) \
			--version 0.9.151 cargo-nextest; }

mdbook:
	@mdbook --version >/dev/null 2>&1 || { echo "installing mdbook, once" >&2; \
		cargo install --locked --quiet --debug --no-default-features --version 0.5.4 --root $(TOOLS) mdbook; }

control-plane:
	@$(CONTROL_PLANE)/build

helm:
	@tools/helm/build >/dev/null

boto3:
	@tools/aws-fake/boto3/check --install

moto:
	@tools/moto/serve --install

cfn-lint:
	@tools/cfn-lint/check --install

upstream-bench:
	$(if $(GO),cd tools/upstream-bench && go build -buildvcs=false -o $(UPSTREAM_BENCH) .)
