#!/usr/bin/env bash
# check.sh MODULE...: formatting and vet in every module, and shell scripts. Names every fault before it fails.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
faults=0

unformatted=$(gofmt -l .)
if [[ -n $unformatted ]]; then
	echo "not formatted (gofmt -w):" >&2
	echo "$unformatted" >&2
	faults=1
fi
for module in "$@"; do
	(cd "$module" && go vet ./...) || faults=1
done
if command -v shellcheck >/dev/null; then
	shellcheck scripts/*.sh .ci/run || faults=1
elif [[ -n ${CI:-} ]]; then
	echo "shellcheck is missing: run scripts/setup.sh" >&2
	faults=1
fi
if [[ $faults -eq 0 ]]; then
	echo "check: formatted, vetted"
fi
exit $faults
