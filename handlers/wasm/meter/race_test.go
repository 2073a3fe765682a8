//go:build race

package meter_test

// The package starts no goroutine; under the race detector, which makes the engine ten times slower, a sample is enough.
const raceDetector = true
