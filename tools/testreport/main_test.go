package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReport_ShowsFailuresSkipsAndSeconds(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	err := report(strings.NewReader(`{"Action":"start","Package":"a"}
{"Action":"output","Package":"a","Test":"TestGood","Output":"noise\n"}
{"Action":"pass","Package":"a","Test":"TestGood","Elapsed":1}
{"Action":"output","Package":"a","Test":"TestSkipped","Output":"=== RUN   TestSkipped\n"}
{"Action":"output","Package":"a","Test":"TestSkipped","Output":"    x_test.go:3: SKIPPED, no server: install one\n"}
{"Action":"skip","Package":"a","Test":"TestSkipped"}
{"Action":"pass","Package":"a","Elapsed":1.5}
{"Action":"output","Package":"b","Test":"TestBad","Output":"    x_test.go:9: broken\n"}
{"Action":"fail","Package":"b","Test":"TestBad","Elapsed":0.1}
{"Action":"output","Package":"b","Output":"FAIL\n"}
{"Action":"fail","Package":"b","Elapsed":20.25}
{"Action":"output","Package":"c","Output":"?   \tc\t[no test files]\n"}
{"Action":"skip","Package":"c","Elapsed":0}
no JSON
`), &out)
	require.EqualError(t, err, "2 failed")
	require.Equal(t, `pass     1.5 s  a
    x_test.go:9: broken
FAIL
fail    20.2 s  b
no JSON
SKIPPED no server: install one
	a.TestSkipped
2 packages; the slowest:
        20.2 s  b
         1.5 s  a
`, out.String())
}

func TestReport_FailsWhenABuildFails(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	err := report(strings.NewReader(`{"ImportPath":"a","Action":"build-output","Output":"a.go:1: undefined: x\n"}
{"ImportPath":"a","Action":"build-fail"}
{"Action":"fail","Package":"a","Elapsed":0,"FailedBuild":"a"}
`), &out)
	require.Error(t, err)
	require.Contains(t, out.String(), "undefined: x")
}

func TestReport_FailsWithoutTests(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	require.EqualError(t, report(strings.NewReader(""), &out), "no package was tested")
}

func TestReason_IsNamedOrMissing(t *testing.T) {
	t.Parallel()
	require.Equal(t, "no shell: install zsh", reasonOf("=== RUN TestX\n    l_test.go:43: SKIPPED, no shell: install zsh\n"))
	require.Equal(t, "no reason is given", reasonOf("--- SKIP: TestX (0.00s)\n"))
}
