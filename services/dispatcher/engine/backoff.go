package engine

import "time"

// A result that cannot be appended because the log or the redactor is unreachable is retried while
// the session lasts. Dropping it would repeat the effect's call, or fail its node with an unknown
// outcome. No other dispatcher can take the run over unless this process loses its lease, which
// ends the session.

const (
	firstPause = 250 * time.Millisecond
	maxPause   = 5 * time.Second
)

// wouldLoseResults reports that a failed append would lose results of effects, and that a retry may
// succeed.
func (s *session) wouldLoseResults(err error) bool {
	return s.exec.cfg.HoldResults > 0 && len(s.unflushed.inputs) > 0 && isUnreachable(err)
}
