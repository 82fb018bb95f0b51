package seam

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"unicode/utf8"

	"waybill.dev/waybill/protocol/wire"
)

// member describes one member of an event's payload.
type member struct {
	required bool
	// fits validates the value; want describes a valid one.
	fits func(v any) bool
	want string
}

// members describe a closed payload.
type members map[string]member

// The payloads of the emitters' events (OpenWOP envelope contract §15, §19.1).
var (
	usageMembers = members{
		"provider": required(text(1, 1<<20)), "model": required(text(1, 1<<20)),
		"inputTokens": required(integer(0, 1<<53)), "outputTokens": required(integer(0, 1<<53)),
		"totalTokens": integer(0, 1<<53), "cacheReadTokens": integer(0, 1<<53), "cacheWriteTokens": integer(0, 1<<53),
		"costEstimateUsd": amount(), "currency": like(`^[A-Z]{3}$`), "cacheHit": boolean(),
		"nodeId": text(1, maxID), "traceId": text(1, maxID),
	}
	reliabilityMembers = map[wire.EventType]members{
		wire.EventEnvelopeRetryAttempted: {
			"nodeId":        required(text(1, maxID)),
			"attempt":       required(integer(1, 16)),
			"reason":        required(like(retryReason)),
			"previousError": orNull(text(0, 1<<20)),
		},
		wire.EventEnvelopeRetryExhausted: {
			"nodeId":        required(text(1, maxID)),
			"totalAttempts": required(integer(1, 1<<53)),
			"finalReason":   required(like(retryReason)),
			"finalError":    orNull(text(0, 1<<20)),
		},
		wire.EventEnvelopeRefusal: {
			"nodeId": required(text(1, maxID)), "provider": required(text(1, 1<<20)), "model": required(text(1, 1<<20)),
			"refusalText": orNull(text(0, 1<<20)), "safetyCategory": orNull(text(0, 1<<20)),
		},
		wire.EventEnvelopeTruncated: {
			"nodeId":                  required(text(1, maxID)),
			"provider":                required(text(1, 1<<20)),
			"model":                   required(text(1, 1<<20)),
			"stopReason":              required(like(`^(max_tokens|length|stop_sequence|unknown)$`)),
			"partialPayloadAvailable": boolean(),
			"outputTokenCount":        orNull(integer(0, 1<<53)),
		},
		wire.EventEnvelopeNLToFormat: {
			"nodeId":               required(text(1, maxID)),
			"originalEnvelopeType": required(text(1, 256)),
			"fallbackCalls":        integer(1, 1<<53),
		},
		wire.EventEnvelopeRecovery: {
			"nodeId":     required(text(1, maxID)),
			"path":       required(like(`^(direct|jsonrepair|markdown-fence|brace-walker|custom)$`)),
			"byteOffset": orNull(integer(0, 1<<53)),
		},
	}
)

// retryReason matches the reasons of a retry (OpenWOP envelope contract §15).
const retryReason = `^(schema-violation|truncation|type-drift|type-mismatch|refusal|parse-error|unknown|x-host-[a-z][a-z0-9-]*-[a-z][a-z0-9-]*)$`

func required(m member) member {
	m.required = true
	return m
}

func orNull(m member) member {
	fits := m.fits
	m.fits = func(v any) bool { return v == nil || fits(v) }
	m.want += ", or null"
	return m
}

func text(shortest, longest int) member {
	return member{want: fmt.Sprintf("a string of %d to %d characters", shortest, longest), fits: func(v any) bool {
		s, ok := v.(string)
		n := utf8.RuneCountInString(s)
		return ok && n >= shortest && n <= longest
	}}
}

func like(pattern string) member {
	re := regexp.MustCompile(pattern)
	return member{want: "a string that matches " + pattern, fits: func(v any) bool {
		s, ok := v.(string)
		return ok && re.MatchString(s)
	}}
}

func boolean() member {
	return member{want: "true or false", fits: func(v any) bool {
		_, ok := v.(bool)
		return ok
	}}
}

// integer describes a JSON Schema integer, which includes 1.0.
func integer(least, most float64) member {
	return member{want: fmt.Sprintf("an integer from %.0f to %.0f", least, most), fits: func(v any) bool {
		f, ok := number(v)
		return ok && f == float64(int64(f)) && f >= least && f <= most
	}}
}

func amount() member {
	return member{want: "a number, 0 or more", fits: func(v any) bool {
		f, ok := number(v)
		return ok && f >= 0
	}}
}

func number(v any) (float64, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	f, err := n.Float64()
	return f, err == nil
}

// checkMembers validates a payload: all required members, no others, each with a valid
// value.
func checkMembers(payload map[string]json.RawMessage, want members) error {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if _, has := payload[name]; !has && want[name].required {
			return argument("/payload/%s: required", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(payload)) {
		m, known := want[name]
		if !known {
			return argument("/payload: unknown member; want only %v", slices.Sorted(maps.Keys(want)))
		}
		if v, err := value(payload[name]); err != nil || !m.fits(v) {
			return argument("/payload/%s: want %s", name, m.want)
		}
	}
	return nil
}
