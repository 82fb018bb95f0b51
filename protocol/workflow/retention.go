package workflow

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// Unlimited is the retention of runs that are never erased.
const Unlimited = "unlimited"

// Limits of a retention.
const (
	MinRetention = time.Second
	MaxRetention = 100 * 365 * 24 * time.Hour
)

const day = 24 * time.Hour

// errRetention describes the format of a retention.
var errRetention = errors.New(`want days such as "90d", a duration such as "36h" or "90m" from 1s to 36500d, or "unlimited"`)

// ParseRetention parses how long runs are kept after their end. 0 means without limit.
func ParseRetention(text string) (time.Duration, error) {
	if text == Unlimited {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		var n uint64
		n, err = strconv.ParseUint(days, 10, 16)
		d = time.Duration(n) * day //nolint:gosec // G115: at most 65535
	}
	if err != nil || d < MinRetention || d > MaxRetention {
		return 0, errRetention
	}
	return d, nil
}

// FormatRetention is the inverse of ParseRetention.
func FormatRetention(d time.Duration) string {
	switch {
	case d == 0:
		return Unlimited
	case d%day == 0:
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
	return d.String()
}

// Retention returns how long runs of the workflow are kept after their end, 0 without limit. ok is
// false if the workflow does not set it.
func (d *Definition) Retention() (keep time.Duration, ok bool) {
	if d.Settings.retention == "" {
		return 0, false
	}
	keep, err := ParseRetention(d.Settings.retention)
	return keep, err == nil
}

// checkRetention checks settings.retention.
func checkRetention(d *Definition, found *problems) {
	raw := members(members(d.Raw)["settings"])["retention"]
	if raw == nil {
		return
	}
	if _, err := ParseRetention(d.Settings.retention); err != nil {
		found.add("/settings/retention", RuleRetention, err.Error())
	}
}
