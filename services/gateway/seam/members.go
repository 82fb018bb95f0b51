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

// member is one member of an event's payload.
type member struct {
	required bool
	// fits judges the value; want says what would.
	fits func(v any) bool
	want string
}

// members are those of a closed payload.
type members map[string]member

// The payloads of the emitters' events (OpenWOP envelope contract §15, §19.1).
var (
	usageMembers = members{
		"provider": must(text(1, 1<<20)), "model": must(text(1, 1<<20)),
		"inputTokens": must(integer(0, 1<<53)), "outputTokens": must(integer(0, 1<<53)),
		"totalTokens": integer(0, 1<<53), "cacheReadTokens": integer(0, 1<<53), "cacheWriteTokens": integer(0, 1<<53),
		"costEstimateUsd": amount(), "currency": like(`^[A-Z]{3}$`), "cacheHit": boolean(),
		"nodeId": text(1, maxID), "traceId": text(1, maxID),
	}
	reliabilityMembers = map[wire.EventType]members{
		wire.EventEnvelopeRetryAttempted: {
			"nodeId": must(text(1, maxID)), "attempt": must(integer(1, 16)), "reason": must(like(retryReason)), "previousError": orNull(text(0, 1<<20)),
		},
		wire.EventEnvelopeRetryExhausted: {
			"nodeId": must(text(1, maxID)), "totalAttempts": must(integer(1, 1<<53)), "finalReason": must(like(retryReason)), "finalError": orNull(text(0, 1<<20)),
		},
		wire.EventEnvelopeRefusal: {
			"nodeId": must(text(1, maxID)), "provider": must(text(1, 1<<20)), "model": must(text(1, 1<<20)),
			"refusalText": orNull(text(0, 1<<20)), "safetyCategory": orNull(text(0, 1<<20)),
		},
		wire.EventEnvelopeTruncated: {
			"nodeId": must(text(1, maxID)), "provider": must(text(1, 1<<20)), "model": must(text(1, 1<<20)), "stopReason": must(like(`^(max_tokens|length|stop_sequence|unknown)$`)),
			"partialPayloadAvailable": boolean(), "outputTokenCount": orNull(integer(0, 1<<53)),
		},
		wire.EventEnvelopeNLToFormat: {
			"nodeId": must(text(1, maxID)), "originalEnvelopeType": must(text(1, 256)), "fallbackCalls": integer(1, 1<<53),
		},
		wire.EventEnvelopeRecovery: {
			"nodeId": must(text(1, maxID)), "path": must(like(`^(direct|jsonrepair|markdown-fence|brace-walker|custom)$`)), "byteOffset": orNull(integer(0, 1<<53)),
		},
	}
)

// retryReason is why an answer was asked for again (OpenWOP envelope contract §15).
const retryReason = `^(schema-violation|truncation|type-drift|type-mismatch|refusal|parse-error|unknown|x-host-[a-z][a-z0-9-]*-[a-z][a-z0-9-]*)$`

func must(m member) member {
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
	return member{want: fmt.Sprintf("a text of %d to %d characters", shortest, longest), fits: func(v any) bool {
		s, ok := v.(string)
		n := utf8.RuneCountInString(s)
		return ok && n >= shortest && n <= longest
	}}
}

func like(pattern string) member {
	re := regexp.MustCompile(pattern)
	return member{want: "a text that matches " + pattern, fits: func(v any) bool {
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

// integer is a JSON Schema integer: 1.0 is one.
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

// fit holds a payload to its members: those required, no others, each as wanted.
func fit(payload map[string]json.RawMessage, want members) error {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if _, has := payload[name]; !has && want[name].required {
			return argument("/payload/%s: required", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(payload)) {
		m, known := want[name]
		if !known {
			return argument("/payload: has a member that this event has not; want only %v", slices.Sorted(maps.Keys(want)))
		}
		if v, err := value(payload[name]); err != nil || !m.fits(v) {
			return argument("/payload/%s: want %s", name, m.want)
		}
	}
	return nil
}
