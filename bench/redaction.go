package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/services/redactor/redact"
)

// thousand returns a thousand secrets with the lengths of credentials.
func thousand() []redact.Secret {
	r := rand.New(rand.NewPCG(7, 11)) // the same each time
	const alphabet = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
	out := make([]redact.Secret, 1000)
	for i := range out {
		b := make([]byte, 16+r.IntN(48))
		for k := range b {
			b[k] = alphabet[r.IntN(len(alphabet))]
		}
		out[i] = redact.Secret{ID: fmt.Sprint("secret-", i), Value: redact.Value(b)}
	}
	return out
}

// megabyte is the size of the texts.
const megabyte = 1 << 20

const prose = "The lamp arrived broken; the customer wrote twice, on Monday and on Thursday, and wants the money back. "

// fill repeats a text up to a megabyte.
func fill(text string) string { return strings.Repeat(text, megabyte/len(text)) }

// jsonDocument is a megabyte of typical tool results.
func jsonDocument() []byte {
	item := fmt.Sprintf(`{"id":"run_06gzs9m3s1xq16m6ak670468r0","text":%q,"n":[1,2,3.5]},`, prose)
	return []byte(`{"items":[` + strings.TrimSuffix(fill(item), ",") + `]}`)
}

// throughput is the number of bytes per second of one core's CPU time.
func throughput(size int, d time.Duration, do func()) float64 {
	do()
	n := 0
	c := costOf(func() {
		for end := time.Now().Add(d); n == 0 || time.Now().Before(end); n++ {
			do()
		}
	})
	return float64(n) * float64(size) / c.cpu.Seconds()
}

// redaction measures the redactor's engine with a thousand known secrets.
func redaction(d time.Duration, tries int) []figure {
	secrets := thousand()
	known, both := redact.Compile(secrets), redact.Compile(secrets).With(redact.DefaultShapes())
	text, doc := fill(prose), jsonDocument()
	needle := []byte(secrets[0].Value.Reveal())
	scan := func(b []byte) float64 {
		return throughput(len(b), d/5, func() { _ = bytes.Index(b, needle) })
	}
	scans := map[bool]float64{false: scan([]byte(text)), true: scan(doc)}
	var out []figure
	for _, tc := range []struct {
		what  string
		scrub *redact.Scrubber
		json  bool
	}{
		{"prose, known secrets", known, false},
		{"prose, known and likely secrets", both, false},
		{"JSON, known secrets", known, true},
		{"JSON, known and likely secrets", both, true},
	} {
		size, do := len(text), func() { tc.scrub.Text(text) }
		if tc.json {
			size, do = len(doc), func() { _, _, _ = tc.scrub.JSON(doc, strictjson.Limits{MaxBytes: len(doc), MaxDepth: 8}) }
		}
		rate := throughput(size, d/5, do)
		out = append(out,
			figure{
				what:     "redacting " + tc.what + ", 1,000 secrets, one core",
				basis:    absolute,
				measured: fmt.Sprintf("%.0f MB/s", rate/1e6),
				target:   "≥ 100 MB/s",
				met:      rate >= 100e6,
				ceiling:  fmt.Sprintf("search for one of them: %.0f MB/s", scans[tc.json]/1e6),
			},
			figure{
				what:     "… relative to a search for one secret",
				basis:    ratio,
				measured: fmt.Sprintf("%.1f %%", 100*rate/scans[tc.json]),
				ceiling:  "100 %",
			})
	}
	return append(out, adversarial(secrets, both, tries)...)
}

// adversarial measures the engine's worst inputs of a megabyte; the minimum of several tries
// counts.
func adversarial(secrets []redact.Secret, s *redact.Scrubber, tries int) []figure {
	value := secrets[0].Value.Reveal()
	var starts strings.Builder
	for starts.Len() < megabyte {
		v := secrets[starts.Len()%len(secrets)].Value.Reveal()
		starts.WriteString(v[:len(v)-1] + " ")
	}
	var worst time.Duration
	var name string
	for _, tc := range []struct{ name, text string }{
		{"the same near miss", fill(value[:len(value)-1] + " ")},
		{"near misses of all secrets", starts.String()},
		{"nothing but secrets", fill(value + " ")},
		{"words that precede secrets", fill("password: token= sk-ant- eyJ ghp_ secret ")},
		{"an endless token", fill("sk-ant-") + strings.Repeat("aB3", 100)},
		{"an endless password", "password=" + fill("x")},
		{"dots of a web token", "eyJ" + fill("eyJa.")},
	} {
		c := costOf(func() { s.Text(tc.text) })
		for range tries - 1 {
			c = c.least(costOf(func() { s.Text(tc.text) }))
		}
		if c.cpu > worst {
			worst, name = c.cpu, tc.name
		}
	}
	const target = 250 * time.Millisecond
	return []figure{{
		what:     "redacting 1 MB of adversarial text, the worst of seven: " + name,
		basis:    absolute,
		measured: ms(worst),
		target:   "≤ 250 ms",
		met:      worst <= target,
	}}
}
