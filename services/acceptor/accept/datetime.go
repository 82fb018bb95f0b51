package accept

import (
	"regexp"
	"strings"
	"time"
)

// dateTime is the form of RFC 3339 §5.6. time.Parse accepts more: a comma before the
// fraction, hours of one digit, offsets of a day.
var dateTime = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`)

// isDateTime reports whether s is a date and time that exists: no February 30,
// no hour 24. A leap second is one at 23:59:60 UTC only; letters may be in lower
// case, as RFC 3339 §5.6 allows.
func isDateTime(s string) bool {
	s = strings.ToUpper(s)
	if !dateTime.MatchString(s) {
		return false
	}
	const seconds = len("2006-01-02T15:04:")
	leap := s[seconds:seconds+2] == "60"
	if leap {
		s = s[:seconds] + "59" + s[seconds+2:]
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return false
	}
	u := t.UTC()
	return !leap || u.Hour() == 23 && u.Minute() == 59
}
