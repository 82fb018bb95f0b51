// Package tools tests the scripts of this folder.
package tools

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

const lanesMakefile = "good:\n\t@echo good\nbad:\n\t@false\nslow:\n\t@sleep 60\n"

func TestLanes_EndLikeTheirTargets(t *testing.T) {
	t.Parallel()
	script, err := os.ReadFile("lanes.sh")
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "tools"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tools", "lanes.sh"), script, 0o700)) //nolint:gosec // it is executed
	require.NoError(t, os.WriteFile(filepath.Join(dir, "Makefile"), []byte(lanesMakefile), 0o600))
	for name, tc := range map[string]struct {
		lanes []string
		fails bool
	}{
		"one target":                      {[]string{"good"}, false},
		"targets and lanes":               {[]string{"good; good", "good"}, false},
		"a failure":                       {[]string{"bad"}, true},
		"a failure after a success":       {[]string{"good; bad", "good"}, true},
		"a failure ends the other lanes":  {[]string{"bad", "slow"}, true},
		"a target that does not exist":    {[]string{"good; none"}, true},
		"an empty target between others;": {[]string{"good;;good"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := exec.CommandContext(t.Context(), filepath.Join(dir, "tools", "lanes.sh"), tc.lanes...).CombinedOutput()
			require.Equal(t, tc.fails, err != nil, "%v: %s", err, out)
		})
	}
}
