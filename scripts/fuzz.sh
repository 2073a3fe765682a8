#!/usr/bin/env bash
# fuzz.sh TIME MODULE...: every fuzz target of every module for TIME each, one after the other.
set -euo pipefail
cd "$(dirname "$0")/.."
time=$1
shift

targets=0
for module in "$@"; do
	cd "$module"
	for package in $(go list -test -f '{{if or .TestGoFiles .XTestGoFiles}}{{if not .ForTest}}{{.ImportPath}}{{end}}{{end}}' ./...); do
		for target in $(go test -list '^Fuzz' "$package" | sed -n '/^Fuzz/p'); do
			echo "== $package $target"
			go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" -fuzzminimizetime 2s "$package"
			targets=$((targets + 1))
		done
	done
	cd "$OLDPWD"
done
echo "fuzz: $targets targets, $time each, no fault found"
