// Package handlertest holds the contract every handlers.Runtime passes, and a runtime of Go functions for tests of what uses one.
package handlertest
