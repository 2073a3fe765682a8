#!/usr/bin/env bash
# lint.sh LINTER@VERSION MODULE...: golangci-lint with the repository's list, the installed one if it has the version asked for.
set -euo pipefail
cd "$(dirname "$0")/.."
linter=$1
version=${linter##*@v}
shift

run=(go run "$linter")
for candidate in "$(command -v golangci-lint || true)" "$(go env GOPATH)/bin/golangci-lint"; do
	if [[ -x $candidate ]] && [[ $("$candidate" version) == *"version $version "* ]]; then
		run=("$candidate")
		break
	fi
done
config=$PWD/.golangci.yaml
faults=0
for module in "$@"; do
	(cd "$module" && "${run[@]}" run --config "$config" ./...) || faults=1
done
exit $faults
