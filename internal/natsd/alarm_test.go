package natsd

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// One failed check may be a process without CPU. Only a storage that stays failed is reopened.
func TestAlarm_FiresForAPersistentFailure(t *testing.T) {
	t.Parallel()
	failed := fmt.Errorf("%w: full", ErrStorage)
	for name, tc := range map[string]struct {
		looks []error
		want  []bool
	}{
		"well":           {[]error{nil, nil}, []bool{false, false}},
		"once":           {[]error{failed, nil, failed, nil}, []bool{false, false, false, false}},
		"it stays":       {[]error{failed, failed}, []bool{false, true}},
		"it fails again": {[]error{failed, failed, failed, failed}, []bool{false, true, false, true}},
		"something else": {[]error{failed, errors.New("down"), failed}, []bool{false, false, false}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var a alarm
			for i, err := range tc.looks {
				require.Equal(t, tc.want[i], a.rings(err), "look %d", i)
			}
		})
	}
}
