// Package corpus makes the labelled texts that the rules for secret-shaped text
// are measured on: each line holds one secret of a rule, or none.
//
// The texts are generated from a seed, so that they can be made again and hold no
// real secret. `go generate` writes corpus.jsonl. There each secret is in pieces: a
// forge that looks for keys in what is pushed must not take it for one.
package corpus

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"
)

//go:generate go run waybill.dev/waybill/tools/gencorpus

// Line is one labelled text.
type Line struct {
	// Rule is the id of the rule that must find Secret; empty: nothing may be found.
	Rule string `json:"rule,omitempty"`
	Text string `json:"text"`
	// Secret is the part of Text that must go.
	Secret string `json:"secret,omitempty"`
}

// Joint stands between two pieces of a secret in the file.
const Joint = "{+}"

// piece is shorter than what any search for keys looks for.
const piece = 7

// Cut gives the line as it is in the file.
func (l Line) Cut() Line {
	if l.Secret == "" {
		return l
	}
	var parts []string
	rest := l.Secret
	for len(rest) > piece {
		parts, rest = append(parts, rest[:piece]), rest[piece:]
	}
	whole := l.Secret
	l.Secret = strings.Join(append(parts, rest), Joint)
	l.Text = strings.ReplaceAll(l.Text, whole, l.Secret)
	return l
}

// Join undoes Cut.
func (l Line) Join() Line {
	l.Text, l.Secret = strings.ReplaceAll(l.Text, Joint, ""), strings.ReplaceAll(l.Secret, Joint, "")
	return l
}

const (
	lower  = "abcdefghijklmnopqrstuvwxyz"
	upper  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits = "0123456789"
	mixed  = lower + upper + digits
	hexes  = "0123456789abcdef"
)

// source draws the parts of texts.
type source struct{ *rand.Rand }

func (s source) from(alphabet string, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = alphabet[s.IntN(len(alphabet))]
	}
	return string(b)
}

func (s source) pick(list ...string) string { return list[s.IntN(len(list))] }

func (s source) segment(n int) string {
	return base64.RawURLEncoding.EncodeToString([]byte(`{"k":"` + s.from(mixed, n) + `"}`))
}

// secrets make one secret of each rule.
var secrets = []struct {
	rule string
	make func(s source) string
}{
	{"anthropic-key", func(s source) string { return "sk-ant-api03-" + s.from(mixed+"-_", 90) + "AA" }},
	{"openai-key", func(s source) string { return s.pick("sk-", "sk-proj-", "sk-svcacct-") + s.from(mixed, 48) }},
	{"google-api-key", func(s source) string { return "AIza" + s.from(mixed, 35) }},
	{"google-oauth-token", func(s source) string { return "ya29.a0" + s.from(mixed+"-_", 120) }},
	{"aws-access-key", func(s source) string { return s.pick("AKIA", "ASIA") + s.from(upper+"234567", 16) }},
	{"github-token", func(s source) string { return s.pick("ghp_", "gho_", "ghs_") + s.from(mixed, 36) }},
	{"github-fine-grained-token", func(s source) string { return "github_pat_" + s.from(mixed, 22) + "_" + s.from(mixed, 59) }},
	{"gitlab-token", func(s source) string { return "glpat-" + s.from(mixed, 20) }},
	{"slack-token", func(s source) string {
		return s.pick("xoxb-", "xoxp-") + s.from(digits, 12) + "-" + s.from(digits, 12) + "-" + s.from(mixed, 24)
	}},
	{"stripe-key", func(s source) string { return s.pick("sk_live_", "sk_test_", "rk_live_") + s.from(mixed, 24) }},
	{"npm-token", func(s source) string { return "npm_" + s.from(mixed, 36) }},
	{"pypi-token", func(s source) string { return "pypi-AgEIcHlwaS5vcmc" + s.from(mixed+"-_", 100) }},
	{"sendgrid-key", func(s source) string { return "SG." + s.from(mixed, 22) + "." + s.from(mixed, 43) }},
	{"hugging-face-token", func(s source) string { return "hf_" + s.from(mixed, 34) }},
	{"docker-token", func(s source) string { return s.pick("dckr_pat_", "dckr_oat_") + s.from(mixed+"-_", 27) }},
	{"jwt", func(s source) string { return s.segment(12) + "." + s.segment(30) + "." + s.from(mixed+"-_", 43) }},
	{"private-key", func(s source) string {
		kind := s.pick("", "RSA ", "EC ", "OPENSSH ")
		var b strings.Builder
		b.WriteString("-----BEGIN " + kind + "PRIVATE KEY-----\n")
		for range 4 + s.IntN(8) {
			b.WriteString(s.from(mixed+"+/", 64) + "\n")
		}
		b.WriteString("-----END " + kind + "PRIVATE KEY-----")
		return b.String()
	}},
}

// around are the places where secrets turn up; %s is the secret.
var around = []string{
	"%s", "the key is %s.", "export KEY=%s", "curl -H 'X-Key: %s' https://api.example/v1", "I pasted %s here by mistake, please rotate it", "`%s`",
	`{"key": "%s", "n": 1}`, "first line\n%s\nlast line", "(%s)", "key:%s;",
}

// within are secrets that only their surroundings give away.
var within = []struct {
	rule, text string
	make       func(s source) string
}{
	{"azure-storage-key", "DefaultEndpointsProtocol=https;AccountName=shop;AccountKey=%s;EndpointSuffix=core.example", func(s source) string { return s.from(mixed+"+/", 86) + "==" }},
	{"url-password", "postgres://shop:%s@db.example:5432/shop", func(s source) string { return s.from(mixed+"!_-", 8+s.IntN(20)) }},
	{"url-password", "redis://:%s@cache.example/0 amqp://u:p", func(s source) string { return s.from(mixed, 16) }},
	{"authorization-header", "Authorization: Bearer %s", func(s source) string { return s.from(mixed+"-_", 32+s.IntN(40)) }},
	{"authorization-header", `"authorization": "Basic %s"`, func(s source) string { return base64.StdEncoding.EncodeToString([]byte("u:" + s.from(mixed, 18))) }},
	{"bearer-token", "sent with Bearer %s and refused", func(s source) string { return s.from(mixed+"-_", 32+s.IntN(40)) }},
	{"slack-webhook", "curl https://hooks.slack.com/services/%s", func(s source) string {
		return "T" + s.from(upper+digits, 8) + "/B" + s.from(upper+digits, 8) + "/" + s.from(mixed, 24)
	}},
	{"assignment", "password = %s", func(s source) string { return s.from(mixed+"!#%&*-_", 14+s.IntN(20)) }},
	{"assignment", `api_key: "%s"`, func(s source) string { return s.from(mixed, 24+s.IntN(16)) }},
	{"assignment", "CLIENT_SECRET=%s", func(s source) string { return s.from(mixed, 32) }},
	{"assignment", `{"config": "DB_PASSWORD=%s"}`, func(s source) string { return s.from(mixed, 20) }},
}

// harmless make texts that hold no secret, though many a rule is tempted.
var harmless = []func(s source) string{
	func(s source) string { return "commit " + s.from(hexes, 40) + " fixes the token parser" },
	func(s source) string { return "sha256:" + s.from(hexes, 64) },
	func(s source) string {
		return fmt.Sprintf("run_%s of workflow triage, request %s-%s-4%s-a%s-%s", s.from(lower+digits, 26), s.from(hexes, 8), s.from(hexes, 4), s.from(hexes, 3), s.from(hexes, 3), s.from(hexes, 12))
	},
	func(s source) string {
		return "order WL-" + s.from(digits, 6) + " was charged twice, card ending in " + s.from(digits, 4)
	},
	func(s source) string {
		return "the password must have at least " + s.from("123456789", 1) + " characters"
	},
	func(s source) string {
		return "token count: " + s.from(digits, 5) + ", secret sauce: tomatoes and basil"
	},
	func(s source) string { return "password: ********************" },
	func(s source) string { return "api_key = <your-key-here>, or set ${API_KEY}" },
	func(s source) string { return "password: [REDACTED:db-" + s.from(lower, 5) + "]" },
	func(s source) string {
		return "see https://docs.example/" + s.from(lower, 12) + "/" + s.from(lower, 9) + "?page=" + s.from(digits, 3)
	},
	func(s source) string {
		return "mail to " + s.from(lower, 7) + "@" + s.from(lower, 8) + ".example about ssh://git@host.example/repo"
	},
	func(s source) string {
		return "func (s *" + s.from(upper, 1) + s.from(lower, 8) + ") token() (string, error) { return s.next(), nil }"
	},
	func(s source) string {
		return "the sk-learn pipeline, an AKIA-like word, ghp_ alone, and eyJ of nothing"
	},
	func(s source) string {
		return "task-" + s.from(lower, 6) + "-" + s.from(lower, 7) + "-" + s.from(lower, 5) + " of desk-" + s.from(digits, 4)
	},
	func(s source) string { return "const tokenLifetime = 15 * time.Minute // " + s.from(lower, 12) },
	func(s source) string { return `{"token_type": "bearer", "expires_in": 3600, "scope": "read"}` },
	func(s source) string {
		return "secretary: Mrs. " + s.from(upper, 1) + s.from(lower, 9) + ", passwd(5) is a manual page"
	},
	func(s source) string {
		return "-----BEGIN CERTIFICATE-----\n" + s.from(mixed+"+/", 64) + "\n-----END CERTIFICATE-----"
	},
	func(s source) string {
		return "-----BEGIN PUBLIC KEY-----\n" + s.from(mixed+"+/", 64) + "\n-----END PUBLIC KEY-----"
	},
	func(s source) string { return "data:image/png;base64," + s.from(mixed+"+/", 200) },
	func(s source) string { return "authorization: see chapter 4; bearer of bad news" },
	func(s source) string { return "password: changechangechange" },
	func(s source) string { return "skip-the-line-and-go-to-the-front-of-the-queue-please" },
	func(s source) string { return "sk-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa is a placeholder" },
}

// Make gives the corpus: n lines of each kind.
func Make(n int) []Line {
	s := source{rand.New(rand.NewPCG(20260131, 1))} //nolint:gosec // G404: reproducible on purpose
	var out []Line
	for _, m := range secrets {
		for range n {
			secret := m.make(s)
			out = append(out, Line{Rule: m.rule, Text: fmt.Sprintf(around[s.IntN(len(around))], secret), Secret: secret})
		}
	}
	for _, m := range within {
		for range n {
			secret := m.make(s)
			out = append(out, Line{Rule: m.rule, Text: fmt.Sprintf(m.text, secret), Secret: secret})
		}
	}
	for _, m := range harmless {
		for range n {
			out = append(out, Line{Text: m(s)})
		}
	}
	return out
}
