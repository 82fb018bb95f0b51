package eventlog

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/eventlog/store"
	"waybill.dev/waybill/services/eventlog/tally"
)

func TestWorkflowSums_LimitWhatTheyOnlyCount(t *testing.T) {
	t.Parallel()
	sums := newWorkflowSums()
	for n := range maxOthers + 10 {
		sums.add(&store.Tallied{Bucket: tally.Bucket{WorkflowID: fmt.Sprint("w", n)}}, 0)
	}
	require.Len(t, sums.others, maxOthers)
	require.Empty(t, sums.by)
}
