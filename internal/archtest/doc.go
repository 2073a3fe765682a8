// Package archtest holds the repository to its architecture: who may import whom, how long a file may be, that packages
// and exported names say what they are, that there are no hidden globals. The rules are tables in rules.go; the checks
// take them as data, so that tests can plant a violation of each.
package archtest
