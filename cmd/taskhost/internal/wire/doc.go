// Package wire puts the program together: it is the only package that knows engines and runtimes by name. parts.go lists them;
// server.go opens and closes them in order; options.go translates the configuration into the options of each.
package wire
