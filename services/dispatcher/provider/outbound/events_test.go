package outbound

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

func TestEvents_BoundsOneEventAndNotTheStream(t *testing.T) {
	t.Parallel()
	half := "data: " + strings.Repeat("x", maxEvent/2)
	for name, tc := range map[string]struct {
		stream string
		fits   bool
	}{
		"many events":            {strings.Repeat(half+"\n\n", 4), true},
		"with carriage returns":  {strings.Repeat(half+"\r\n\r\n", 4), true},
		"one event of lines":     {strings.Repeat(half+"\n", 3), false},
		"one line":               {half + half, false},
		"lines of spaces":        {strings.Repeat(half+"\n \n", 3), false},
		"a blank line in pieces": {strings.Repeat(half+"\n\r\n", 3), true},
	} {
		for _, r := range []io.Reader{strings.NewReader(tc.stream), iotest.HalfReader(strings.NewReader(tc.stream))} {
			n, err := io.Copy(io.Discard, &events{ReadCloser: io.NopCloser(r)})
			if tc.fits {
				require.NoError(t, err, name)
				require.Len(t, tc.stream, int(n), name)
				continue
			}
			require.ErrorIs(t, err, ErrTooLong, name)
		}
	}
}

func TestEvents_KnowsLinesWhateverTheReadsAre(t *testing.T) {
	t.Parallel()
	e := &events{ReadCloser: io.NopCloser(iotest.OneByteReader(strings.NewReader("data: a\n\ndata: b\r\n\r\ndata: c")))}
	_, err := io.Copy(io.Discard, e)
	require.NoError(t, err)
	require.Equal(t, len("data: c"), e.size)
}
