# taskhost. `make` lists what there is to make.

MODULES  := . sdk/go sdk/go/plugin wasm-examples bench
VERSION  ?= $(shell git describe --tags --dirty --always 2>/dev/null || echo unknown)
COMMIT   ?= $(shell git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
LDFLAGS  := -s -w -X main.commit=$(COMMIT)
FUZZTIME ?= 30s
LINTER   := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

.DEFAULT_GOAL := help
.PHONY: help run build examples test test-long check setup bench-once lint fuzz bench demo generate verify tidy clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## start a development server, everything embedded
	CGO_ENABLED=0 go run ./cmd/taskhost dev

build: ## bin/taskhost, one static binary
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o bin/taskhost ./cmd/taskhost

examples: ## bin/examples/*.wasm, the example handlers
	$(MAKE) -C wasm-examples OUT=$(CURDIR)/bin/examples

test: setup check bench-once ## all that must hold before a change is merged; installs what it needs
	go run ./internal/testsum $(MODULES) -- -race -timeout 14m

test-long: setup ## the same tests at full size: millions of jobs, long histories
	TASKHOST_TEST_LONG=1 go run ./internal/testsum $(MODULES) -- -count=1 -timeout 3h

check: ## formatting, vet, shell scripts
	./scripts/check.sh $(MODULES)

setup: ## install the Debian packages that tests need
	./scripts/setup.sh

bench-once: ## every benchmark beside the code for one round, so that none rots
	@out=$$(go test -run '^$$' -bench . -benchtime 1x ./... 2>&1) || { echo "$$out"; exit 1; }
	@echo "bench-once: every benchmark runs"

lint: ## golangci-lint over all modules
	./scripts/lint.sh $(LINTER) $(MODULES)

fuzz: ## every fuzz target for FUZZTIME (30s) each
	./scripts/fuzz.sh $(FUZZTIME) $(MODULES)

bench: ## side-by-side benchmarks against other queues, into bench/RESULTS.md
	cd bench && go run .

demo: setup ## real files through the real binary: word counts and thumbnails, compared
	go run ./internal/demo/cmd

generate: setup ## write generated files anew: the samples, the scaffold's SDK, the protocol
	go generate ./...
	./scripts/proto.sh

verify: generate ## fail if a generated file was not up to date
	git diff --exit-code -- .

tidy: ## go mod tidy in every module
	for m in $(MODULES); do (cd $$m && go mod tidy) || exit 1; done

clean: ## remove what make made
	rm -rf bin
