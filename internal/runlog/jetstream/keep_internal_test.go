package jetstream

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/natsd/natsdtest"
	"waybill.dev/waybill/internal/natslink"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
)

// wish is a sync that was requested.
type wish struct {
	pos    uint64
	urgent bool
}

// kept is a log on a disk controlled by the test. asked records the requested syncs, fails is their
// result.
func kept(t *testing.T) (l *Log, asked *[]wish, fails *error) {
	t.Helper()
	asked, fails = new([]wish), new(error)
	cfg := DefaultConfig()
	cfg.OnDisk = func(_ context.Context, stream string, pos uint64, urgent bool) error {
		require.Equal(t, subject.Stream, stream)
		*asked = append(*asked, wish{pos, urgent})
		return *fails
	}
	l, err := Open(t.Context(), natsdtest.Connect(t), cfg)
	require.NoError(t, err)
	return l, asked, fails
}

func opening(id string, content string) *frame.Frame {
	return frame.NewOpen(subject.Run{Tenant: "acme", WorkflowID: "w", RunID: id}, []byte(content))
}

func TestAppend_ReturnsWhenTheFrameIsOnTheDiskAndStageDoesNotWait(t *testing.T) {
	t.Parallel()
	l, asked, _ := kept(t)
	pos, err := l.Append(t.Context(), opening("a", `{}`), 0)
	require.NoError(t, err)
	require.Equal(t, []wish{{pos, true}}, *asked)
	staged, err := l.Stage(t.Context(), opening("b", `{}`), 0)
	require.NoError(t, err)
	require.Equal(t, []wish{{pos, true}, {staged, false}}, *asked, "it is on its way")
	require.NoError(t, l.Keep(t.Context(), staged))
	require.Equal(t, []wish{{pos, true}, {staged, false}, {staged, true}}, *asked)
}

// A frame whose sync failed has an unknown outcome. The caller immediately gets an unavailable
// error and can append the same frame again.
func TestAppend_OfAFrameThatCannotBeKeptIsUnavailable(t *testing.T) {
	t.Parallel()
	l, asked, fails := kept(t)
	*fails = errors.New("too many open files")
	f := opening("a", `{}`)
	_, err := l.Append(t.Context(), f, 0)
	require.ErrorIs(t, err, runlog.ErrUnavailable)
	require.ErrorIs(t, err, *fails)
	require.Equal(t, []wish{{1, true}}, *asked)
	*fails = nil
	pos, err := l.Append(t.Context(), f, 0)
	require.NoError(t, err)
	require.EqualValues(t, 1, pos)
}

// A reopened server may have lost the frame. The log looks for it there, and returns once it is
// synced.
func TestAppend_FindsTheFrameInAReopenedServer(t *testing.T) {
	t.Parallel()
	l, asked, fails := kept(t)
	*fails = fmt.Errorf("%w: it is down", natslink.ErrLost)
	keep := l.cfg.OnDisk
	l.cfg.OnDisk = func(ctx context.Context, stream string, pos uint64, urgent bool) error {
		if len(*asked) == 2 {
			*fails = nil
		}
		return keep(ctx, stream, pos, urgent)
	}
	pos, err := l.Append(t.Context(), opening("a", `{}`), 0)
	require.NoError(t, err)
	require.Equal(t, []wish{{pos, true}, {pos, true}, {pos, true}}, *asked)
	end, err := l.End(t.Context())
	require.NoError(t, err)
	require.Equal(t, pos, end, "it is there once")
}

// A conflict is reported only once the other frame is on disk, so the caller may rely on it.
func TestAppend_AConflictIsReportedOnceTheOtherFrameIsDurable(t *testing.T) {
	t.Parallel()
	l, asked, fails := kept(t)
	pos, err := l.Stage(t.Context(), opening("a", `{}`), 0)
	require.NoError(t, err)
	_, err = l.Append(t.Context(), opening("a", `{"other":true}`), 0)
	require.ErrorIs(t, err, runlog.ErrConflict)
	require.Equal(t, []wish{{pos, false}, {0, true}}, *asked, "that it is on its way, and that all is there")
	*fails = errors.New("the disk is broken")
	_, err = l.Append(t.Context(), opening("a", `{"other":true}`), 0)
	require.ErrorIs(t, err, runlog.ErrUnavailable)
}

// Readers get only frames that are on disk.
func TestFollow_ReturnsFramesOnDisk(t *testing.T) {
	t.Parallel()
	l, asked, fails := kept(t)
	pos, err := l.Stage(t.Context(), opening("a", `{}`), 0)
	require.NoError(t, err)
	*fails = errors.New("the disk is broken")
	damaged := func(subject.Run, uint64, error) { t.Error("nothing is damaged") }
	err = l.Follow(t.Context(), 0, func([]*frame.Frame) error {
		t.Error("shown before it is kept")
		return nil
	}, damaged)
	require.ErrorIs(t, err, runlog.ErrUnavailable)
	*fails = nil
	through := errors.New("seen")
	err = l.Follow(t.Context(), 0, func(batch []*frame.Frame) error {
		require.Len(t, batch, 1)
		require.Equal(t, wish{pos, false}, (*asked)[len(*asked)-1])
		return through
	}, damaged)
	require.ErrorIs(t, err, through)
}
