// Package examples is the home of the example handlers' build test; the handlers are in the folders below.
package examples
