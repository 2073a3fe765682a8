//go:build !race

package meter_test

const raceDetector = false
