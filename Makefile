# Every step of CI is a target; `make help` lists them.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules
.DEFAULT_GOAL := help

export CGO_ENABLED ?= 0
export PATH := $(CURDIR)/.bin:$(PATH)
# The modules of the workspace; the pattern "work" covers them all.
MODULES := . proto protocol
FUZZTIME ?= 10s
CHAOS_KILLS ?= 300
GOLANGCI_VERSION := v2.15.0

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-14s %s\n", $$1, $$2}'

.PHONY: run
run: build ## build, start the whole host, and run the example once
	bin/waybill dev --demo

.PHONY: build
build: ## build bin/waybill
	go build -trimpath -ldflags "-s -w" -o bin/waybill ./cmd/waybill

.PHONY: test
test: ## all tests of all modules, also against a real host in a process of its own
	go test -count=1 -p 2 -timeout 15m work

.PHONY: race
race: ## the tests of everything concurrent, with the race detector
	CGO_ENABLED=1 go test -race -short -count=1 -p 2 -timeout 15m ./internal/... ./services/...

.PHONY: lint
lint: .bin/golangci-lint .bin/buf ## golangci-lint over all modules, buf lint
	golangci-lint run $$(go list -m -f '{{.Dir}}/...')
	buf lint

.PHONY: fmt
fmt: .bin/golangci-lint ## format the code
	golangci-lint fmt $$(go list -m -f '{{.Dir}}/...')

.PHONY: gen
gen: .bin/buf ## generate the code of the proto files, and docs/errors.md
	buf generate
	go run ./tools/gendocs

.PHONY: gen-check
gen-check: gen ## generate, and fail if anything changed
	git diff --exit-code --stat -- proto docs

.PHONY: test-isolated
test-isolated: ## build each module by itself, as an outsider would
	for m in $(MODULES); do GOWORK=off go -C $$m vet ./...; done

.PHONY: bench
bench: build ## measure the built binary; writes bench/report.md
	go run ./bench

.PHONY: chaos
chaos: build ## kill the host CHAOS_KILLS times and look for what is lost
	CHAOS_KILLS=$(CHAOS_KILLS) go test -count=1 -timeout 60m -v ./test/chaos

.PHONY: fuzz
fuzz: ## run every fuzz target for FUZZTIME
	tools/fuzz.sh $(FUZZTIME)

.PHONY: tidy
tidy: ## tidy all modules
	for m in $(MODULES); do go -C $$m mod tidy; done

.PHONY: ci
ci: lint gen-check test-isolated race ## what CI runs after `make test`
	CHAOS_KILLS=100 go test -count=1 -timeout 20m ./test/chaos

# Tools are installed into the checkout, pinned, and only when they are needed.
.bin/golangci-lint:
	GOBIN=$(CURDIR)/.bin go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)

.bin/buf: tools/codegen/go.sum
	GOWORK=off GOBIN=$(CURDIR)/.bin go -C tools/codegen install tool
	touch $@
