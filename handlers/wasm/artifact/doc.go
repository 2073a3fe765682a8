// Package artifact keeps what modules were compiled into. An artifact is a directory with the module to run and the engine's
// cache of native code, found by a key that names everything the code depends on (Identity). Native code is run as it lies
// there, and the engine guards it with a checksum only, so every artifact carries a manifest with the sha256 of each of its
// files, and the manifest a MAC under the host's key.
//
//	<dir>/<key>/module.wasm      what runs
//	<dir>/<key>/cache/...        native code, as the engine wrote it
//	<dir>/<key>/manifest.json    identity, and path, size and sha256 of every other file
//	<dir>/<key>/manifest.mac     HMAC-SHA256 of manifest.json under the host's key, in hex
//	<dir>/tmp/<draft>/           an artifact being made; locked as long as its maker lives
//
// The life of an artifact: NewDraft, a compile child fills the draft's directory, Publish examines it as hostile, signs it and
// renames it into place, Open verifies it each time before it is handed to a runner. An artifact that fails verification is an
// error that names the file; the caller compiles again and publishes over it. Nothing is synced to disk: what a power cut tears
// fails verification.
package artifact
