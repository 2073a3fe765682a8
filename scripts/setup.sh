#!/usr/bin/env bash
# Installs the Debian packages that the tests and the demo use, unless they are there. Without the right to install, it
# prints the command and fails.
set -euo pipefail

packages=()

# need PACKAGE COMMAND...: PACKAGE is wanted when any of the commands is missing.
need() {
	local package=$1 command
	shift
	for command in "$@"; do
		if ! command -v "$command" >/dev/null; then
			packages+=("$package")
			return
		fi
	done
}

need gcc gcc
need clang clang
need lld wasm-ld
need redis-server redis-server
need shellcheck shellcheck
# The example of a plugin in Python.
if ! /usr/bin/python3 -c "import grpc, google.protobuf" 2>/dev/null; then packages+=(python3-grpcio); fi

# The libraries for WebAssembly belong to the compiler; whether they are there is seen by linking a program.
links_wasi() {
	local dir
	dir=$(mktemp -d)
	echo 'int main(void) { return 0; }' >"$dir/a.c"
	local ok=0
	clang --target=wasm32-wasi -o "$dir/a.wasm" "$dir/a.c" 2>/dev/null || ok=1
	rm -r "$dir"
	return $ok
}

if [[ ${#packages[@]} -eq 0 ]] && links_wasi; then
	exit 0
fi

# The runtime library's package carries the compiler's version in its name.
compiler_version() {
	if command -v clang >/dev/null; then
		clang -dumpversion | cut -d. -f1
	else
		apt-cache depends clang 2>/dev/null | sed -n 's/.*Depends: clang-\([0-9]*\)$/\1/p' | head -n1
	fi
}

install() {
	"$@" apt-get update -qq
	local version
	version=$(compiler_version)
	"$@" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
		"${packages[@]}" wasi-libc "libclang-rt-${version:-14}-dev-wasm32"
}

if ! command -v apt-get >/dev/null; then
	echo "setup: missing: ${packages[*]:-wasi-libc and compiler-rt for wasm32}; this script knows Debian's apt-get only" >&2
	exit 1
fi
if [[ $(id -u) -eq 0 ]]; then
	install
elif [[ -n ${CI:-} ]] && sudo -n true 2>/dev/null; then
	install sudo
else
	version=$(compiler_version)
	echo "setup: packages are missing; install them with" >&2
	echo "  sudo apt-get install -y ${packages[*]} wasi-libc libclang-rt-${version:-14}-dev-wasm32" >&2
	exit 1
fi
links_wasi || { echo "setup: clang still cannot link for wasm32-wasi after the installation" >&2; exit 1; }
