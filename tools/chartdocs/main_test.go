package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDescribe_NamesEveryValueOnce(t *testing.T) {
	t.Parallel()
	got, err := describe([]byte(`
# What is here.
image:
  # -- Where it is.
  repository: waybill
  # Not for the table.
  # -- One | the other,
  # over two lines.
  tag: ""
# -- A whole block.
resources:
  limits: {cpu: "1"} # of each
  # about memory
  requests: {}
`))
	require.NoError(t, err)
	require.Equal(t, "| value | default | meaning |\n|---|---|---|\n"+
		"| `image.repository` | `waybill` | Where it is. |\n"+
		"| `image.tag` |  | One \\| the other, over two lines. |\n"+
		"| `resources` | `{limits: {cpu: \"1\"}, requests: {}}` | A whole block. |\n", got)
}

func TestDescribe_RejectsAValueWithoutAComment(t *testing.T) {
	t.Parallel()
	_, err := describe([]byte("image:\n  repository: waybill\n"))
	require.EqualError(t, err, `line 2: image.repository: nothing says what it means; write "# -- …" above it`)
}

func TestReplace_LeavesTheRestAlone(t *testing.T) {
	t.Parallel()
	doc, err := replace("before\n"+begin+"\nold\n"+end+"\nafter\n", "new\n")
	require.NoError(t, err)
	require.Equal(t, "before\n"+begin+"\nnew\n"+end+"\nafter\n", doc)
	_, err = replace("no marks", "new\n")
	require.Error(t, err)
}
