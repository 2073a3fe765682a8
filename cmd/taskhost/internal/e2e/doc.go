// Package e2e holds tests of the whole program: the built binary, real files, real child processes. They are slow; the packages
// themselves test their own rules.
package e2e
