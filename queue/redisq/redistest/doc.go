// Package redistest starts a real redis-server for tests and puts a faulty network between a store and it.
package redistest
