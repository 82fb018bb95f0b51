package runview_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/gateway/runview"
)

var now = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func dollars(n float64) *float64 { return &n }

func TestParse_ReadsAllTerms(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]runview.Filter{
		"":                                 {},
		"  ":                               {},
		"status:failed":                    {Status: wire.StatusFailed},
		" workflow:triage  status:paused ": {WorkflowID: "triage", Status: wire.StatusPaused},
		`tag:"order 7" code:cap_breached`:  {Tag: "order 7", Code: "cap_breached"},
		"model:gpt until:2026-11-20":       {Model: "gpt", Until: time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)},
		"cost:0.05 waiting:2h":             {MinCost: dollars(0.05), Waiting: now.Add(-2 * time.Hour)},
		"cost:0 waiting:any":               {MinCost: dollars(0), Waiting: now},
		"kind:clarification.request provider:openai": {Kind: "clarification.request", Provider: "openai"},
		`text:"refund me" since:2h`:                  {Text: "refund me", Since: now.Add(-2 * time.Hour)},
		`tag:a:b`:                                    {Tag: "a:b"},
		`tag:"say \"x\""`:                            {Tag: `say "x"`},
		"since:2h":                                   {Since: now.Add(-2 * time.Hour)},
		"since:90s":                                  {Since: now.Add(-90 * time.Second)},
		"since:7d\tstatus:running":                   {Since: now.Add(-7 * 24 * time.Hour), Status: wire.StatusRunning},
		"since:1w":                                   {Since: now.Add(-7 * 24 * time.Hour)},
		"since:2026-11-20":                           {Since: time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)},
		"since:2026-11-20T08:00:00Z":                 {Since: time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)},
	} {
		got, err := runview.ParseFilter(text, now)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
}

func TestParse_ReportsInvalidTerms(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		"color:x":                  `"color": unknown name; names are status, workflow, tag, code, kind, provider, model, since, until, cost, waiting, text`,
		"cost:-1":                  "want the least cost in US dollars",
		"cost:NaN":                 "want the least cost",
		"cost:1e999":               "want the least cost",
		"cost:$5":                  "want the least cost",
		"until:x":                  "want a duration",
		"waiting:yes":              "want a duration",
		"failed":                   `"failed": want NAME:VALUE`,
		"status:failed triage":     `"triage": want NAME:VALUE`,
		"status:done":              `status: "done": want one of [pending`,
		"status:":                  "status: want a value",
		"status: failed":           "status: want a value",
		`tag:""`:                   "tag: want a value",
		`tag:"x`:                   "tag: missing closing quote",
		`tag:"x"y`:                 "tag: want a space after the closing quote",
		"tag:a tag:b":              "tag: duplicate",
		"since:2":                  "since: \"2\": want a duration such as",
		"since:-2h":                "want a duration",
		"since:99999999w":          "want a duration",
		"since:yesterday":          "want a duration",
		":x":                       `"": unknown name`,
		string(make([]byte, 2000)): "want at most 1024 bytes",
	} {
		_, err := runview.ParseFilter(text, now)
		require.ErrorContains(t, err, says, text)
	}
}

func FuzzParse_NeverPanics(f *testing.F) {
	f.Add(`status:failed workflow:x since:2h tag:"a b" code:c`)
	f.Add("since:1w since:")
	f.Fuzz(func(t *testing.T, text string) {
		if got, err := runview.ParseFilter(text, now); err != nil {
			require.Equal(t, runview.Filter{}, got)
		}
	})
}
