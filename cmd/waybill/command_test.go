package main

import (
	"bytes"
	"strings"
	"testing"
)

// command runs the command line in this process.
func command(t *testing.T, stdin string, args ...string) (stdout string, err error) {
	t.Helper()
	var out, errs bytes.Buffer
	c := root(&out, &errs)
	c.SetIn(strings.NewReader(stdin))
	c.SetArgs(args)
	err = c.ExecuteContext(t.Context())
	return out.String(), err
}
