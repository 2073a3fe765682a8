//go:build !linux

package main

func hideLandlock() {}
