// Package rotation lets tests with very many cases include a part of them in each run, and another
// part after each commit, so that a few commits include all.
package rotation

import (
	"fmt"
	"os"
	"strconv"
)

// Variable is the environment variable with the number of the turn. The Makefile sets it to the
// number of commits. A failed test is repeated with the same number.
const Variable = "TEST_TURN"

// Turn returns the number of the turn, 0 if the variable is unset.
func Turn() int {
	text := os.Getenv(Variable)
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		panic(fmt.Sprintf("%s=%s: want a number from 0", Variable, text))
	}
	return n
}

// Includes reports whether this turn includes case i, if each turn includes one case of every n.
func Includes(i, n int) bool { return (i+Turn())%n == 0 }
