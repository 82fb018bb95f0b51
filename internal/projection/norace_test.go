//go:build !race

package projection_test

// raced reports whether the race detector is on.
const raced = false
